"""Properties of what a model is made of: finite gradients, norms that take the scale away, and
tables of offsets whose rows are all in use."""

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from functools import partial
from types import FunctionType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from attnlab.candidate.live.batch import CannotTry
from attnlab.candidate.live.bench import Bench, Broken, NotApplicable
from attnlab.candidate.live.watching import Place, place_of_call, place_of_held
from attnlab.tracer.class_source import class_source_of
from attnlab.tracer.raw_trace import first_line

NORM = re.compile(r"(rms|layer|channel|group|instance|batch)_?norm|norm(2d|1d)?$", re.IGNORECASE)
SCALE = 4.0  # by which the input of a norm is multiplied
CLOSE = 0.15  # of the factor by which its output changes


def finite_gradients(bench: Bench) -> None:
    """A backward pass from the output leaves no NaN in the parameters."""
    main, model = bench.main(), bench.live.model
    watch = Gradients()
    out = bench.live.call({}, watch=watch, graded=True).main
    if not out.requires_grad or out.shape != main.shape:
        raise NotApplicable("no gradient leads back from its output")
    dice = torch.Generator().manual_seed(0)
    weights = torch.randn(out.shape, generator=dice, dtype=torch.float64).to(out.dtype)
    total = (out * weights).masked_fill(~out.isfinite(), 0).sum()
    try:
        total.backward()  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        raise CannotTry(f"a backward pass from its output raised {first_line(error)}") from error
    broken = [n for n, p in model.named_parameters() if p.grad is not None and not _ok(p.grad)]
    model.zero_grad()
    if broken:
        step, where = watch.origin(), None
        how = ""
        if step is not None:
            how, where = f"; it begins at {step[0]}", step[1]
        raise Broken(
            f"its output is finite, and a backward pass from it leaves NaN or infinity in "
            f"{len(broken)} parameters, as {broken[0]}{how}: a root or a logarithm of 0 has an "
            "infinite slope, and 0 times that is NaN, whatever masks it afterwards. Add an "
            "epsilon before it, or take the zeros out first",
            where,
        )


def _ok(gradient: Tensor) -> bool:
    return bool(gradient.isfinite().all())


class Gradients(TorchFunctionMode):
    """Notes the first operation, on the way back, whose operand gets a gradient that is not finite
    while the gradient of its result is."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[str, Place, list[int]]] = []  # with the operands
        self.bad: list[int] = []  # tensors, in the order of the way back
        self.kept: list[Tensor] = []  # so that no identity comes twice

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", "")
        if isinstance(out, Tensor) and out.requires_grad and not name.startswith("__get"):
            given = [a for a in args if isinstance(a, Tensor)]
            self.made.append((name, place_of_call(), [id(a) for a in given]))
            self.kept += [out, *given]
            out.register_hook(partial(self._note, id(out)))  # type: ignore[no-untyped-call]
        return out

    def _note(self, key: int, gradient: Tensor) -> None:
        if not _ok(gradient):
            self.bad.append(key)

    def origin(self) -> tuple[str, Place] | None:
        """The name and the line of that operation."""
        takers = (m for m in reversed(self.made) if self.bad and self.bad[0] in m[2])
        return next(((name, place) for name, place, _ in takers if place.line), None)


def norm_scale(bench: Bench) -> None:
    """What a norm gives does not depend on the size of what it is given."""
    looked = 0
    for name, module, given in _norms(bench):
        with torch.no_grad():
            once, more, bias = module(given), module(SCALE * given), module(torch.zeros_like(given))
        if not isinstance(once, Tensor) or once.shape != given.shape:
            continue
        once, more = once - bias.nan_to_num(), more - bias.nan_to_num()
        looked += 1
        factor = float((once * more).sum() / (once * once).sum().clamp(min=1e-12))
        ratio = float((more - factor * once).norm() / more.norm().clamp(min=1e-12))
        if ratio < CLOSE and abs(factor * SCALE - 1) < CLOSE:
            raise Broken(
                f"{name} ({type(module).__name__}) was given {SCALE:g} times the numbers, and gave "
                f"{factor:.2g} times what it gave before: it divides by the variance, where a norm "
                "divides by its square root",
                _dividing_line(module),
            )
    if not looked:
        raise NotApplicable("it has no norm of its own")


def _norms(bench: Bench) -> Iterator[tuple[str, nn.Module, Tensor]]:
    """The model's own norms without running averages, one of each class, and what they take."""
    seen: dict[type, tuple[str, nn.Module, Tensor]] = {}
    handles = []

    def hook(name: str) -> Any:
        def note(module: nn.Module, args: Any) -> None:
            if len(args) == 1 and isinstance(args[0], Tensor) and args[0].is_floating_point():
                seen.setdefault(type(module), (name, module, args[0].detach().clone()))

        return note

    for name, module in bench.live.model.named_modules():
        own = not type(module).__module__.startswith("torch.") and not list(module.children())
        if own and NORM.search(type(module).__name__) and not list(module.buffers()):
            handles.append(module.register_forward_pre_hook(hook(name)))
    bench.live.call({})
    for handle in handles:
        handle.remove()
    yield from seen.values()


def _dividing_line(module: nn.Module) -> Place | None:
    """The first line of a norm's forward that divides."""
    source = class_source_of(module)
    for node in ast.walk(source.methods.get("forward", ast.Pass())):
        divides = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
        if divides or (isinstance(node, ast.Attribute) and node.attr in ("rsqrt", "div")):
            return Place(source.shown, source.line + getattr(node, "lineno", 1) - 1)
    return None


def offset_table(bench: Bench) -> None:
    """The index of a table of offsets reaches the rows that it has."""
    looked = 0
    for module in bench.live.model.modules():
        tables: list[Tensor] = [p for p in module.parameters(recurse=False) if p.dim() == 2]
        tables += [m.weight for m in module.children() if isinstance(m, nn.Embedding)]
        for name, index in module.named_buffers(recurse=False):
            square = index.dim() == 2 and index.shape[0] == index.shape[1] > 2
            if not square or index.dtype not in (torch.long, torch.int):
                continue
            used, top = len(set(index.flatten().tolist())), int(index.max())
            offsets = _offsets(index.shape[0])
            rows = [t.shape[0] for t in tables if t.shape[0] > top and t.shape[0] in offsets]
            looked += bool(rows)
            if rows and int(index.min()) >= 0 and used < min(rows):
                raise Broken(
                    f"{name} {tuple(index.shape)} reaches {used} of the {min(rows)} rows of its "
                    f"table, up to row {top}: pairs of positions with different offsets get one "
                    "row, as where a row of offsets is multiplied by another width than it has",
                    _made_at(bench.live.model, index),
                )
    if not looked:
        raise NotApplicable("it has no table of offsets with a fixed index")


def _offsets(positions: int) -> set[int]:
    """How many offsets the places of a grid have, for each grid of so many: (2H - 1)(2W - 1)."""
    heights = (h for h in range(1, positions + 1) if positions % h == 0)
    return {(2 * h - 1) * (2 * (positions // h) - 1) for h in heights}


def _made_at(model: nn.Module, index: Tensor) -> Place | None:
    """The line that makes an index: the last one of the function that does, if one is called."""
    held = place_of_held(model, index)
    if held is None:
        return None
    for module in model.modules():
        source = class_source_of(module)
        for node in ast.walk(source.tree or ast.Pass()):
            line = source.line + getattr(node, "lineno", 1) - 1
            if not isinstance(node, ast.Call) or source.shown != held.file or line != held.line:
                continue
            space = vars(sys.modules[type(module).__module__])
            for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
                function = space.get(ast.unparse(call.func))
                if isinstance(function, FunctionType):
                    lines, first = inspect.getsourcelines(function)
                    return Place(held.file, first + len(lines) - 1)
    return held
