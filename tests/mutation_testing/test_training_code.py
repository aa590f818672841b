"""What operators for training find in a loop, with and without micro-batches."""

from __future__ import annotations

import ast

import pytest

from attnlab.mutation_testing.operators.base import Source, mutants
from attnlab.mutation_testing.training_code import loop_around, training_steps

LOOP = """
def train(model, optimizer, scheduler, steps):
    for step in range(steps):
        optimizer.zero_grad()
        for part in range(4):
            loss = compute_loss(model, part) / 4
            loss.backward()
        clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()  # once for each update
    return loss


def evaluate(model):
    return compute_loss(model, 0).item()
"""


def calls(text):
    """The calls of a training step in order, with their depth."""
    wanted = ("zero_grad", "backward", "clip_grad_norm_", "step")
    lines = [line for line in text.splitlines() if any(f"{name}(" in line for name in wanted)]
    return [
        f"{(len(line) - len(line.lstrip())) // 4} {line.split('(')[0].strip()}" for line in lines
    ]


RIGHT = calls(LOOP)


def test_a_step_is_found_by_what_its_statements_call():
    """The scheduler's step is not the optimizer's."""
    source = Source(LOOP)
    (found,) = training_steps(source)
    texts = [
        source.text_of(s) for s in (found.clear, found.clip, found.update, found.schedule) if s
    ]
    assert texts == [
        "optimizer.zero_grad()",
        "clip_grad_norm_(model.parameters(), 1.0)",
        "optimizer.step()",
        "scheduler.step()",
    ]
    assert found.function.name == "train"
    inner, outer = (loop_around(source, s) for s in (found.backward, found.update))
    assert isinstance(inner, ast.For)
    assert inner is not outer
    assert loop_around(source, found.function) is None


@pytest.mark.parametrize(
    ("mutation", "expected"),
    [
        ("gradients-cleared-too-late", "3 optimizer.zero_grad after 3 loss.backward"),
        ("gradients-cleared-too-late", "2 optimizer.zero_grad before 2 optimizer.step"),
        ("gradients-cleared-in-another-loop", "1 zero_grad first"),
        ("gradients-cleared-in-another-loop", "3 zero_grad first"),
        ("update-out-of-place", "3 optimizer.step after 3 loss.backward"),
        ("update-out-of-place", "1 optimizer.step last"),
        ("clipping-out-of-place", "2 clip_grad_norm_ after 2 optimizer.step"),
        ("schedule-out-of-place", "3 scheduler.step after 3 loss.backward"),
        ("schedule-out-of-place", "2 scheduler.step before 2 optimizer.step"),
        ("backward-twice", "3 loss.backward after 3 loss.backward"),
    ],
)
def test_a_call_is_moved_and_the_rest_stays(mutation, expected):
    """Each mutant holds the same calls, one of them at another place."""
    found = [calls(mutant.text) for mutant in mutants(LOOP, mutation)]
    assert found
    moved = expected.split(" ")[1]
    assert any(_stands(order, expected) for order in found), found
    for order in found:
        rest = [call for call in order if moved not in call]
        assert rest == [call for call in RIGHT if moved not in call]


def _stands(order, expected):
    depth, name, how, *other = expected.split(" ")
    places = [n for n, call in enumerate(order) if call.startswith(depth) and call.endswith(name)]
    if how == "first":
        return 0 in places
    if how == "last":
        return len(order) - 1 in places
    step = -1 if how == "after" else 1
    anchors = [n for n, c in enumerate(order) if c[0] == other[0] and c.endswith(other[1])]
    return any(place + step in anchors for place in places)


def test_a_file_that_trains_nothing_has_none_of_these_bugs():
    """Challenges of one module are measured with the same operators."""
    ids = ("update-out-of-place", "clipping-out-of-place", "backward-twice", "mode-set-once")
    text = "def forward(self, x):\n    return self.out(x)\n"
    assert not list(training_steps(Source(text)))
    assert not list(mutants(text, *ids))
