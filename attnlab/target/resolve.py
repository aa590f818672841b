"""Turn the target that a user names into a job; raise every error that needs no torch.

A target is a file graded against a challenge, or one's own: `file.py:Class`, `file.py`,
`package.module:Class`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from attnlab.catalogue import schema
from attnlab.catalogue.challenge_schema import TABLES
from attnlab.catalogue.inputs import parse_argument, parse_inputs, separate
from attnlab.catalogue.schema import parse_init, parse_sizes
from attnlab.catalogue.toml_rules import read_document, table
from attnlab.errors import Refused
from attnlab.files import exists
from attnlab.records import (
    Challenge,
    Code,
    Container,
    Contract,
    Input,
    Job,
    Limits,
    TraceOptions,
    UserEnvironment,
    record,
)
from attnlab.suggest import did_you_mean, either
from attnlab.target.command_line import TraceCommand, UserOptions
from attnlab.target.environment import (
    find_module_file,
    package_environment,
    user_environment,
    with_package_roots,
)
from attnlab.target.infer import TINY, complete_contract
from attnlab.target.infer_inputs import call_signatures, must_fit, must_take, takes_inputs
from attnlab.target.outline import Definition, Outline, format_signature, read_outline
from attnlab.target.source import parse, read_source

MOST = 6  # names that a list shows
FORMS = "TARGET is file.py:Class, file.py:function, file.py or package.module:Class."
# A challenge.toml may serve as a case: what it says beyond the case is left aside.
CASE = table({**dict.fromkeys(TABLES, lambda value: value), **schema.TABLES})


@record
class _Target:
    """What a target names: the code, and the definition where it can be seen without running."""

    code: Code
    own: UserEnvironment
    seen: Definition | None = None
    demo: bool = False  # where the class cannot be fed, the file's demo may run instead
    choices: str = ""  # `Name one: my.py:Net or my.py:Block, ...`
    near: Outline = Outline(definitions={})  # the file that it stands in


@record
class Answer:
    """Code that is looked at as an answer to a challenge."""

    challenge: Challenge
    code: Code


def challenge_job(
    challenge: Challenge,
    answer: Path | Code,
    *,
    stages: tuple[Literal["trace", "check", "diff"], ...] = ("trace", "check"),
    limits: Limits | None = None,
    seed: int | None = None,
) -> Job:
    """The job that looks at a file, or at code, as an answer to `challenge`."""
    code = answer if isinstance(answer, Code) else read_source(answer)
    _definition(_outline(code), challenge.class_name, code)
    reference: str | Code = challenge.reference
    if reference == "solution.py":
        reference = replace(read_source(Path(challenge.solution)), name=challenge.class_name)
    return Job(
        candidate=replace(code, name=challenge.class_name),
        contract=challenge.contract,
        reference=reference,
        stages=stages,
        limits=limits or Limits(),
        seed=seed,
    )


def tiny_job(job: Job) -> Job:
    """The job with tiny sizes, such as B=1 and S=4, for the symbols of its contract."""
    if job.contract is None:
        return job
    sizes = {k: TINY.get(k, v) for k, v in job.contract.sizes.items()}
    return replace(job, contract=replace(job.contract, sizes=sizes))


def resized_job(job: Job, text: str) -> Job:
    """The job with the sizes that `--sizes` gives to symbols of its contract; raises `Refused`."""
    if job.contract is None or not text:
        return job
    sizes = parse_sizes(text)
    if unknown := [symbol for symbol in sizes if symbol not in job.contract.sizes]:
        hint = f"Its sizes are {', '.join(job.contract.sizes)}."
        raise Refused(f"--sizes: the challenge has no {unknown[0]}", hint, "--sizes")
    return replace(job, contract=replace(job.contract, sizes={**job.contract.sizes, **sizes}))


def with_at(job: Job, text: str) -> Job:
    """The job with the sizes of `--at`, of symbols that it has; raises `Refused`."""
    sizes = parse_sizes(text, "--at")
    if sizes and job.contract is None:
        hint = "name its class, as in file.py:Net"
        raise Refused("--at: a demo makes its own inputs, at its own sizes", hint, "--at")
    known = job.contract.sizes if job.contract else {}
    if unknown := [symbol for symbol in sizes if symbol not in known]:
        raise Refused(f"--at: nothing has the size {unknown[0]}", f"It has {', '.join(known)}.")
    return replace(job, at=sizes)


def own_job(
    typed: TraceCommand,
    *,
    limits: Limits | None = None,
    options: TraceOptions | None = None,
    answer: Answer | None = None,
) -> Job:
    """The job that traces a user's own code. Flags win over the case, the case over guesses; an
    answer to a challenge is built and fed as its contract says."""
    if options and options.step:
        return _training_job(typed, limits or Limits(), options)
    case = read_document(Path(typed.case)).read(CASE) if typed.case else None
    base = answer.challenge.contract if answer else Contract()
    base = base if case is None else schema.build_contract(case)
    said = _merge_options(base, typed)
    found = _find_answer(answer) if answer else find_target(typed.target, typed.verb)
    flags = typed.describes_module or typed.tiny
    contract = base if answer and not flags else _contract(base, said, found, flags)
    if contract:
        must_fit(contract, typed, limits or Limits())
    _, forward = call_signatures(found.seen, said)
    if options and options.feed and forward and contract:
        must_take("--feed", options.feed, forward)
    return Job(
        candidate=found.code if contract else replace(found.code, name=None),
        contract=contract,
        stages=("trace",),
        limits=limits or Limits(),
        own=found.own,
        options=options or TraceOptions(),
    )


def _training_job(typed: TraceCommand, limits: Limits, options: TraceOptions) -> Job:
    """The job that traces a step of the training that a whole file runs."""
    place, name = _split_target(typed.target)
    if name or typed.describes_module or not place.endswith(".py"):
        hint = "name the file alone: attnlab trace train.py --step 2"
        raise Refused("--step runs a whole file, as python does", hint, "--step")
    if options.extras:
        hint = f"without --step they look at the first call: attnlab trace {place}"
        says = f"--step shows the rows of a step, and cannot take {' and '.join(options.extras)}"
        raise Refused(says, hint, "--step")
    return replace(script_job(place, limits), options=options)


def script_job(place: str, limits: Limits, arguments: tuple[str, ...] = ()) -> Job:
    """The job that runs a whole file, as `python FILE` does."""
    path = Path(place)
    code = read_source(path, place)
    own = with_package_roots(user_environment(str(path.absolute().parent)), path, _outline(code))
    own = replace(own, arguments=arguments)
    return Job(candidate=code, stages=("trace",), limits=limits, own=own)


def _merge_options(base: Contract, typed: TraceCommand) -> UserOptions:
    """What the case and the flags say together."""
    fed: dict[str, list[Input | Container]] = {}
    declared: tuple[Input | Container, ...] = (*base.inputs, *base.containers)
    for entry in declared:
        fed.setdefault(entry.argument, []).append(entry)
    plain = dict(base.arguments)
    for text in typed.inputs:
        argument = parse_argument(text)
        if argument:
            fed.pop(argument[0], None)
            plain[argument[0]] = argument[1]
        else:
            entries = parse_inputs(text)
            plain.pop(entries[0].name, None)
            fed[entries[0].name] = list(entries)
    inputs, containers = separate(entry for entries in fed.values() for entry in entries)
    init = parse_init(typed.init)
    sizes = {**base.sizes, **parse_sizes(typed.sizes)}
    for name, value in init.items():  # "embed_dim=8" where the case says embed_dim = "D"
        if isinstance(value, int) and (symbol := base.init.get(name)) in base.sizes:
            sizes[str(symbol)] = value
    init = {**base.init, **init}
    return UserOptions(
        init=init,
        sizes={**(TINY if typed.tiny else {}), **sizes},
        given_sizes=frozenset((*sizes, *init)),
        typed=typed,
        inputs=inputs,
        containers=containers,
        arguments=plain,
    )


def _contract(base: Contract, said: UserOptions, found: _Target, flags: bool) -> Contract | None:
    """How to build and feed the class; None where the file's demo does both."""
    target = said.typed.target
    if found.code.name is None:
        if flags:
            hint = f"{found.choices}. Without flags its demo runs."
            raise Refused(f"{target}: which class do the flags mean?", hint, target)
        return None
    try:
        _must_be_callable(found, said, target)
        return complete_contract(base, said, found.seen, found.near)
    except Refused:
        if flags or not found.demo:
            raise
        return None


def _must_be_callable(found: _Target, said: UserOptions, target: str) -> None:
    seen, near = found.seen, found.near
    if seen and seen.kind == "function" and seen.build and not said.inputs:
        if not takes_inputs(seen.build, said):
            first = (seen.build.names() or ["x"])[0]
            paste = said.typed.with_flags(inputs=(f"{first}: B S D",)).command()
            takes = format_signature(seen.build)
            says = f"{target} is a function of ({takes}), and nothing says how to call it"
            raise Refused(says, f"give the axes of each argument: {paste}", target)
    elif seen and not seen.callable:
        place = found.code.file if found.own.module is None else found.own.module
        others = [f"{place}:{n}" for n in near.modules() if near.definitions[n].callable]
        hint = (
            _choice(others, said.typed.verb)
            if others
            else f"Define {seen.name}.forward, or name another class."
        )
        named = target if target.endswith(f":{seen.name}") else f"{target}: class {seen.name}"
        raise Refused(f"{named} defines no forward", hint, target)


# ---------------------------------------------------------------- what a target names


def find_target(target: str, verb: str) -> _Target:
    """The code that `target` names; raises `Refused` or `Unreadable`."""
    place, name = _split_target(target)
    if place.endswith(".py") or re.search(r"[/\\]", place) or (place and exists(Path(place))):
        return _find_file(place, name, verb)
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", place):
        raise Refused(f"{target}: no such file, and not the name of a module", FORMS, target)
    if not name:
        hint = f"Name a file, {place}.py, or a class of a module, {place}:Class. {FORMS}"
        raise Refused(f"{target}: no such file, and no class of a module", hint, target)
    return _find_module(place, name)


def _find_answer(answer: Answer) -> _Target:
    name, outlined = answer.challenge.class_name, _outline(answer.code)
    own = user_environment(str(Path(answer.code.path).absolute().parent))
    seen = _definition(outlined, name, answer.code)
    return _Target(code=replace(answer.code, name=name), own=own, seen=seen, near=outlined)


def _split_target(target: str) -> tuple[str, str]:
    r"""`C:\x.py:Class` as its file and its class; the class may be missing."""
    place, colon, name = target.rpartition(":")
    if not colon or re.search(r"[/\\]", name):
        return target, ""
    if name and not name.isidentifier() and not place.endswith(".py"):
        return target, ""
    if not name.isidentifier():
        says = f'{target}: "{name}" is not a class name'
        raise Refused(says, f"Name a class after the colon, or {place} alone.", target)
    return place, name


def _find_file(place: str, name: str, verb: str) -> _Target:
    path = Path(place)
    code = read_source(path, place)
    outlined = _outline(code)
    own = package_environment(path, outlined.climbs) or user_environment(
        str(path.absolute().parent)
    )
    own = with_package_roots(own, path, outlined)
    if name:
        seen = _definition(outlined, name, code)
        return _Target(code=replace(code, name=name), own=own, seen=seen, near=outlined)
    modules = outlined.modules()
    roots = [m for m in outlined.roots if outlined.definitions[m].callable]
    if len(modules) == 1 or (len(roots) == 1 and not outlined.demo):
        seen = outlined.definitions[(roots or modules)[0]]
        code = replace(code, name=seen.name)
        return _Target(code=code, own=own, seen=seen, demo=outlined.demo, near=outlined)
    functions = [d.name for d in outlined.definitions.values() if d.kind == "function"]
    choices = _choice([f"{place}:{name}" for name in roots or modules or functions], verb)
    if outlined.demo:
        return _Target(code=code, own=own, demo=True, choices=choices)
    if not modules and functions:
        raise Refused(f"{place} defines no nn.Module, and no demo to run", choices, place)
    if not modules:
        hint = 'Define a class with a forward, or an `if __name__ == "__main__":` that calls one.'
        raise Refused(f"{place} defines no nn.Module, and no demo to run", hint, place)
    raise Refused(f"{place} defines {len(modules)} modules", choices, place)


def _choice(targets: Sequence[str], verb: str) -> str:
    """`Name one: a.py:Net or a.py:Block, as in attnlab trace a.py:Block`."""
    if not targets:
        return f"Name a class or a function of it, as in attnlab {verb} FILE.py:CLASS"
    shown = [*targets[:MOST], *(["..."] if len(targets) > MOST else [])]
    return (
        f"Name one: {either(shown)}, as in {TraceCommand(target=targets[-1], verb=verb).command()}"
    )


def _find_module(module: str, name: str) -> _Target:
    own = replace(user_environment(), module=module)
    path = find_module_file(module, own.sys_path)
    if path is None:  # compiled, zipped or made at run time: the lab imports it and looks
        return _Target(code=Code(file=module, text="", name=name), own=own)
    code = read_source(path)
    outlined = _outline(code)
    seen = _definition(outlined, name, code)
    return _Target(code=replace(code, name=name), own=own, seen=seen, near=outlined)


# ---------------------------------------------------------------- what a file defines


def _outline(code: Code) -> Outline:
    return read_outline(parse(code.text, code.file))


def _definition(seen: Outline, name: str, code: Code) -> Definition | None:
    """What `name` is in the file; None where it may come from elsewhere; else raises `Refused`."""
    found = seen.definitions.get(name)
    if found:
        return None if found.kind == "other" else found
    if not seen.complete:
        return None
    classes = ", ".join(seen.classes()) or "no class"
    hint = did_you_mean(name, seen.definitions) or f"It defines {classes}."
    raise Refused(f"{code.file} defines no {name}", hint, code.file)
