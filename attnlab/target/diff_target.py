"""What `attnlab diff` compares with: the reference library, a file, a package, a past version."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from attnlab.catalogue.weight_expressions import Misfit
from attnlab.catalogue.weight_expressions import parse as parse_weights
from attnlab.errors import Refused, Unreadable
from attnlab.records import Code, Contract, Job, Limits, Report, UserEnvironment
from attnlab.suggest import did_you_mean
from attnlab.target.command_line import TraceCommand, input_flag
from attnlab.target.config_references import adapt_to_config, takes_config
from attnlab.target.find_target import Target, find_target, split_target
from attnlab.target.fitted import fitted_command, guessed_job
from attnlab.target.infer import Unbuilt
from attnlab.target.infer_inputs import Unfed
from attnlab.target.paired_constructors import PairedConstructors, pair_constructors
from attnlab.target.resolve import own_job
from attnlab.target.torch_references import adapt_layer

LIBRARY = "ref:"
REFERENCES = Path(__file__).parent.parent / "references"
LENGTHS = {"B", "S", "Sq", "Sk", "T", "L"}  # sizes that no constructor fixes
CLASS = re.compile(r"^class ([A-Z]\w*)\(", re.MULTILINE)


def diff_job(
    typed: TraceCommand,
    reference: str,
    limits: Limits,
    weights: str = "",
    shown: tuple[str, str] = ("", ""),
    plain: bool = False,
) -> Job:
    """The job that compares a user's own code with a reference; `shown` is what messages call the
    files of both, `weights` a file that maps theirs; `plain`: each is built as its own defaults
    say. Raises `Refused`."""
    try:
        job = own_job(typed, limits=limits)
    except (Unbuilt, Unfed):
        name = split_target(typed.target)[1]
        if name or ":" in reference:
            _reference(reference, name, "")  # which refuses one that is not there
        raise
    job = replace(job, candidate=replace(job.candidate, file=shown[0] or job.candidate.file))
    if job.contract is None or job.candidate.name is None:
        hint = f"name the class: attnlab diff {typed.target}:CLASS {reference}"
        raise Refused(f"{typed.target} does not say which class to compare", hint, typed.target)
    contract = job.contract
    said = {re.split("[:=]", text)[0].strip() for text in typed.inputs}
    found, own, target = _reference(reference, job.candidate.name, shown[1])
    paired = pair_constructors(typed, _target(found, reference))
    names = dict(paired.names) if paired else {}
    says = ""
    if isinstance(found, Code) and own and (own.module or "").startswith("torch.nn"):
        found, named = adapt_layer(found, contract)
        names, own = {**names, **named}, replace(own, module=None)
    elif target and own and takes_config(target):
        found, says = adapt_to_config(target, contract, job.candidate.text)
        names, own = {}, replace(own, module=None)
        turns = {"hd": 2} if "Rotary" in target.code.text else {}  # pairs of channels
        contract = replace(contract, multiples={**contract.multiples, **turns})
    init: dict[str, str] | None = None
    if plain:
        contract, init = _plain(contract, find_target(typed.target, typed.verb), target)
    if weights:
        contract = replace(contract, weights=read_weight_map(weights))
    return replace(
        job,
        contract=contract,
        guessed=tuple(i.argument for i in contract.inputs if i.argument not in said),
        reference=found,
        reference_own=own,
        reference_names=names,
        reference_init=init,
        reference_says=says,
        stages=("diff",),
    )


def _plain(
    mine: Contract, own: Target, reference: Target | None
) -> tuple[Contract, dict[str, str]]:
    """The contract without arguments of the constructor, and those of the reference's."""
    inits = [_defaults(own), _defaults(reference) if reference else None]
    if None in inits:
        raise Refused("not all arguments of both constructors have defaults")
    ours, theirs = (init or {} for init in inits)
    vary = tuple(symbol for symbol in mine.vary if symbol in LENGTHS)
    return replace(mine, init=dict(ours), vary=vary), theirs


def _defaults(target: Target) -> dict[str, str] | None:
    """What a constructor has to be given, where configs of defaults alone will do; else None."""
    found: dict[str, str] = {}
    build = target.seen.build if target.seen else None
    for parameter in build.parameters if build else ():
        if not parameter.required:
            continue
        kind = re.split(r"\W", parameter.annotation)[0]
        made = target.near.definitions.get(kind)
        if made is None or made.build is None or any(p.required for p in made.build.parameters):
            return None
        found[parameter.name] = f"{kind}()"
    return found if build else None


def fed_by_reference(
    typed: TraceCommand, reference: str, name: str, run: Callable[[Job], Report], init: str
) -> TraceCommand | None:
    """The command with inputs and sizes with which a call of the reference runs to its end, built
    with `init`; None where the user says what goes in, or where none were found."""
    if typed.inputs or typed.case or reference.startswith(LIBRARY):
        return None
    target = reference if ":" in reference else f"{reference}:{name}"
    asked = replace(typed, target=target, rest=(), init=init)
    try:
        job = guessed_job(asked)
        fed = fitted_command(asked, job, run) or asked
        contract = own_job(fed).contract
        theirs, mine = (_forward_names(each) for each in (target, typed.target))
    except (Refused, Unreadable):
        return None
    names = dict(zip(theirs, mine, strict=False))
    if contract is None or contract.containers:
        return None
    if any(i.argument not in names for i in contract.inputs):
        return None
    flags = [input_flag(replace(i, name=names[i.argument])) for i in contract.inputs]
    flags += [f"{names[n]} = {v!r}" for n, v in contract.arguments.items() if n in names]
    sizes = ", ".join(f"{symbol}={size}" for symbol, size in contract.sizes.items())
    return replace(typed, sizes=sizes, inputs=tuple(flags))


def paired_arguments(
    typed: TraceCommand, reference: str, name: str
) -> Iterator[PairedConstructors]:
    """What both constructors are to be given where their arguments have other names, the likely way
    first; none where that is no question, or has no answer."""
    if typed.case or reference.startswith(LIBRARY):
        return
    target = reference if ":" in reference else f"{reference}:{name}"
    for by_place in (False, True):
        paired = pair_constructors(typed, target, by_place)
        if paired and (paired.mine or paired.theirs):
            yield paired


def _forward_names(target: str) -> list[str]:
    """The arguments of forward, in their order."""
    seen = find_target(target, "diff").seen
    return seen.forward.names() if seen and seen.forward else []


def read_weight_map(file: str) -> dict[str, str]:
    """By each parameter how it is made of the reference's; raises `Refused` or `Unreadable`."""
    hint = 'as in: [weights], then "qkv.weight" = "cat(q.weight, k.weight, v.weight)"'
    try:
        told = tomllib.loads(Path(file).read_text("utf-8")).get("weights")
    except OSError as error:
        raise Unreadable(f"{file}: {error.strerror}", hint, file) from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise Refused(f"{file} is no TOML: {error}", hint, file) from None
    if not isinstance(told, dict) or not all(isinstance(v, str) for v in told.values()):
        raise Refused(f"{file} has no table [weights] of expressions", hint, file)
    for name, said in told.items():
        try:
            parse_weights(said)
        except (Misfit, IndexError) as error:
            raise Refused(f"{file}: {name}: {error}", hint, file) from None
    return told


def _target(found: str | Code, reference: str) -> str:
    """A reference as a target that is named with its class."""
    if isinstance(found, str):
        path = next(p for p in REFERENCES.glob("*.py") if f"class {found}(" in p.read_text("utf-8"))
        return f"{path}:{found}"
    return f"{reference}:{found.name}" if found.name and ":" not in reference else reference


def _reference(
    said: str, name: str, shown: str
) -> tuple[str | Code, UserEnvironment | None, Target | None]:
    if said.startswith(LIBRARY):
        return _unit(said.removeprefix(LIBRARY)), None, None
    target = said if ":" in said else f"{said}:{name}"
    found = find_target(target, "diff")
    return replace(found.code, file=shown or found.code.file), found.own, found


def _unit(name: str) -> str:
    """The name of a class of the reference library."""
    known = [
        found
        for path in REFERENCES.glob("*.py")
        for found in CLASS.findall(path.read_text("utf-8"))
    ]
    if name not in known:
        hint = did_you_mean(name, known) or f"There are {', '.join(sorted(known))}."
        raise Refused(f"{LIBRARY}{name}: the reference library has no such class", hint, name)
    return name
