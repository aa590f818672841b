"""Snippets to paste beside a module: the templates of `catalogue/snippets.md`, filled in."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from pathlib import Path
from string import Template

from attnlab.errors import Refused
from attnlab.records import Contract, Input, Job, Op, Report, Trace, record
from attnlab.sizes import Sizes, UnknownSize, measure, parse_object, with_head_dim
from attnlab.target.source import parse

SECTION = re.compile(
    r"## (\w+)(?:: ([^\n]*?))?(?: \[([\w-]+)\])?\n\n```python\n(.*?)```", re.DOTALL
)
CALLED = re.compile(r"^def ((?:test_\w+|clip_one_step|profile|debug))\(\)", re.MULTILINE)
ATTENDS = {"softmax", "scaled_dot_product_attention"}
FunctionNode = ast.FunctionDef | ast.ClassDef


@record
class Snippet:
    id: str  # "nan"
    title: str  # "raise where NaN or infinity first appears, forward and backward"
    code: str


def write_snippets(job: Job, report: Report, row: int | None) -> tuple[Snippet, ...]:
    """Those that the module has something for; of one that crashes, how to stop there."""
    contract, trace = job.contract or Contract(), report.trace or Trace()
    module = _is_module(job, trace)
    words = _setup_words(job, contract, module)
    words |= _stop_words(job, trace, row) | _axes_words(contract, trace.ops)
    holds = {c.id for c in report.checks if c.outcome == "passed"}
    holds |= {"weights" for w in trace.weights if w.learned}
    holds |= {"module"} if module else set()
    found = tuple(_filled(words, set() if trace.crash else holds))
    return tuple(s for s in found if s.id in ("setup", "debug")) if trace.crash else found


def row_at(trace: Trace, line: int) -> int:
    """The first row of a line of the file; raises `Refused` where no operation ran there."""
    rows = [op for op in trace.ops if op.line == line and op.file == trace.ops[-1].file]
    if not rows:
        lines = ", ".join(map(str, sorted({op.line for op in trace.ops})))
        raise Refused(f"--line {line}: no operation ran there", f"one ran on {lines}", "--line")
    return rows[0].index


def with_run(snippets: tuple[Snippet, ...]) -> tuple[Snippet, ...]:
    """These, and what calls their functions where the file is run and not where it is imported."""
    calls = CALLED.findall("\n".join(s.code for s in snippets))
    words = {"calls": "\n".join(f"    {name}()" for name in calls)}
    return (*snippets, *(s for s in _filled(words, set()) if s.id == "run"))


def _filled(words: Mapping[str, str], holds: set[str]) -> Iterator[Snippet]:
    text = Path(__file__).parent.parent.joinpath("catalogue", "snippets.md").read_text("utf-8")
    for id_, title, needs, code in SECTION.findall(text):
        wanted = Template(code).get_identifiers()
        known = all(words.get(word) for word in wanted) or (id_ == "setup" and "build" in words)
        if (not needs or needs in holds) and known:
            said, filled = (Template(part).substitute(words) for part in (title, code))
            yield Snippet(id=id_, title=said, code=filled)


# ---------------------------------------------------------------- building and calling


def _is_module(job: Job, trace: Trace) -> bool:
    """Whether it is an nn.Module: by its class, or by what was seen of it in the run."""
    target = _definitions(job).get(job.candidate.name or "")
    if isinstance(target, ast.ClassDef) and target.bases:
        return True
    return bool(trace.weights) or any(op.module for op in trace.ops)


def _definitions(job: Job) -> dict[str, FunctionNode]:
    body = parse(job.candidate.text, job.candidate.file).body
    return {node.name: node for node in body if isinstance(node, FunctionNode)}


def _setup_words(job: Job, contract: Contract, module: bool) -> dict[str, str]:
    sizes, name = with_head_dim(contract.sizes), job.candidate.name or ""
    defined = _definitions(job)
    init = {n: _literal(v, sizes) for n, v in contract.init.items()}
    target = defined.get(name)
    plain = isinstance(target, ast.FunctionDef) and not init
    called = _called(target)
    takes = {a.arg for a in (*called.args.args, *called.args.kwonlyargs)} if called else set()
    given = {i.argument: _drawn(i.argument, contract) for i in contract.inputs}
    given |= {n: _literal(v, sizes) for n, v in contract.arguments.items()}
    makers = {m for v in contract.init.values() for m in re.findall(r"^(\w+)\(", str(v))}
    symbols = [s for s in sizes if s.isidentifier()]
    values = [str(sizes[s]) for s in symbols]
    return {
        "imports": _imports(job, sorted({name, *makers & {*defined}})),
        "sizes": " = ".join(filter(None, map(", ".join, (symbols, values)))),
        "build": name if plain else f"{name}({_pairs(init)})" + ".eval()" * module,
        "inputs": "\n".join(f'    "{n}": {v},' for n, v in given.items()),
        "call": "model(**{**inputs, **changes})"
        if {*given} <= takes
        else "model(*{**inputs, **changes}.values())",
    }


def _called(target: FunctionNode | None) -> ast.FunctionDef | None:
    """The function that a call runs, where the file shows it."""
    if isinstance(target, ast.FunctionDef):
        return target
    own = [n for n in target.body if isinstance(n, ast.FunctionDef)] if target else []
    return next((n for n in own if n.name == "forward"), None)


def _pairs(given: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in given.items())


def _literal(value: object, sizes: Sizes) -> str:
    """A value as Python writes it; a text that means a size or an object is code already."""
    if not isinstance(value, str) or parse_object(value):
        return str(value) if isinstance(value, str) else repr(value)
    try:
        measure(value, sizes)
    except UnknownSize:
        return repr(value)
    return value


def _imports(job: Job, names: list[str]) -> str:
    own, path = job.own, Path(job.candidate.path or job.candidate.file)
    module = (own.module if own else None) or path.stem
    folder = path.absolute().parent
    if own and own.module:
        folder = Path(own.sys_path[0]) if own.sys_path else Path.cwd()
    lines = []
    if folder != Path.cwd():
        lines += ["import sys", "", f"sys.path.insert(0, {str(folder)!r})"]
    if all(part.isidentifier() for part in module.split(".")):
        return "\n".join([*lines, f"from {module} import {', '.join(names)}"])
    lines = ["import importlib", *lines, f"source = importlib.import_module({module!r})"]
    return "\n".join([*lines, *(f"{name} = source.{name}" for name in names)])


def _drawn(name: str, contract: Contract) -> str:
    """An input, or a container of inputs, as an expression."""
    held = {c.name: c for c in contract.containers}.get(name)
    if held is None:
        return _tensor(next(i for i in contract.inputs if i.name == name), contract.sizes)
    parts = [(key, _drawn(f"{name}.{key}", contract)) for key in held.keys]
    if held.kind == "dict":
        return f"{{{', '.join(f'{key!r}: {part}' for key, part in parts)}}}"
    values = [part for _, part in parts]
    return tuple_of(values) if held.kind == "tuple" else f"[{', '.join(values)}]"


def _tensor(given: Input, sizes: Sizes) -> str:
    shape, last = ", ".join(given.axes), given.axes[-1] if given.axes else "1"
    if given.role == "mask":
        square = len(given.axes) > 1 and given.axes[-2] not in ("B", "1")
        forbidden = f"torch.ones({shape}, dtype=torch.bool)" + ".triu(1)" * square
        if not square:
            forbidden = f"torch.zeros({shape}, dtype=torch.bool)"
        return forbidden if given.forbids else f"~{forbidden}"
    if given.role == "positions":
        return f"torch.arange({last}).expand({shape}).clone()"
    if given.role == "segments":
        return f"torch.zeros({shape}, dtype=torch.long)"
    if given.dtype == "int":
        return f"torch.randint({'V' if 'V' in sizes else 16}, {tuple_of(given.axes)})"
    return f"torch.rand({shape}) < 0.5" if given.dtype == "bool" else f"torch.randn({shape})"


# ---------------------------------------------------------------- from the trace


def _axes_words(contract: Contract, ops: tuple[Op, ...]) -> dict[str, str]:
    """Shapes of submodules, and where inputs and output have their samples and positions."""
    sizes = with_head_dim(contract.sizes)
    lines = (f'    "{name}": {axes},' for name, axes in _module_axes(ops, sizes))
    words = {"module_axes": "\n".join(lines)}
    data = [i for i in contract.inputs if i.role == "data" and i.dtype != "bool"]
    first = next((i for i in data if {"B", "S"} <= {*i.axes} and "." not in i.name), None)
    if not first or not ops or not first.name.isidentifier():
        return words
    batch, length = first.axes.index("B"), first.axes.index("S")
    words |= {"x": first.name, "batch": str(batch), "length": str(length)}
    out = ops[-1]
    laid = out.axes[batch : batch + 1] + out.axes[length : length + 1]
    return words | ({"out_shape": _shape(out, sizes)} if laid == ("B", "S") else {})


def _module_axes(ops: tuple[Op, ...], sizes: Sizes) -> Iterator[tuple[str, str]]:
    """The output of each submodule that is one operation, where all its calls give one shape, and
    so do its like in a list of layers."""
    seen: dict[str, set[str]] = {}
    for module, rows in groupby(ops, lambda op: op.module):
        held = list(rows)
        inner = any(op.module.startswith(f"{module}.") for op in ops)
        if module and len(held) == 1 and not inner:
            seen.setdefault(module, set()).add(_shape(held[0], sizes))
        elif module:
            seen.setdefault(module, set()).add("")
    known = {module: shape for module, shapes in seen.items() if (shape := _only(shapes))}
    alike: dict[str, set[str]] = {}
    for module, shape in known.items():
        alike.setdefault(re.sub(r"\d+", "*", module), set()).add(shape)
    for module, shape in known.items():
        if len(alike[re.sub(r"\d+", "*", module)]) == 1:  # experts get as many rows as choose them
            yield module, shape


def _only(shapes: set[str]) -> str:
    return next(iter(shapes)) if len(shapes) == 1 else ""


def _shape(op: Op, sizes: Sizes) -> str:
    return tuple_of(_size(a, n, sizes) for a, n in zip(op.axes, op.shape, strict=True))


def tuple_of(parts: Iterable[str]) -> str:
    """`(B, S)`, `(B,)`."""
    text = ", ".join(parts)
    return f"({text}{',' * (text != '' and ', ' not in text)})"


def _size(axis: str, size: int, sizes: Sizes) -> str:
    """`3 * D`, or the number where the name of the axis does not give it."""
    plain = axis.replace("'", "")
    try:
        known = measure(plain, sizes) == size
    except UnknownSize:
        known = False
    return re.sub(r"(?<=\w)([*+-])(?=\w)", r" \1 ", plain) if known else str(size)


def _stop_words(job: Job, trace: Trace, row: int | None) -> dict[str, str]:
    """Where to stop: at a row, where it crashes, at a finding, or at the attention weights."""
    if row is not None and not 0 <= row < len(trace.ops):
        last = f"the trace has rows 0 to {len(trace.ops) - 1}" if trace.ops else "it has no rows"
        raise Refused(f"--row {row}: there is no such row", last, "--row")
    at: list[tuple[str, int, str]] = [(c.file, c.line, c.source) for c in (trace.crash,) if c]
    at += [(f.file, f.line, "") for f in trace.grave]
    at += [(op.file, op.line, "") for op in trace.ops if op.op in ATTENDS]
    at += [(op.file, op.line, "") for op in trace.ops[-1:]]
    if row is not None:
        at = [(trace.ops[row].file, trace.ops[row].line, "")]
    file, line, source = next(iter(at), ("", 0, ""))
    first = next((op for op in trace.ops if (op.file, op.line) == (file, line)), None)
    source = source or (first.source if first else "")
    path = Path(job.candidate.path) if file == job.candidate.file else Path(file)
    place = str(path.absolute()) if file and path.is_file() else ""
    return {"file": place, "line": str(line), "place": " ".join(f"{file}:{line}: {source}".split())}
