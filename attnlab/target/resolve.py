"""Turn the target that a user names into a job; raise every error that needs no torch.

A target is a file graded against a challenge, or one's own: `file.py:Class`, `file.py`,
`package.module:Class`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.catalogue import schema
from attnlab.catalogue.challenge_schema import BASE_TABLES, TABLES
from attnlab.catalogue.inputs import parse_argument, parse_inputs, separate
from attnlab.catalogue.schema import parse_init, parse_sizes
from attnlab.catalogue.toml_rules import read_document, table
from attnlab.errors import Refused
from attnlab.records import Container, Contract, Input, Job, Limits, TraceOptions
from attnlab.target.command_line import TraceCommand, UserOptions
from attnlab.target.environment import user_environment, with_package_roots
from attnlab.target.find_target import (
    Answer,
    Target,
    find_answer,
    find_target,
    name_choices,
    split_target,
    trains_when_run,
)
from attnlab.target.imported_configs import imported_configs
from attnlab.target.infer import TINY, complete_contract
from attnlab.target.infer_inputs import call_signatures, must_fit, must_take, takes_inputs
from attnlab.target.outline import Outline, format_signature, outline_code
from attnlab.target.source import read_source

# A challenge.toml may serve as a case: what it says beyond the case is left aside.
CASE = table({**dict.fromkeys(TABLES | BASE_TABLES, lambda value: value), **schema.TABLES})


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


def with_at(job: Job, texts: Sequence[str] | None) -> Job:
    """The job with the sizes of `--at`, of symbols that it has; raises `Refused`."""
    if texts is None:
        return job
    sizes = parse_sizes(", ".join(texts), "--at")
    known = job.contract.sizes if job.contract else {}
    if not sizes:
        raise Refused("--at names no size", 'Write --at "S=4096, B=8".', "--at")
    if job.contract is None:
        hint = "name its class, as in file.py:Net"
        raise Refused("--at: a demo makes its own inputs, at its own sizes", hint, "--at")
    if "hd" in sizes and "hd" not in known and {"D", "H"} <= known.keys():
        width = sizes["hd"] * sizes.get("H", known["H"])
        hint = f'Write --at "D={width}" for heads of {sizes["hd"]}.'
        raise Refused("--at: hd is no size of its own: it is D / H", hint, "--at")
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
    try:
        return _module_job(typed, limits, options, answer)
    except Refused as error:
        if answer or typed.describes_module or not trains_when_run(typed.target):
            raise
        hint = f"attnlab trace {typed.target} --step 1 shows a step of its training"
        hint += f". Or: {error.hint}" if error.hint else ""
        raise Refused(str(error), hint, error.where) from None


def _module_job(
    typed: TraceCommand, limits: Limits | None, options: TraceOptions | None, answer: Answer | None
) -> Job:
    case = read_document(Path(typed.case)).read(CASE) if typed.case else None
    base = answer.challenge.contract if answer else Contract()
    base = base if case is None else schema.build_contract(case)
    said = _merge_options(base, typed)
    found = find_answer(answer) if answer else find_target(typed.target, typed.verb)
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
    place, name = split_target(typed.target)
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
    own = with_package_roots(
        user_environment(str(path.absolute().parent)), path, outline_code(code)
    )
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


def _contract(base: Contract, said: UserOptions, found: Target, flags: bool) -> Contract | None:
    """How to build and feed the class; None where the file's demo does both."""
    target = said.typed.target
    if found.code.name is None:
        if flags:
            hint = f"{found.choices}. Without flags its demo runs."
            raise Refused(f"{target}: which class do the flags mean?", hint, target)
        return None
    try:
        _must_be_callable(found, said, target)
        return complete_contract(base, said, found.seen, _with_imports(found))
    except Refused:
        if flags or not found.demo:
            raise
        return None


def _with_imports(found: Target) -> Outline:
    """The outline of the file, with the classes of configs that it imports."""
    if found.seen is None or found.seen.build is None or not found.code.path:
        return found.near
    more = imported_configs(Path(found.code.path), found.own)
    return replace(found.near, definitions={**found.near.definitions, **more})


def _must_be_callable(found: Target, said: UserOptions, target: str) -> None:
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
            name_choices(others, said.typed.verb)
            if others
            else f"Define {seen.name}.forward, or name another class."
        )
        named = target if target.endswith(f":{seen.name}") else f"{target}: class {seen.name}"
        raise Refused(f"{named} defines no forward", hint, target)
