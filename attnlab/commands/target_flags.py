"""A module of the user's own: TARGET and the flags that say how it is built and fed.

A command that looks at one takes a `NamedTarget` and is decorated with `takes_target`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from attnlab.commands.base import (
    Selection,
    complete_slug,
    looks_like_path,
    names_challenge,
    note,
    select_file,
    selected_code,
)

if TYPE_CHECKING:
    from attnlab.records import Job, Limits, TraceOptions
    from attnlab.target.command_line import TraceCommand
    from attnlab.target.find_target import Answer

OWN_TIME = "60"  # seconds: the user's own code may import large packages
Target = Annotated[
    str,
    typer.Argument(
        metavar="TARGET",
        help="file.py:Class, file.py:function, file.py, package.module:Class, or a challenge.",
        autocompletion=complete_slug,
    ),
]
Init = Annotated[
    list[str] | None,
    typer.Option("--init", metavar="ARGS", help='How to build it: "embed_dim=D, num_heads=H".'),
]
Sizes = Annotated[
    list[str] | None,
    typer.Option("--sizes", metavar="SIZES", help='What symbols mean: "B=2, S=4, D=8, H=2".'),
]
Inputs = Annotated[
    list[str] | None,
    typer.Option(
        "--input",
        metavar="INPUT",
        help='How to feed it, once for each: "x: B S D", "n = 3", "kv: tuple(B T D, B T D)".',
    ),
]
Case = Annotated[
    str, typer.Option("--case", metavar="FILE", help="A TOML file with [sizes] [init] [inputs].")
]
Reveal = Annotated[
    bool,
    typer.Option(
        "--reveal", help="For a challenge: also show what names the cause; counts as a hint."
    ),
]


@dataclass(frozen=True)
class NamedTarget:
    """The module, file or challenge that a command line names."""

    ctx: typer.Context
    name: str  # as typed
    typed: TraceCommand

    @cached_property
    def chosen(self) -> Selection | None:
        """The challenge of a slug, of a started file or of a task of a round, also of a class in
        it; None for code of one's own."""
        from attnlab.commands.rounds import task_of_round
        from attnlab.target.source import marked_slug, read_source

        target = self.typed.target
        file = target if target.endswith(".py") else target.rpartition(":")[0]
        if file.endswith(".py"):
            if Path(file).is_file() and marked_slug(read_source(Path(file)).text):
                return select_file(self.ctx, file)
            task = task_of_round(file)
            return select_file(self.ctx, task, file) if task else None
        plain = not (looks_like_path(target) or ":" in target or "." in target)
        return (
            select_file(self.ctx, target) if plain and names_challenge(self.ctx, target) else None
        )

    @cached_property
    def answer(self) -> Answer | None:
        """The file of a challenge as an answer to it; None where another class of it is meant."""
        from attnlab.target.find_target import Answer

        name, chosen = self.typed.target.partition(".py:")[2], self.chosen
        if chosen is None or name not in ("", chosen.challenge.class_name):
            return None
        return Answer(challenge=chosen.challenge, code=selected_code(chosen))

    def repeating(self, *rest: str, tiny: bool = False) -> NamedTarget:
        """The target, with what else a command that is to be typed again needs."""
        return replace(self, typed=replace(self.typed, rest=rest, tiny=tiny))

    def job(self, limits: Limits, options: TraceOptions | None = None) -> Job:
        """The job that traces it, with inputs that were found by trying where nothing says what
        they are; raises `Refused` or `Unreadable`."""
        from attnlab.commands.base import run_job
        from attnlab.target.fitted import first_fit, guessed_job

        job = guessed_job(self.typed, limits=limits, options=options, answer=self.answer)
        return first_fit(self.typed, job, run_job, lambda _: None)[1]

    def guess(self, job: Job) -> str:
        """How it is fed where nobody said that; "" where somebody did."""
        from attnlab.target.trace_advice import guessed_inputs

        if self.answer or job.unknown:
            return ""
        fed = ", ".join(f'"{each}"' for each in guessed_inputs(self.typed, job))
        return f"inputs guessed: {fed}; --input changes them" if fed else ""

    def announce(self, doing: str, job: Job, fed: bool = True) -> None:
        """Print what runs, and how it is fed."""
        own = "your own code: " * (not self.chosen or self.chosen.yours)
        note(f"{doing} {self.typed.target} ({own}under limits, not isolated)")
        if fed and (guess := self.guess(job)):
            note(guess)


def takes_target(command: Callable[..., int], argument: object = Target) -> Callable[..., int]:
    """The command with TARGET and its flags in place of its parameter `named`."""
    context, target, *flags = _keywords(_named)
    flags.insert(0, target.replace(annotation=argument))
    names = [flag.name for flag in flags]

    @wraps(command)
    def with_flags(ctx: typer.Context, **given: Any) -> int:
        return command(named=_named(ctx, **{name: given.pop(name) for name in names}), **given)

    places = [flags if each.name == "named" else [each] for each in _keywords(command)]
    signature = inspect.Signature([context, *(each for place in places for each in place)])
    with_flags.__signature__ = signature  # type: ignore[attr-defined]
    return with_flags


def _keywords(function: Callable[..., object]) -> list[inspect.Parameter]:
    """Its parameters as keywords, among which those without a default may stand anywhere."""
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [each.replace(kind=each.KEYWORD_ONLY) for each in found]


def _named(
    ctx: typer.Context,
    target: Target,
    init: Init = None,
    sizes: Sizes = None,
    inputs: Inputs = None,
    case: Case = "",
) -> NamedTarget:
    from attnlab.commands.rounds import training_script
    from attnlab.target.command_line import TraceCommand

    typed = TraceCommand(
        target=training_script(ctx, target),
        init=", ".join(init or ()),
        sizes=", ".join(sizes or ()),
        inputs=tuple(inputs or ()),
        case=case,
        verb=ctx.info_name or "",
    )
    return NamedTarget(ctx, target, typed)


def next_of_puzzle(chosen: Selection, fine: bool, solved: bool) -> str:
    """What to do next about a challenge: that nothing was found does not make it right."""
    name = chosen.challenge.name
    if fine and solved:
        return ""
    if fine:
        own = chosen.yours and chosen.file.removeprefix("./") != f"{name}.py"
        return f"attnlab grade {chosen.file if own else name} tells whether it is right"
    start = f"attnlab start {name} copies the file here"
    return f"{f'fix {chosen.file}' if chosen.yours else start}; attnlab hint {name} helps"
