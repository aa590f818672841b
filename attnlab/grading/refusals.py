"""A target that could not run because something is missing: a flag, a package, a device.

That is no crash of the user's own code: it is refused, with a command that helps. A graded file
has crashed all the same, with the same message and hint.
"""

import pkgutil
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import torch

from attnlab.candidate.host import Raised
from attnlab.records import Job, Trace
from attnlab.suggest import did_you_mean
from attnlab.target.command_line import TraceCommand
from attnlab.target.conventions import DIMENSIONS
from attnlab.target.infer import SIZES


class Refusal(NamedTuple):
    message: str
    hint: str


def device_refusal(job: Job) -> Refusal | None:
    """A device that this machine does not have."""
    if job.options.device.startswith("cuda") and not torch.cuda.is_available():
        built = "" if torch.version.cuda else ": this PyTorch was built for the CPU alone"
        says = f"--device {job.options.device}: PyTorch finds no CUDA device here{built}"
        return Refusal(says, f"on the CPU: {_typed(job).command()}")
    return None


def build_refusal(job: Job, error: Raised) -> Refusal | None:
    """An error before the first forward, where a flag or a package would help."""
    if error.error == "ModuleNotFoundError" and "'attnlab" not in error.message:
        return _not_installed(job, error)
    if job.own is None:
        return None
    missing = _missing(error.message, "__init__")
    if missing:
        more = ", ".join(f"{name}={SIZES.get(DIMENSIONS.get(name, ''), 12)}" for name in missing)
        says = f"{_name(job)} cannot be built: nothing says what {', '.join(missing)} should be"
        return Refusal(
            says, f"say it with your own values: {_typed(job).with_flags(init=more).command()}"
        )
    if error.verb == "build" and error.error == "NameError" and "defines no" in error.message:
        module = (job.own.module if job.own else None) or job.candidate.file
        says = f"{module} has no {job.candidate.name}"
        guess = "".join(error.message.partition("Did you mean")[1:])
        return Refusal(says, f"{guess} See what it has: python -c {_listing(job)}".strip())
    if error.verb == "demo" and error.error == "LookupError":
        return _short_demo(job, error)
    return None


def size_refusal(job: Job, problem: str, more: dict[str, int]) -> Refusal:
    """Sizes of `--at` that the module does not take, with others where it is clear which."""
    sizes = {**(job.contract.sizes if job.contract else {}), **job.at}
    asked = ", ".join(f"{symbol}={n}" for symbol, n in job.at.items())
    for whole, part in (("D", "H"), ("H", "Hkv")):
        size, step = sizes.get(whole, 0), sizes.get(part, 1)
        if size % step and {whole, part} & job.at.keys():
            symbol = whole if whole in job.at else part
            fit = size + -size % step if symbol == whole else _divisor(size, step)
            more = {symbol: fit}
            problem = f"{whole}={size} is no multiple of {part}={step} ({problem})"
    fixed = ", ".join(f"{symbol}={n}" for symbol, n in {**job.at, **more}.items())
    hint = f'it may take --at "{fixed}"' if more else ""
    trace = f'{_typed(job).command()} --sizes "{asked}"'
    return Refusal(f"--at {asked}: {problem}", hint or f"{trace} explains it")


def _divisor(size: int, least: int) -> int:
    """The first divisor of a size from `least` on."""
    return next(n for n in range(min(least, size), size + 1) if size % n == 0)


def _short_demo(job: Job, error: Raised) -> Refusal:
    """A script that ended before it called a module, or before the step that was asked for."""
    command = f"attnlab trace {job.candidate.file}"
    if job.options.step:
        none = "took only 0 " in error.message
        other = "it trains without an optimizer of torch.optim: name a function or class, FILE:NAME"
        hint = other if none else f"trace an earlier one: {command} --step 1"
        return Refusal(error.message, hint)
    return Refusal(f"{error.message}: say what to trace", f"name it: {command}:CLASS")


def input_refusal(job: Job, trace: Trace | None) -> Refusal | None:
    """A forward that was called with too few arguments, because they could not be inferred."""
    crash = trace.crash if trace else None
    if job.own is None or crash is None or trace is None or trace.ops:
        return None
    missing = _missing(crash.message, "forward")
    if not missing:
        return None
    says = f"{_name(job)}: nothing says what forward is given for {', '.join(missing)}"
    axes = "S B D" if _puts_sequence_first(job) else "B S D"
    more = tuple(f"{name}: {axes}" for name in missing)
    hint = f"say the axes of each, or a value: {_typed(job).with_flags(inputs=more).command()}"
    return Refusal(says, hint)


def _puts_sequence_first(job: Job) -> bool:
    """Whether a class of torch takes (S, B, D), as it does unless batch_first is set."""
    module = sys.modules.get((job.own.module if job.own else None) or "")
    made = getattr(getattr(module, job.candidate.name or "", None), "__init__", None)
    names = getattr(getattr(made, "__code__", None), "co_varnames", ())
    built = job.contract.init if job.contract else {}
    return "batch_first" in names and not built.get("batch_first", False)


def _missing(message: str, method: str) -> list[str]:
    """The names in Python's own sentence: missing 2 required ... arguments: 'dim' and 'heads'."""
    found = re.search(rf"{method}\(\) missing \d+ required [\w-]+ arguments?: (.*)", message)
    return re.findall(r"'(\w+)'", found[1]) if found else []


def _not_installed(job: Job, error: Raised) -> Refusal:
    found = re.search(r"No module named '([\w.]+)'", error.message)
    wanted = found[1] if found else ""
    package = wanted.partition(".")[0]
    where = f"{error.file}:{error.line}: " if error.line and not _asks_for(job, wanted) else ""
    parent, _, last = wanted.rpartition(".")
    guess = did_you_mean(last, _modules_in(job, parent))
    if "." in wanted:
        message = f"{where}there is no module {wanted}: {package} has none of that name"
        look = f"See where it is installed: python -c 'import {package}; print({package})'"
        return Refusal(message, f"{guess} {look}".strip())
    message = f"{where}the package {package} is not installed for this Python"
    how = f"nstall it in the environment that runs attnlab: python -m pip install {package}"
    hint = f"{guess} Or i{how}" if guess else f"i{how}"
    if job.own is None:
        hint += "; a module of your own must be copied into the graded file"
    return Refusal(message, hint)


def _modules_in(job: Job, package: str) -> Iterable[str]:
    """The modules that a package holds, or with "" all that can be imported, by their files."""
    places = [*(job.own.sys_path if job.own else ()), *sys.path]
    folders = [str(Path(place, *package.split("."))) for place in dict.fromkeys(places)]
    return (m.name for m in pkgutil.iter_modules(folders) if not m.name.startswith("_"))


def _asks_for(job: Job, wanted: str) -> bool:
    """The target itself is in the package, so no file is to blame."""
    module = (job.own.module if job.own else None) or ""
    return f"{module}.".startswith(f"{wanted}.")


def _listing(job: Job) -> str:
    module = (job.own.module if job.own else None) or "module"
    return f"'import {module} as m; print(*dir(m))'"


def _name(job: Job) -> str:
    place = job.candidate.file if not (job.own and job.own.module) else job.own.module
    return f"{place}:{job.candidate.name}" if job.candidate.name else place


def _typed(job: Job) -> TraceCommand:
    """The trace command that the user typed, as far as the job holds it."""
    init = job.contract.init if job.contract else {}
    said = ", ".join(f"{k}={v}" for k, v in init.items())
    return TraceCommand(target=_name(job) if job.own else job.candidate.file, init=said)
