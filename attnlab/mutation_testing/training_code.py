"""Where a function does what every training step does, for the operators that mix it up."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from attnlab.mutation_testing.operators.base import Edits, Source, called_name, last_name, subject

CLIPPING = ("clip_grad_norm_", "clip_grad_value_")
LOOPS = (ast.For, ast.While)


@dataclass(frozen=True)
class TrainingStep:
    """The statements of a training step, by what they do; None where a function does without."""

    function: ast.FunctionDef
    backward: ast.stmt
    clear: ast.stmt | None  # optimizer.zero_grad()
    clip: ast.stmt | None
    update: ast.stmt | None  # optimizer.step()
    schedule: ast.stmt | None  # scheduler.step()


def training_steps(source: Source) -> Iterator[TrainingStep]:
    """One for each function that calls `backward`."""
    for function in source.functions():
        statements: dict[str, ast.stmt] = {}
        for node in ast.walk(function):
            if isinstance(node, ast.Expr | ast.Assign) and isinstance(node.value, ast.Call):
                statements.setdefault(_purpose(node.value), node)
        if "backward" in statements:
            others = (statements.get(n) for n in ("clear", "clip", "update", "schedule"))
            yield TrainingStep(function, statements["backward"], *others)


def _purpose(call: ast.Call) -> str:
    name = called_name(call)
    if name == "step":
        value = subject(call)
        return "schedule" if value is not None and "sched" in last_name(value) else "update"
    if name in CLIPPING:
        return "clip"
    return {"zero_grad": "clear", "backward": "backward"}.get(name, "")


def loop_around(source: Source, statement: ast.AST) -> ast.stmt | None:
    """The innermost loop that a statement is in, of the same function."""
    for node in source.ancestors(statement):
        if isinstance(node, ast.FunctionDef):
            break
        if isinstance(node, LOOPS):
            return node
    return None


def move_to_other_loops(source: Source, step: TrainingStep, statement: ast.stmt) -> Edits:
    """The statement after its loop, and in the loop of the backward pass where that is another."""
    outer, inner = loop_around(source, statement), loop_around(source, step.backward)
    if outer is not None:
        yield source.move(statement, outer, after=True)
    if inner is not outer:
        yield source.move(statement, step.backward, after=True)
