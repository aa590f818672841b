"""Other variables, fields and arguments in place of those that a line takes."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from attnlab.mutation_testing.operators.base import Edit, Node, Source, called_name, last_name

MOST_NAMES = 32  # that may be written in place of another one


def operand_rewrites(source: Source) -> Iterator[tuple[str, Edit]]:
    """What is wrong with a line, and the change that makes it right if it is."""
    yield from (("wrong-operand", edit) for edit in _other_names(source))
    yield from (("missing-term", edit) for edit in _factors(source))
    yield from (("exponent", edit) for edit in _pairs_of_channels(source))
    yield from (("wrong-operand", edit) for edit in _names_of_statements(source))
    yield from (("wrong-operand", edit) for edit in _other_fields(source))
    yield from (("missing-argument", edit) for edit in _arguments_of_layers(source))
    yield from (("wrong-operand", edit) for edit in _names_for_numbers(source))


def _names_for_numbers(source: Source) -> Iterator[Edit]:
    """A variable of the function in place of a number that a function of the file is given."""
    own = {function.name for function in source.functions()}
    for function in source.functions():
        stored = {n.id for n in of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)}
        stored |= {a.arg for a in function.args.args} - {"self"}
        for call in of_kind(function, ast.Call):
            for given in call.args if called_name(call) in own else ():
                if isinstance(given, ast.Constant) and isinstance(given.value, int):
                    yield from source.put_each(given, sorted(stored)[:MOST_NAMES])


def _other_names(source: Source) -> Iterator[Edit]:
    """Another variable of the function, or attribute of the class, in place of each."""
    for function in source.functions():
        around = (n for n in source.ancestors(function) if isinstance(n, ast.ClassDef))
        owner = next(around, None)
        stored = {n.id for n in of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)}
        stored |= {a.arg for a in function.args.args if a.arg != "self"}
        held = {
            n.attr
            for n in of_kind(owner or function, ast.Attribute)
            if isinstance(n.ctx, ast.Store) and last_name(n.value) == "self"
        }
        names = [
            *sorted(stored),
            *(f"self.{n}" for n in sorted(held) if function.name != "__init__"),
        ]
        for node in of_kind(function, ast.expr):
            said = source.text_of(node) if isinstance(node, (ast.Name, ast.Attribute)) else ""
            if said in names and not isinstance(getattr(node, "ctx", None), ast.Store):
                yield from source.put_each(node, (n for n in names[:MOST_NAMES] if n != said))


def _names_of_statements(source: Source) -> Iterator[Edit]:
    """Another variable of the function wherever a statement has this one, as what it masks."""
    for function in source.functions():
        stored = {n.id for n in of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)}
        for statement in of_kind(function, ast.Assign):
            places: dict[str, list[ast.Name]] = {}
            for node in of_kind(statement, ast.Name):
                places.setdefault(node.id, []).append(node)
            for name, nodes in places.items():
                for other in sorted(stored - {name})[:MOST_NAMES] if len(nodes) > 1 else ():
                    yield Edit(splices=tuple((*source.span(node), other) for node in nodes))


def _other_fields(source: Source) -> Iterator[Edit]:
    """Another field of what is no `self`, as of a config."""
    fields: dict[str, set[str]] = {}
    for node in source.of_type(ast.Attribute):
        fields.setdefault(source.text_of(node.value), set()).add(node.attr)
    known = [
        {source.text_of(n.target) for n in made.body if isinstance(n, ast.AnnAssign)}
        | {f.name for f in made.body if isinstance(f, ast.FunctionDef) and f.decorator_list}
        for made in source.of_type(ast.ClassDef)
    ]
    for node in source.of_type(ast.Attribute):
        own = next((names for names in known if node.attr in names), set())
        others = own | (fields[source.text_of(node.value)] if own else set())
        for name in sorted(others - {node.attr})[:MOST_NAMES]:
            yield source.put(node, f"{source.text_of(node.value)}.{name}")


def _factors(source: Source) -> Iterator[Edit]:
    """A term of a sum times another variable."""
    for function in source.functions():
        names = sorted({n.id for n in of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)})
        for node in of_kind(function, ast.BinOp):
            for term in (node.left, node.right) if isinstance(node.op, ast.Add) else ():
                if isinstance(term, ast.Name):
                    others = (n for n in names[:MOST_NAMES] if n != term.id)
                    yield from source.put_each(term, (f"{term.id} * {n}" for n in others))


def _pairs_of_channels(source: Source) -> Iterator[Edit]:
    """Two neighbours share a number: half of it, rounded down."""
    for node in source.binary(ast.Mult, ast.Div, ast.FloorDiv):
        for operand in (node.left, node.right):
            if isinstance(operand, ast.Name):
                yield source.put(operand, f"({operand.id} // 2)")


def arguments_by_name(source: Source) -> Iterator[Edit]:
    """Arguments that are called as parameters of what is called in the same file, at their own
    places; and those that are left out though a variable has their name."""
    known: dict[str, list[str]] = {}
    for function in source.functions():
        owner = source.parents.get(function)
        name = owner.name if isinstance(owner, ast.ClassDef) else function.name
        if not isinstance(owner, ast.ClassDef) or function.name == "__init__":
            known[name] = [a.arg for a in function.args.args if a.arg != "self"]
    for function in source.functions():
        stored = {a.arg for a in function.args.args}
        for call in of_kind(function, ast.Call):
            takes = known.get(called_name(call), [])
            given: dict[str | None, str] = {k.arg: source.text_of(k.value) for k in call.keywords}
            said = [source.text_of(a) for a in call.args]
            moved = [a for a, own in zip(said, takes, strict=False) if a in takes and a != own]
            absent = stored & {*takes} - {*said, *given}
            if moved or absent:
                plain = [a for a in said if a not in moved]
                named = [*given.items(), *((n, n) for n in (*moved, *sorted(absent)))]
                texts = [*plain, *(f"{n}={value}" for n, value in named)]
                yield source.put(call, f"{source.text_of(call.func)}({', '.join(texts)})")


def _arguments_of_layers(source: Source) -> Iterator[Edit]:
    """An optional argument of a layer of the same file that a call of one leaves out: a switch
    turned, or what a variable of that name holds."""
    switches, others = dict[str, bool](), set[str]()
    for function in source.functions("forward"):
        args = function.args
        last = args.args[len(args.args) - len(args.defaults) :]
        values = [*zip(last, args.defaults, strict=True)]
        values += [(a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d]
        for parameter, default in values:
            if isinstance(default, ast.Constant) and isinstance(default.value, bool):
                switches[parameter.arg] = not default.value
            else:
                others.add(parameter.arg)
    for function in source.functions():
        held = {a.arg for a in function.args.args}
        held |= {n.id for n in of_kind(function, ast.Name) if isinstance(n.ctx, ast.Store)}
        more = {**{n: str(v) for n, v in switches.items()}, **{n: n for n in sorted(others & held)}}
        for call in of_kind(function, ast.Call):
            text = source.text_of(call)
            if "self." in source.text_of(call.func) and call.args and text.endswith(")"):
                absent = (n for n in more if n not in {k.arg for k in call.keywords})
                start = text[:-1].rstrip().rstrip(",")
                yield from source.put_each(call, (f"{start}, {n}={more[n]})" for n in absent))


def of_kind(around: ast.AST, kind: type[Node]) -> list[Node]:
    return [node for node in ast.walk(around) if isinstance(node, kind)]
