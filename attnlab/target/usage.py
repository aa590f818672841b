"""What classes do with what they are given: the sizes their layers make of constructor arguments,
and how forward uses its inputs. Read off the syntax tree; nothing runs.

Names of arguments say much (`conventions`), but `vocab`, `block` or an `x` that goes into an
embedding are understood only by their use.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from attnlab.catalogue.literals import Scalar, Symbol
from attnlab.target.conventions import DIMENSIONS, FEEDS, LITERALS, names_mask
from attnlab.target.mask_usage import (
    fresh_axes,
    hides_padding,
    is_mask,
    last_name,
    mask_meaning,
    mask_shape,
    same_values,
)

Function = ast.FunctionDef | ast.AsyncFunctionDef
D, H, V, M, F = map(Symbol, ("D", "H", "V", "M", "F"))
# What each argument of a layer is, by its place and by its name.
Roles = dict[str, Scalar | None]
_LAYER: Roles = {"d_model": D, "nhead": H, "dim_feedforward": F}
LAYERS: dict[str, Roles] = {
    "Embedding": {"num_embeddings": V, "embedding_dim": D},
    "Linear": {"in_features": D, "out_features": F},
    "LayerNorm": {"normalized_shape": D},
    "RMSNorm": {"normalized_shape": D},
    "MultiheadAttention": {"embed_dim": D, "num_heads": H},
    "TransformerEncoderLayer": _LAYER,
    "TransformerDecoderLayer": _LAYER,
    "Transformer": {"d_model": D, "nhead": H, "num_encoder_layers": 2, "num_decoder_layers": 2},
    "TransformerEncoder": {"encoder_layer": None, "num_layers": 2},
    "TransformerDecoder": {"decoder_layer": None, "num_layers": 2},
    "Conv2d": {"in_channels": 3, "out_channels": D, "kernel_size": 4, "stride": 4},
    "Dropout": {"p": 0.0},
    "range": {"stop": 2},
    "ones": {"rows": M, "columns": M},
}
IDS, VECTORS, PICTURE, CHANNELS_LAST = "ids", "vectors", "picture", "channels last"
FED = {
    **dict.fromkeys(("Embedding", "embedding", "one_hot"), IDS),
    **dict.fromkeys(("Linear", "LayerNorm", "RMSNorm", "MultiheadAttention"), VECTORS),
    **dict.fromkeys(("TransformerEncoder", "TransformerEncoderLayer", "GRU", "LSTM"), VECTORS),
    "Conv2d": PICTURE,
}
CHANNELLED = {"Conv2d": 0, "BatchNorm2d": 0, "GroupNorm": 1}  # the place of their channels
RANKS = {2: IDS, 3: VECTORS, 4: PICTURE}
TIME_FIRST = {n for n in LAYERS if n.startswith(("Transformer", "Multi"))} - {
    "TransformerEncoder",
    "TransformerDecoder",
}
HEADS = ("head", "out", "fc", "classifier", "decoder", "unembed", "proj_vocab", "logits")
DEEP = 6  # classes that a value is followed through
LENGTHS = re.compile(r"[TSL]|(seq|src|tgt|time)?_?(len|length|steps)|seq|time", re.IGNORECASE)
HEIGHT = re.compile(r"h|height|rows", re.IGNORECASE)
CHANNEL = re.compile(r"[cd]|dim|ch|channels", re.IGNORECASE)
BATCH = re.compile(r"B|bsz?|n?_?batch(_size)?")  # by itself: `n = ids.size(1)` is a length
# How a docstring says that time is the first axis.
SAID_FIRST = re.compile(
    r"\((T|S|L|time|steps|seq\w*|len\w*), ?(B|N|bsz?|batch\w*)\b", re.IGNORECASE
)
SAID_BATCH = re.compile(r"\((B|N|bsz?|batch\w*), ?\w+( \w+)?(,|\))", re.IGNORECASE)
ENTRIES = re.compile(r"[BN]|bsz?|n?_?batch(_size)?", re.IGNORECASE)


class ClassUsage:
    """The classes and functions of one file, and what each does with its arguments."""

    def __init__(
        self,
        classes: Mapping[str, ast.ClassDef],
        functions: Mapping[str, Function] | None = None,
        comments: Mapping[int, str] | None = None,
    ) -> None:
        """`comments` are those of the file by their lines."""
        self.classes, self.comments = classes, comments or {}
        self.methods = {
            name: {i.name: i for i in node.body if isinstance(i, Function)}
            for name, node in classes.items()
        }
        self.nodes: dict[str, ast.AST] = {**classes, **(functions or {})}
        self.methods |= {name: {"forward": node} for name, node in (functions or {}).items()}
        self.layers = {name: dict(self._layers(name)) for name in self.methods}

    # ------------------------------------------------------------ constructor

    def width(self, name: str, argument: str, depth: int = DEEP) -> str:
        """The constructor's argument, of no usual name, that is the width of an input: that of the
        linear layer, or convolution over time, which takes it as it comes."""
        methods = self.methods[name]
        if not {"__init__", "forward"} <= methods.keys() or not depth:
            return ""
        takes = {
            last_name(call.func).lower()
            for call, _ in _calls(methods["forward"])
            if call.args and ast.unparse(call.args[0]) in (argument, f"{argument}.transpose(1, 2)")
        }
        for call, target in _calls(methods["__init__"]):
            if target.rpartition(".")[2].lower() not in takes:
                continue
            given = [ast.unparse(a) for a in call.args]
            made, place = last_name(call.func), 0
            if made in self.methods:  # a class of this file, to which the width is handed on
                named = _parameters(self.methods[made].get("forward"))
                inner = self.width(made, named[0], depth - 1) if named else ""
                known = _parameters(self.methods[made].get("__init__"))
                place = known.index(inner) if inner in known else len(given)
            elif made not in ("Linear", "Conv1d"):
                continue
            first = given[place] if place < len(given) else ""
            return "" if first in DIMENSIONS else first
        return ""

    def roles(self, name: str, depth: int = DEEP) -> dict[str, Scalar]:
        """By constructor argument, or field of a config: the size it means, or a fitting value."""
        function = self.methods[name].get("__init__")
        if function is None or not depth:
            return {}
        known = _aliases(function)
        found: dict[str, Scalar] = {}
        for statement in ast.walk(function):
            if not (isinstance(statement, ast.BinOp) and isinstance(statement.op, ast.FloorDiv)):
                continue
            if DIMENSIONS.get(_name(statement.left, known)) == "D":
                found.setdefault(_name(statement.right, known), H)
        for call, target in _calls(function):
            for argument, role in self._arguments(call, target, depth):
                if text := _name(argument, known):
                    found.setdefault(text, role)
        return {text: role for text, role in found.items() if text}

    def _arguments(
        self, call: ast.Call, target: str, depth: int
    ) -> Iterator[tuple[ast.expr, Scalar]]:
        """The arguments of a call whose roles are known."""
        made = last_name(call.func)
        roles = dict(LAYERS.get(made, {}))
        if made in self.classes:
            function = self.methods[made].get("__init__")
            names = _parameters(function)
            inner = self.roles(made, depth - 1)
            roles = {n: inner.get(n, LITERALS.get(n)) for n in names}
            roles |= {n: Symbol(DIMENSIONS[n]) for n in names if n in DIMENSIONS}
        elif made == "Embedding" and any(w in target for w in ("pos", "wpe")):
            roles["num_embeddings"] = M
        elif made == "Embedding" and any(w in target for w in ("segment", "type")):
            roles["num_embeddings"] = 2
        elif made == "Linear" and any(w in target for w in HEADS):
            roles["out_features"] = V
        elif made == "ones" and len({*map(ast.unparse, call.args)}) == len(call.args):
            roles = {}  # what is no square is no mask of all positions
        pairs = [*zip(call.args, roles, strict=False)]
        pairs += [(k.value, k.arg) for k in call.keywords if k.arg]
        for argument, name in pairs:
            role = roles.get(name)
            if role is not None:
                yield argument, role

    # ------------------------------------------------------------ inputs

    def fed(self, name: str, argument: str, depth: int = DEEP, method: str = "forward") -> str:
        """What forward, or a method that it calls, takes for `argument`: ids, vectors, a picture;
        "" where nothing says it."""
        function = self.methods[name].get(method)
        if function is None or not depth:
            return ""
        unpacked = list(_unpacked(function, argument))
        ranks = [len(names) for names in unpacked]
        for call, _ in _calls(function):
            for place, given in enumerate(call.args):
                if not (isinstance(given, ast.Name) and given.id == argument):
                    continue
                kind = self._taken(name, call.func, place, depth)
                if kind and not (kind == VECTORS and ranks):
                    return kind
        nodes = list(ast.walk(function))
        if any(_compares_with_padding(n, argument) or _looks_up(n, argument) for n in nodes):
            return IDS
        if ranks == [4] and HEIGHT.fullmatch(unpacked[0][1]) and CHANNEL.fullmatch(unpacked[0][3]):
            return CHANNELS_LAST
        return RANKS.get(ranks[0], "") if ranks else ""

    def _taken(self, name: str, called: ast.expr, place: int, depth: int) -> str:
        """What a layer, or a method of the class itself, takes at this place of its arguments."""
        made, method = self._called(name, called)
        if made not in self.methods:
            return FED.get(made, "")
        names = _parameters(self.methods[made].get(method))
        return self.fed(made, names[place], depth - 1, method) if place < len(names) else ""

    def _called(self, name: str, called: ast.expr) -> tuple[str, str]:
        """The class or function that a call goes to, and its method, which may be one of the class
        itself."""
        own = ast.unparse(called).removeprefix("self.")
        if own in self.methods[name] and ast.unparse(called) != own:
            return name, own
        return self._made(name, called), "forward"

    def is_padding(self, name: str, argument: str) -> bool:
        """Whether forward gives it on as a mask over keys, whatever it is called."""
        forward = self.methods[name].get("forward")
        return forward is not None and hides_padding(forward, argument)

    def is_mask(self, name: str, argument: str, depth: int = DEEP, method: str = "forward") -> bool:
        """Whether forward, or what it is given to, masks by an argument."""
        function = self.methods[name].get(method)
        if function is None or not depth:
            return False
        return is_mask(function, argument) or any(
            names_mask(taken) or self.is_mask(made, taken, depth - 1, inner)
            for made, inner, taken in self._handed_to(name, argument, method)
        )

    def _handed_to(
        self, name: str, argument: str, method: str = "forward"
    ) -> Iterator[tuple[str, str, str]]:
        """The classes and functions of the file, and methods of the class itself, that a method
        gives an argument to, with what each calls it."""
        function = self.methods[name][method]
        names = same_values(function, argument)
        for call, _ in _calls(function):
            made, inner = self._called(name, call.func)
            parameters = _parameters(self.methods.get(made, {}).get(inner))
            pairs = [*zip(parameters, call.args, strict=False)]
            pairs += [(k.arg, k.value) for k in call.keywords if k.arg in parameters]
            for taken, given in pairs:
                if isinstance(given, ast.Name) and given.id in names:
                    yield made, inner, taken

    def mask_axes(
        self,
        name: str,
        argument: str,
        depth: int = DEEP,
        fresh: int = 0,
        method: str = "forward",
    ) -> str:
        """Axes and meaning of a mask by its use: `B S bool allows`; "" where it says nothing.
        `fresh` axes were added to it before."""
        function = self.methods[name].get(method)
        if function is None or not depth:
            return ""
        fresh += fresh_axes(function, argument)
        if meaning := mask_meaning(function, argument):
            keys = hides_padding(function, argument)
            return f"{'B S' if keys else mask_shape(fresh)} bool {meaning}"
        for made, inner, taken in self._handed_to(name, argument, method):
            if said := self.mask_axes(made, taken, depth - 1, fresh, inner):
                return said
        read = any(isinstance(n, ast.Name) and n.id == argument for n in ast.walk(function))
        return "" if read or argument in FEEDS else "B S bool allows"  # it may be anything

    def keys(self, name: str, argument: str) -> tuple[str, ...]:
        """The texts that forward looks an argument up by, as in `batch["ids"]`."""
        function = self.methods[name].get("forward", ast.Pass())
        looked = (n for n in ast.walk(function) if isinstance(n, ast.Subscript))
        found = (n.slice for n in looked if ast.unparse(n.value) == argument)
        texts = (k.value for k in found if isinstance(k, ast.Constant))
        return tuple(dict.fromkeys(text for text in texts if isinstance(text, str)))

    def rank(self, name: str, argument: str) -> int:
        """How many axes forward unpacks of an argument; 0 where it does not."""
        unpacked = _unpacked(self.methods[name].get("forward"), argument)
        return max((len(names) for names in unpacked), default=0)

    def cut_in_patches(self, name: str) -> tuple[str, ...]:
        """The arguments of the constructor that it divides by the size of a patch."""
        constructor = self.methods[name].get("__init__", ast.Pass())
        cuts = (n for n in ast.walk(constructor) if isinstance(n, ast.BinOp))
        whole = (n for n in cuts if isinstance(n.op, ast.FloorDiv))
        return tuple(ast.unparse(n.left) for n in whole if "patch" in ast.unparse(n.right))

    def channels(self, name: str) -> int | str:
        """Of the pictures that the first convolution or norm takes: a number, or the constructor's
        argument; "" where there is neither."""
        for reached in (name, *sorted(self._reached(name, DEEP) - {name})):
            for node in ast.walk(self.nodes[reached]):
                made = last_name(node.func) if isinstance(node, ast.Call) else ""
                given = node.args[CHANNELLED.get(made, 9) :] if isinstance(node, ast.Call) else []
                if given and isinstance(given[0], ast.Constant) and type(given[0].value) is int:
                    return given[0].value
                if given and isinstance(given[0], ast.Name) and reached == name:
                    return given[0].id
        return ""

    def is_time_first(self, name: str) -> bool:
        """Whether it has `batch_first=False` itself, unpacks a shape as `T, B, D`, or gives
        PyTorch's layers inside, without batch_first, (S, B, D) as it came."""
        own = self.methods[name].get("__init__")
        if own is not None and re.search(
            r"\bbatch_first(: *bool)? *= *False\b", ast.unparse(own.args)
        ):
            return True
        forward = self.methods[name].get("forward")
        text, said = ast.unparse(self.nodes[name]), self._said_of_shapes(name)
        if SAID_BATCH.search(said) and not SAID_FIRST.search(said):
            return False
        said += "".join(map(self._said_of_shapes, self._reached(name, DEEP) - {name}))
        for argument in _parameters(forward)[:1]:
            rows = rf"(\w+)\[: ?{argument}\.(size\(0\)|shape\[0\])\]"
            in_table = any(_has_batch_in_the_middle(m[1], text) for m in re.finditer(rows, text))
            if _second_axis_is_batch(forward, argument) or SAID_FIRST.search(said) or in_table:
                return True
            for names in _unpacked(forward, argument):
                if LENGTHS.fullmatch(names[0]) and ENTRIES.fullmatch(names[1]):
                    return True
            counts = rf"arange\({argument}\.(size\(0\)|shape\[0\])"  # as positions, not samples
            if re.search(counts, text) and self._unpacks_time_first(name):
                return True
        nodes = [n for c in self._reached(name, DEEP) for n in ast.walk(self.nodes[c])]
        calls = [n for n in nodes if isinstance(n, ast.Call)]
        layers = [c for c in calls if last_name(c.func) in TIME_FIRST]
        turned = any(
            last_name(c.func) in ("transpose", "permute", "swapaxes")
            and [ast.unparse(a) for a in c.args[:2]] in (["0", "1"], ["1", "0"])
            for c in calls
        )
        first = [k for c in layers for k in c.keywords if k.arg in ("batch_first", None)]
        return bool(layers) and not first and not turned

    def _said_of_shapes(self, name: str) -> str:
        """What the docstring of forward and the comments of a class say."""
        node, forward = self.nodes[name], self.methods[name].get("forward")
        first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0) or 0
        told = [text for line, text in self.comments.items() if first <= line <= last]
        return "\n".join([(ast.get_docstring(forward) if forward else "") or "", *told])

    def _unpacks_time_first(self, name: str) -> bool:
        """Whether a module inside unpacks the shape of what it is given as `T, B, D`."""
        for inner in self._reached(name, DEEP) - {name}:
            forward = self.methods.get(inner, {}).get("forward")
            for argument in _parameters(forward)[:1]:
                for names in _unpacked(forward, argument):
                    if LENGTHS.fullmatch(names[0]) and ENTRIES.fullmatch(names[1]):
                        return True
        return False

    def _reached(self, name: str, depth: int) -> set[str]:
        used = {n.id for n in ast.walk(self.nodes[name]) if isinstance(n, ast.Name)}
        inner = (used & set(self.nodes)) - {name}
        return {name}.union(*(self._reached(n, depth - 1) for n in inner)) if depth else {name}

    def roots(self, names: list[str]) -> list[str]:
        """Those of the classes that no other class of the file mentions."""
        used = {
            n.id
            for name in names
            for n in ast.walk(self.classes[name])
            if isinstance(n, ast.Name) and n.id != name
        }
        return [name for name in names if name not in used]

    # ------------------------------------------------------------ attributes

    def _layers(self, name: str) -> Iterator[tuple[str, str]]:
        """Each attribute of self, and each name inside its ModuleDict, with the class it is of."""
        for node in ast.walk(self.methods[name].get("__init__", ast.Pass())):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
                yield node.targets[0].attr, _first_made(node.value)
            if isinstance(node, ast.Call) and last_name(node.func) in ("dict", "ModuleDict"):
                yield from ((k.arg, _first_made(k.value)) for k in node.keywords if k.arg)
            if isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                for key, value in pairs:
                    if isinstance(key, ast.Constant) and isinstance(key.value, str):
                        yield key.value, _first_made(value)

    def _made(self, name: str, function: ast.expr) -> str:
        """The class of the layer that a call goes to; for another function, its own name."""
        text = last_name(function)
        if isinstance(function, ast.Attribute):
            return self.layers[name].get(text, text if text in ("embedding", "one_hot") else "")
        if text in self.methods and text not in self.classes:
            return text
        if isinstance(function, ast.Name):  # for layer in self.layers: layer(x)
            for loop in ast.walk(self.methods[name]["forward"]):
                if isinstance(loop, ast.For) and _mentions(loop.target, text):
                    held = [n.attr for n in ast.walk(loop.iter) if isinstance(n, ast.Attribute)]
                    return next((self.layers[name][h] for h in held if h in self.layers[name]), "")
        return ""


def _parameters(function: Function | None) -> list[str]:
    names = [a.arg for a in function.args.args] if function else []
    return names[1:] if names[:1] == ["self"] else names


def _first_made(node: ast.expr) -> str:
    """The class that is made first: Conv2d of `nn.Sequential(nn.Conv2d(...), ...)`."""
    if isinstance(node, ast.ListComp | ast.GeneratorExp):
        return _first_made(node.elt)
    if isinstance(node, ast.List):
        return _first_made(node.elts[0]) if node.elts else ""
    if not isinstance(node, ast.Call):
        return ""
    made = last_name(node.func)
    copies = made.islower() and any(isinstance(given, ast.Call) for given in node.args[:1])
    if copies or (made in ("Sequential", "ModuleList") and node.args):  # clones(Block(...), 4)
        first = node.args[0]
        return _first_made(first.value if isinstance(first, ast.Starred) else first)
    return made


def _calls(function: Function) -> Iterator[tuple[ast.Call, str]]:
    """The calls in the order of the source, each with the text it is assigned to."""
    found: list[tuple[ast.Call, str]] = []
    for statement in ast.walk(function):
        target = ""
        if isinstance(statement, ast.Assign):
            target = ast.unparse(statement.targets[0]).lower()
        elif isinstance(statement, ast.keyword) and statement.arg:
            target = statement.arg.lower()
        if isinstance(statement, (ast.Assign, ast.keyword)) and isinstance(
            statement.value, ast.Call
        ):
            found.append((statement.value, target))
    told = {id(call) for call, _ in found}
    found += [(n, "") for n in ast.walk(function) if isinstance(n, ast.Call) and id(n) not in told]
    unique = {id(call): (call, target) for call, target in reversed(found)}
    return iter(sorted(unique.values(), key=lambda pair: (pair[0].lineno, pair[0].col_offset)))


def _aliases(function: Function) -> dict[str, str]:
    """Names and attributes by the argument, or field of a config, that is assigned to them."""
    arguments = [a.arg for a in (*function.args.args[1:], *function.args.kwonlyargs)]
    known = {name: name for name in arguments}
    for node in ast.walk(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        left, right = node.targets[0], node.value
        pairs = [(left, right)]
        if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple):
            pairs = [*zip(left.elts, right.elts, strict=False)]
        for to, value in pairs:
            if text := _name(value, known):
                known.setdefault(ast.unparse(to), text)
    return known


def _name(node: ast.expr, known: Mapping[str, str]) -> str:
    """The argument, or field of a config, that an expression is, or is a few more than, as in
    `vocab + 1`; "" for others."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        node = node.left if isinstance(node.right, ast.Constant) else node
    text = ast.unparse(node)
    if text in known:
        return known[text]
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.attr if node.value.id in known else ""
    return ""


def _unpacked(function: Function | None, argument: str) -> Iterator[list[str]]:
    """The names where forward unpacks `argument.shape`, as in `B, S, D = x.shape`."""
    for node in ast.walk(function) if function else ():
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Tuple):
            continue
        elements = node.targets[0].elts
        whole = ast.unparse(node.value) in (f"{argument}.shape", f"{argument}.size()")
        if whole and not any(isinstance(e, ast.Starred) for e in elements):
            yield [ast.unparse(e) for e in elements]


def _has_batch_in_the_middle(table: str, text: str) -> bool:
    """Whether a table of positions is made as (length, 1, D)."""
    made = (
        rf"\b{table}\.unsqueeze\(1\)|\b{table}['\"]?(,| =) [^\n]*(\w+, 1, \w+\)|unsqueeze\(1\)\)$)"
    )
    turned = rf"\b{table}\.unsqueeze\(0\)\.transpose\(0, 1\)"
    return bool(re.search(f"{made}|{turned}", text, re.MULTILINE))


def _second_axis_is_batch(function: Function | None, argument: str) -> bool:
    """`bs = x.shape[1]`."""
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign)] if function else []
    texts = (f"{argument}.shape[1]", f"{argument}.size(1)")
    return any(
        ast.unparse(n.value) in texts and BATCH.fullmatch(ast.unparse(n.targets[0]))
        for n in assigned
    )


def _compares_with_padding(node: ast.AST, argument: str) -> bool:
    """`ids != PAD`, as only ids are compared."""
    return (
        isinstance(node, ast.Compare)
        and ast.unparse(node.left) == argument
        and bool(re.search(r"pad", ast.unparse(node.comparators[0]), re.IGNORECASE))
    )


def _looks_up(node: ast.AST, argument: str) -> bool:
    """`self.table[ids]`."""
    match node:
        case ast.Subscript(value=ast.Attribute(), slice=ast.Name(id=name)):
            return name == argument
    return False


def _mentions(node: ast.expr, name: str) -> bool:
    return any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node))
