"""Parse flags of `attnlab trace`: presets, dtypes, devices, depths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from attnlab.errors import Refused
from attnlab.suggest import did_you_mean, either

Fill = Literal["noise", "small", "arange", "ones", "eye"]
Dtype = Literal["float32", "float64", "bfloat16", "float16"]
TINY = "tiny"
FILLS = ("arange", "ones", "eye", "noise", "small")
DTYPES = ("float32", "float64", "bfloat16", "float16")
SHORT = {"fp32": "float32", "fp64": "float64", "bf16": "bfloat16", "fp16": "float16"}
SHORT |= {"half": "float16", "double": "float64", "float": "float32"}
DEVICES = ("cpu", "cuda")
DECODED = 3  # calls of --decode: one over several positions, and two steps
MOST_CALLS = 64


def one_of(flag: str, said: str, known: Sequence[str]) -> str:
    """The value, if it is known; raises `Refused`."""
    if said in known:
        return said
    hint = f"{did_you_mean(said, known)} {flag} takes {either(known)}".strip()
    raise Refused(f"{flag}: unknown value {said!r}", hint, flag)


def parse_dtype(said: str) -> Dtype:
    return cast(Dtype, one_of("--dtype", SHORT.get(said, said), DTYPES))


def parse_device(said: str) -> str:
    return one_of("--device", said, DEVICES)


def parse_presets(presets: Sequence[str]) -> Fill:
    """How presets fill inputs; `tiny` sets sizes and combines with any of them."""
    fills = [f for f in dict.fromkeys(presets) if one_of("--preset", f, (TINY, *FILLS)) != TINY]
    if len(fills) > 1:
        says = f"--preset {fills[0]} and --preset {fills[1]} fill the same inputs"
        raise Refused(says, f"keep one: --preset {fills[0]}", "--preset")
    return cast(Fill, fills[0]) if fills else "noise"


def parse_depth(said: str) -> int | None:
    """The levels of `--depth`; None where it was not given."""
    if not said:
        return None
    if not (said.isascii() and said.isdigit()):
        hint = "write how many levels of submodules are shown, as in --depth 1"
        raise Refused(f"--depth {said}: a whole number is needed", hint, "--depth")
    return int(said)


def parse_row(said: str) -> int | None:
    """The row of the trace that `--row` means."""
    if said and not (said.isascii() and said.isdigit()):
        raise Refused(f"--row {said}: the number of a row is needed", "as in --row 6", "--row")
    return int(said) if said else None


def parse_step(said: str) -> int:
    """Which step of the optimizer `--step` asks for, from 1; 0 where nothing is said."""
    if said and not (said.isascii() and said.isdigit() and int(said) >= 1):
        hint = "write which step of the optimizer is traced, from 1, as in --step 2"
        raise Refused(f"--step {said}: a whole number is needed", hint, "--step")
    return int(said or 0)


def parse_feed(said: str, several: bool) -> str:
    """The argument that `--feed` names, which only one of several calls can be fed with."""
    if said and not several:
        hint = f"say how many calls are traced: --feed {said} --calls 2"
        raise Refused("--feed needs --calls or --decode", hint, "--feed")
    return said


def parse_calls(said: str) -> int:
    """How many calls `--calls` asks for."""
    if not (said.isascii() and said.isdigit() and 1 <= int(said) <= MOST_CALLS):
        hint = f"write how many calls are traced, 1 to {MOST_CALLS}, as in --calls 3"
        raise Refused(f"--calls {said}: a whole number is needed", hint, "--calls")
    return int(said)
