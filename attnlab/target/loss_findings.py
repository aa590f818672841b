"""What the text of a training script gives to its losses, and what it freezes."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.target.source_walk import Function, Told, arguments, called, line_of, scopes

# By loss: what its first argument must not have gone through, what it takes, what helps.
TAKES = {
    "cross_entropy": ("softmax", "logits", "it applies log_softmax itself: give it the logits"),
    "binary_cross_entropy_with_logits": (
        "sigmoid",
        "logits",
        "it applies a sigmoid itself: give it the logits",
    ),
    "kl_div": ("softmax", "log-probabilities", "use log_softmax in place of softmax"),
    "nll_loss": ("softmax", "log-probabilities", "use log_softmax in place of softmax"),
}
MODULES = {
    "CrossEntropyLoss": "cross_entropy",
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "KLDivLoss": "kl_div",
    "NLLLoss": "nll_loss",
}
SAME = {"flatten", "view", "reshape", "detach", "contiguous", "clone", "unsqueeze", "squeeze"}
IGNORED = r"-100|ignore_?(index|id|label)?"
NORMS = {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "SyncBatchNorm"}


def probability_arguments(tree: ast.Module) -> Iterator[Told]:
    """A loss that wants logits, or their logarithms, and gets probabilities."""
    losses, says_so = dict[str, str](), "log_target" in ast.unparse(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and called(node.value) in MODULES:
            losses |= {ast.unparse(t): MODULES[called(node.value)] for t in node.targets}
    for _, nodes in scopes(tree):
        made: dict[str, ast.expr] = {}
        for node in nodes:
            if isinstance(node, ast.Assign):
                made |= {t.id: node.value for t in node.targets if isinstance(t, ast.Name)}
            if not isinstance(node, ast.Call):
                continue
            loss = losses.get(ast.unparse(node.func), called(node))
            given = [*node.args[:1], *(k.value for k in node.keywords if k.arg == "input")]
            if loss not in TAKES or not given:
                continue
            first = _peeled(given[0], made)
            through, wanted, help_ = TAKES[loss]
            if called(first) == through:
                yield Told(
                    node.lineno,
                    "probabilities-into-loss",
                    f"{loss} takes {wanted}, and gets {ast.unparse(first)[:60]} (line "
                    f"{line_of(first)}): {help_}",
                )
            given = [*node.args[1:2], *(k.value for k in node.keywords if k.arg == "target"), node]
            target = _peeled(given[0], made) if loss == "kl_div" else node
            if called(target) in ("log_softmax", "log") and not says_so:
                yield Told(
                    node.lineno,
                    "divergence-target",
                    f"kl_div takes probabilities as its target, and gets {ast.unparse(target)[:60]}"
                    f" (line {line_of(target)}): pass log_target=True, or use softmax",
                )


def _peeled(value: ast.expr, made: dict[str, ast.expr]) -> ast.expr:
    """What a name stands for, without a change of its shape."""
    value = made.get(getattr(value, "id", ""), value)
    given = arguments(value) if called(value) in SAME else []
    return _peeled(given[0], {}) if given else value


def masked_labels(tree: ast.Module) -> Iterator[Told]:
    """Labels of masked tokens that are copied after the tokens were masked."""
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function):
            continue
        written: dict[str, tuple[int, str]] = {}  # by name: where it was overwritten, with what
        for node in nodes:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            target, value = node.targets[0], node.value
            mask = re.search(r"mask(_?(token|id|idx|index))*$", ast.unparse(value), re.IGNORECASE)
            if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name) and mask:
                written.setdefault(target.value.id, (node.lineno, ast.unparse(value)))
                continue
            name = target.id if isinstance(target, ast.Name) else ""
            if called(value) in ("where", "masked_fill") and re.search(
                r"mask(_?(token|id|idx|index))+\b|\bMASK\b", ast.unparse(value)
            ):
                if name in {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}:
                    written.setdefault(name, (node.lineno, "the mask token"))
                continue
            if not re.search(r"label|target|gold", name, re.IGNORECASE):
                continue
            copied = _copied(value)
            if copied in written:
                line, by = written[copied]
                yield Told(
                    node.lineno,
                    "labels-overwritten",
                    f"{name} is taken from {copied} after line {line} has put {by} into it: the "
                    "model is taught the masked tokens, not the words behind them. Keep a copy "
                    "from before",
                )


def _copied(value: ast.expr) -> str:
    """The variable that labels are copied from: `x.clone()`, `where(m, x, -100)`; "" for others."""
    if isinstance(value, ast.Name):
        return value.id
    if called(value) == "where" and isinstance(value, ast.Call) and len(value.args) == 3:
        names = [a.id for a in value.args[1:] if isinstance(a, ast.Name)]
        return names[0] if names and re.search(IGNORED, ast.unparse(value)) else ""
    owner = getattr(getattr(value, "func", None), "value", None)
    if called(value) in ("clone", "masked_fill", "detach") and isinstance(owner, ast.Name):
        return owner.id
    return ""


def frozen_statistics(tree: ast.Module) -> Iterator[Told]:
    """A frozen part with batch statistics that train() sets in motion again."""
    kinds = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef | Function)]
    normed = {n.name for n in kinds if any(called(m) in NORMS and _tracks(m) for m in ast.walk(n))}
    built = {called(m) for n in kinds for m in ast.walk(n)}  # by a helper, in a class
    normed |= {n.name for n in kinds if normed & built & {called(m) for m in ast.walk(n)}}
    text = ast.unparse(tree)
    trained = re.search(r"\.train\(\)", text) and not re.search(STILL, text)
    for name, line in _frozen_parts(tree).items() if normed and trained else ():
        last = name.rpartition(".")[2]
        held = not last or any(
            re.search(rf"\b{last}\b(: \w+)? = (nn\.Sequential\([^\n]*)?\b{kind}\(", text)
            or (len(last) > 3 and last.lower() in kind.lower())  # handed in: MultiHead(Encoder())
            for kind in normed
        )
        if held and not re.search(rf"\b{last}\.(eval|train)\(", text if last else ""):
            shown = name or "what is frozen here"
            yield Told(
                line,
                "frozen-statistics",
                f"{shown} has BatchNorm layers, and train() of what holds it sets them to train "
                "mode: their running averages go on moving with each batch, frozen or not. Call "
                f"{f'{name}.eval()' if name else 'eval() of that part'} after train()",
            )


# A part, or its norms, that are kept in eval mode by themselves, or frozen for a while only.
STILL = r"requires_grad(_\(| = )True|def train\(self|\.\w+\.eval\(\)|isinstance\(\w+, [^)]*Norm"


def _tracks(call: ast.AST) -> bool:
    return "track_running_stats=False" not in ast.unparse(call)


def _frozen_parts(tree: ast.Module) -> dict[str, int]:
    """What is frozen as a whole, with its line: `for p in x.parameters(): p.requires_grad = False`
    or `x.requires_grad_(False)`."""
    found: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.For) and called(node.iter) == "parameters":
            body = ast.unparse(ast.Module(body=node.body, type_ignores=[]))
            if re.search(r"requires_grad = False|requires_grad_\(False\)", body):
                found[ast.unparse(node.iter).removesuffix(".parameters()")] = node.lineno
        if isinstance(node, ast.For) and called(node.iter) == "named_parameters":
            found |= _frozen_by_name(node)
        if called(node) == "requires_grad_" and ast.unparse(node).endswith("requires_grad_(False)"):
            found[ast.unparse(node).removesuffix(".requires_grad_(False)")] = line_of(node)
    return {name: line for name, line in found.items() if re.fullmatch(r"[\w.]*", name)}


def _frozen_by_name(loop: ast.For) -> dict[str, int]:
    """`if name.startswith("trunk"): p.requires_grad = False`; "" for all but what is named."""
    found: dict[str, int] = {}
    for test in (n for n in ast.walk(loop) if isinstance(n, ast.If)):
        body = ast.unparse(ast.Module(body=test.body, type_ignores=[]))
        if re.search(r"requires_grad = False|requires_grad_\(False\)", body):
            said = [n.value for n in ast.walk(test.test) if isinstance(n, ast.Constant)]
            words = [str(word).strip(".").partition(".")[0] for word in said]
            others = re.search(r"\bnot\b", ast.unparse(test.test))
            found |= dict.fromkeys([""] if others else words, loop.lineno)
    return found


KL = re.compile(r"0\.5 \* (torch\.sum\(.*(log_?var|lv)|.*(log_?var|lv).*\.sum\()")
MEANS = {"mse_loss", "binary_cross_entropy", "binary_cross_entropy_with_logits", "l1_loss"}


def uneven_elbos(tree: ast.Module) -> Iterator[Told]:
    """A mean over all numbers of a sample, beside a divergence that is summed over its latents."""
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function):
            continue
        made = {
            ast.unparse(n.targets[0]): n
            for n in nodes
            if isinstance(n, ast.Assign) and len(n.targets) == 1
        }
        means = {
            name
            for name, node in made.items()
            if called(node.value) in MEANS and "reduction" not in ast.unparse(node.value)
        }
        summed = {name for name, node in made.items() if KL.search(ast.unparse(node.value))}
        for node in nodes:
            if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)):
                continue
            sides = {ast.unparse(node.left), ast.unparse(node.right)}
            recon, divergence = sides & means, sides & summed
            if recon and divergence:
                first, other = min(recon), min(divergence)
                yield Told(
                    made[first].lineno,
                    "terms-uneven",
                    f"{first} is a mean over all numbers of a sample, and {other} (line "
                    f"{made[other].lineno}) a sum over its latents: beside it {first} counts as "
                    "often too little as a sample has numbers, and the latents collapse. Sum both "
                    "over a sample, or weigh one",
                )


AVERAGED = re.compile(r"ema|avg|average|shadow|teacher|target|polyak|slow", re.IGNORECASE)
KEPT = r"(?P<kept>(self\.)?\w*(decay|ema_rate)\w*)"
TURNED_SUM = re.compile(
    rf"\(1(\.0)? - {KEPT}\) \* (?P<average>[\w.\[\]]+) \+ (?P=kept) \* (?P<new>[\w.\[\]()]+)"
)
TURNED_CALL = re.compile(
    rf"(?P<average>[\w.\[\]]+)\.mul_\(1(\.0)? - {KEPT}\)\.add_\((?P<new>[\w.\[\]()]+), "
    r"alpha=(?P=kept)\)"
)
LERP = re.compile(rf"(?P<average>[\w.\[\]]+)\.lerp_\((?P<new>[\w.\[\]()]+), {KEPT}\)")


def turned_averages(tree: ast.Module) -> Iterator[Told]:
    """`(1 - decay) * average + decay * new`: the decay weighs the new weights."""
    for _, nodes in scopes(tree):
        for node in nodes:
            if not isinstance(node, ast.Assign | ast.Expr | ast.Return):
                continue
            text = ast.unparse(node)
            found = TURNED_SUM.search(text) or TURNED_CALL.search(text) or LERP.search(text)
            if found is None:
                continue
            average = _argument_of(node, found["average"])
            named = f"{average} {text.partition(' = ')[0] if isinstance(node, ast.Assign) else ''}"
            if AVERAGED.search(named) and not AVERAGED.search(_argument_of(node, found["new"])):
                yield Told(
                    line_of(node),
                    "average-too-fast",
                    f"{found[0][:90]}: {found['kept']} weighs the new weights here, so with 0.99 "
                    "the average is nearly what one step left. It is decay * average + (1 - decay) "
                    "* new",
                )


def _argument_of(node: ast.AST, name: str) -> str:
    """What a parameter of a lambda is given, where `map(f, averages, news)` says it; else the name
    itself."""
    for call in (n for n in ast.walk(node) if isinstance(n, ast.Call)):
        for made in (a for a in call.args if isinstance(a, ast.Lambda)):
            names = [a.arg for a in made.args.args]
            rest = call.args[call.args.index(made) + 1 :]
            if name in names and names.index(name) < len(rest):
                return ast.unparse(rest[names.index(name)])
    return name


DEVIATION = re.compile(r"(?:torch\.exp\((?P<f>[\w.]+)\)|(?P<m>[\w.]+)\.exp\(\))$")


def turned_deviations(tree: ast.Module) -> Iterator[Told]:
    """`std = exp(logvar)`: that is the variance."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        name, found = ast.unparse(node.targets[0]), DEVIATION.fullmatch(ast.unparse(node.value))
        of = (found["f"] or found["m"]) if found else ""
        if re.fullmatch(r"(self\.)?(std|sigma|sd|stddev|scale)", name) and re.search(
            r"log_?var(iance)?$", of
        ):
            yield Told(
                node.lineno,
                "variance-as-deviation",
                f"{ast.unparse(node)} is the variance, and {name} is the standard deviation: noise "
                f"is drawn too wide or too narrow. It is exp(0.5 * {of})",
            )


CONTINUOUS = re.compile(r"mse_loss|MSELoss|l1_loss|L1Loss|huber|HuberLoss|depth|heat_?map|density")
CLASSES = re.compile(r"cross_entropy|CrossEntropy|nll_loss|NLLLoss|num_classes|argmax")


def blurred_labels(tree: ast.Module) -> Iterator[Told]:
    """Classes that are resized by a mean of neighbours."""
    text = ast.unparse(tree)
    if CONTINUOUS.search(text) and not CLASSES.search(text):
        return
    for node in ast.walk(tree):
        if called(node) not in ("interpolate", "resize", "Resize") or not isinstance(
            node, ast.Call
        ):
            continue
        given = ast.unparse(node.args[0]) if node.args else ""
        blurs = re.search(
            r"(bilinear|bicubic|trilinear|'area'|'linear')", ast.unparse(node), re.IGNORECASE
        )
        if blurs and re.match(
            r"(self\.)?(?!\w*(logits|pred|mask))\w*(label|target|seg|annot)", given
        ):
            yield Told(
                node.lineno,
                "labels-blurred",
                f"{given} is resized with {blurs[1]}: between class 0 and class 3 that makes "
                "classes 1 and 2, which nobody drew. Classes are resized with mode='nearest'",
            )


def last_steps_of_two_ways(tree: ast.Module) -> Iterator[Told]:
    """`out[:, -1]` of a bidirectional layer: there the way back has read one step."""
    for kind in (n for n in ast.walk(tree) if isinstance(n, ast.ClassDef)):
        layers = {
            ast.unparse(n.targets[0]): n.lineno
            for n in ast.walk(kind)
            if isinstance(n, ast.Assign)
            and called(n.value) in ("GRU", "LSTM", "RNN")
            and "bidirectional=True" in ast.unparse(n.value)
            and "batch_first=True" in ast.unparse(n.value)
        }
        made = {
            ast.unparse(n.targets[0].elts[0])
            for n in ast.walk(kind)
            if isinstance(n, ast.Assign)
            and isinstance(n.targets[0], ast.Tuple)
            and isinstance(n.value, ast.Call)
            and ast.unparse(n.value.func) in layers
        }
        for node in ast.walk(kind):
            text = ast.unparse(node) if isinstance(node, ast.Subscript) else ""
            name = text.partition("[")[0]
            if name in made and re.fullmatch(r"\w+\[:, -1(, :)?\]", text):
                yield Told(
                    line_of(node),
                    "last-step-of-two-ways",
                    f"{text} is the last step of both ways: the way back has read one token there, "
                    "and padding, where there is some. Take the final states, "
                    "cat([h_n[-2], h_n[-1]], -1), or a mean over what is no padding",
                )
