"""The verbs that a candidate answers to, and what they say of every way to go wrong."""

import ast
import re
from pathlib import Path

import pytest
import torch
from modules import HEAD, called, loaded, made, module, randn

import attnlab
from attnlab.candidate.registry import load_verbs
from attnlab.candidate.session import Session

NET = module(
    "return self.proj(x) + self.pe",
    init="""\
self.proj = nn.Linear(width, width)
self.register_buffer("pe", torch.ones(width))""",
)


# ---------------------------------------------------------------- build


def test_build_is_in_eval_mode_and_repeatable():
    """The same seed gives the same weights; dropout is off."""
    session = made(NET)
    first = session.ask("parameters")["tensors"]["proj.weight"].clone()
    session.ask("build", name="Net", init={"width": 4}, seed=0)
    assert torch.equal(session.ask("parameters")["tensors"]["proj.weight"], first)
    assert not session.target.training


def test_build_finds_the_only_module():
    """Without a name the one module that the file defines is meant, not those that it imports."""
    session = loaded("from torch.nn import Linear, Module\n" + NET)
    assert session.ask("build", name=None, init={"width": 4}, seed=0) == {}
    assert type(session.target).__name__ == "Net"


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        (NET, "Nett", "net.py defines no Nett"),
        (HEAD, None, "it defines none"),
        (HEAD + "class A(nn.Module): pass\nclass B(nn.Module): pass", None, "it defines A, B"),
        (HEAD + "Net = 3", "Net", "Net is a int, not a class or a function"),
    ],
)
def test_build_says_what_it_did_not_find(text, name, message):
    """No such name, nothing to build, too much to build, not a class."""
    answer = loaded(text).ask("build", name=name, init={}, seed=0)
    assert message in answer["raised"]["message"]


def test_build_reports_a_constructor_that_raises():
    """Wrong keywords and a forgotten super().__init__() are the candidate's exceptions."""
    wrong = loaded(NET).ask("build", name="Net", init={"dim": 4}, seed=0)["raised"]
    assert (wrong["error"], "dim" in wrong["message"]) == ("TypeError", True)
    text = (
        HEAD + "class Net(nn.Module):\n    def __init__(self):\n        self.a = nn.Linear(1, 1)\n"
    )
    forgot = loaded(text).ask("build", name="Net", init={}, seed=0)["raised"]
    assert (forgot["error"], forgot["line"]) == ("AttributeError", 7)


@pytest.mark.parametrize(
    "text",
    [
        "def Net(x):\n    return x * 2\n",
        "def Net(x=1):\n    return x * 2\n",
        "Net = lambda x: x * 2\n",
    ],
)
def test_build_takes_a_function_as_it_is(text):
    """A function that makes no module answers `call` like one, and has no weights."""
    session = loaded(text)
    assert session.ask("build", name="Net", init={}, seed=0) == {}
    assert torch.equal(called(session, ("x", torch.ones(2)))["output"], torch.full((2,), 2.0))
    assert session.ask("parameters") == {"tensors": {}}


@pytest.mark.parametrize(
    "factory",
    [
        "def Net(width):\n    return Impl(width)\n",
        "from functools import partial\nNet = partial(Impl)\n",
        "Net = lambda width: Impl(width)\n",
        "Net = Impl(4)\n",
    ],
)
def test_build_calls_a_factory(factory):
    """A function that takes the constructor's arguments and gives a module serves as a class."""
    session = made(NET.replace("class Net", "class Impl") + factory)
    assert type(session.target).__name__ == "Impl"
    assert (session.target.training, len(session.ask("parameters")["tensors"])) == (False, 2)


# ---------------------------------------------------------------- weights and buffers


def test_parameters_and_buffers_by_name():
    """Both are told apart, by their dotted names."""
    session = made(NET)
    assert set(session.ask("parameters")["tensors"]) == {"proj.weight", "proj.bias"}
    assert set(session.ask("buffers")["tensors"]) == {"pe"}


def test_put_copies_parameters_only():
    """Values go into the parameters; a buffer of that name is missing, not overwritten."""
    session = made(NET)
    new = {"proj.weight": torch.zeros(4, 4), "proj.bias": torch.ones(4)}
    assert session.ask("set_parameters", tensors=new) == {"missing": [], "extra": [], "shapes": {}}
    out = called(session, ("x", randn(1, 2, 4)))["output"]
    assert torch.equal(out, torch.full((1, 2, 4), 2.0))
    told = session.ask("set_parameters", tensors={"pe": torch.zeros(4)})
    assert told["missing"] == ["pe"]
    assert torch.equal(session.ask("buffers")["tensors"]["pe"], torch.ones(4))


def test_put_tells_what_does_not_fit_and_then_changes_nothing():
    """Missing and extra names and other shapes are told; half a set of weights is never loaded."""
    session = made(NET)
    before = session.ask("parameters")["tensors"]["proj.bias"].clone()
    told = session.ask("set_parameters", tensors={"proj.bias": torch.zeros(4), "w": torch.zeros(1)})
    assert (told["missing"], told["extra"]) == (["w"], ["proj.weight"])
    told = session.ask("set_parameters", tensors={"proj.weight": torch.zeros(2, 2)})
    assert told["shapes"] == {"proj.weight": [[4, 4], [2, 2]]}
    assert torch.equal(session.ask("parameters")["tensors"]["proj.bias"], before)


# ---------------------------------------------------------------- call


def test_call_runs_without_gradients_in_the_mode_asked_for():
    """train=True switches dropout on for one call only."""
    session = made(module("return self.drop(x)", init="self.drop = nn.Dropout(0.5)"))
    x = torch.ones(100)
    assert torch.equal(called(session, ("x", x))["output"], x)
    assert (called(session, ("x", x), train=True)["output"] == 0).any()
    out = called(session, ("x", x))["output"]
    assert (torch.equal(out, x), out.requires_grad) == (True, False)


def test_call_keeps_the_callers_inputs():
    """A candidate that writes into its argument writes into a copy."""
    session = made(module("x += 1\nreturn x"))
    x = torch.zeros(2)
    assert torch.equal(called(session, ("x", x))["output"], torch.ones(2))
    assert torch.equal(x, torch.zeros(2))


def test_call_returns_a_copy():
    """A module that writes its next answer over the last one does not change what was answered."""
    session = made(module("self.out.copy_(x)\nreturn self.out", init="self.out = torch.zeros(2)"))
    first = called(session, ("x", torch.ones(2)))["output"]
    called(session, ("x", torch.zeros(2)))
    assert torch.equal(first, torch.ones(2))


@pytest.mark.parametrize(
    ("returned", "kind"),
    [
        (
            "(x, x)",
            "a tuple with a float32 tensor of shape (2,) and a float32 tensor of shape (2,)",
        ),
        ("[x]", "a list with a float32 tensor of shape (2,)"),
        ("None", "None"),
        ("{'x': x}", "a dict with 'x'"),
        ("3", "an int"),
    ],
)
def test_call_tells_the_kind_of_what_is_no_tensor(returned, kind):
    """Anything but one tensor is named, not sent."""
    session = made(module(f"return {returned}"))
    assert called(session, ("x", randn(2))) == {"kind": kind}


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("self, x, mask=None", "return x, mask"),
        ("self, mask, x", "return x, mask"),
        ("self, hidden, attn", "return hidden, attn"),
        ("self, x, *, mask", "return x, mask"),
        ("self, *, mask, x", "return x, mask"),
        ("self, *args", "return args"),
        ("self, x, /, mask", "return x, mask"),
        ("self, mask, /, x", "return x, mask"),
        ("self, x, other=None, mask=None", "return x, mask"),
    ],
)
def test_call_reaches_the_arguments_however_they_are_named(head, body):
    """By position where the names are the candidate's own, by keyword where they moved."""
    body = body.replace("return ", "a, b = ") + "\nreturn a + 10 * b"
    session = made(module(body, head=head))
    out = called(session, ("x", torch.ones(1)), ("mask", torch.full((1,), 2.0)))
    assert out["output"].item() == 21.0


def test_call_of_a_plain_callable_object():
    """An object that is no nn.Module answers by its __call__."""
    text = HEAD + (
        "class Net:\n    def __init__(self, width): self.w = width\n"
        "    def __call__(self, mask, x): return x * self.w\n"
    )
    session = made(text)
    out = called(session, ("x", torch.ones(1)), ("mask", torch.zeros(1)))
    assert out["output"].item() == 4.0


@pytest.mark.parametrize("raises", ["SystemExit(3)", "KeyboardInterrupt()", "GeneratorExit()"])
@pytest.mark.parametrize("verb", ["call", "inputs_after_call", "trace"])
def test_exits_are_answers(raises, verb):
    """sys.exit() and its like in forward end neither the session nor this process."""
    session = made(module(f"raise {raises}"))
    more = {"seed": 0} if verb == "trace" else {}
    answer = called(session, ("x", randn(2)), verb=verb, **more)
    assert answer["raised"]["error"] == raises.partition("(")[0]
    assert session.ask("parameters") == {"tensors": {}}


# ---------------------------------------------------------------- after, gradients


def test_after_shows_what_forward_did_to_its_inputs():
    """The inputs come back as forward left them; an input of None has nothing to show."""
    session = made(module("x += 1\nreturn x", head="self, x, mask=None"))
    told = called(session, ("x", torch.zeros(2)), ("mask", None), verb="inputs_after_call")
    assert torch.equal(told["tensors"].pop("x"), torch.ones(2))
    assert told == {"tensors": {}, "alias": "x", "learns": "", "overwritten": False}


def test_after_tells_what_requires_a_gradient_now():
    """Which it did not before."""
    session = made(module("x.requires_grad_()\nreturn x * 2"))
    assert called(session, ("x", torch.zeros(2)), verb="inputs_after_call")["learns"] == "x"


@pytest.mark.parametrize("line", ["x += 1", "x.mul_(1)", "x.data.zero_()", "mask |= True"])
def test_every_call_says_which_input_it_wrote_into(line):
    """Also where the values are the same afterwards, and where autograd does not count it."""
    session = made(module(f"y = x + 0\n{line}\nreturn y", head="self, x, mask=None"))
    mask = torch.zeros(2, dtype=torch.bool)
    told = called(session, ("x", torch.ones(2)), ("mask", mask))
    assert told["wrote"] == ("mask" if "mask" in line else "x")
    quiet = made(module("return x + 0", head="self, x, mask=None"))
    assert "wrote" not in called(quiet, ("x", torch.full((2,), torch.nan)), ("mask", None))


def test_gradients_of_weights_alone():
    """Inputs that need none have none; the output's dtype is told."""
    session = made(module("return x * self.w", init="self.w = nn.Parameter(torch.tensor(3.0))"))
    told = called(session, ("x", torch.ones(2)), verb="gradients", cotangent=torch.ones(2),
                  still=True)  # fmt: skip
    assert told == {"dtype": "torch.float32", "inputs": {}, "weights": {"w": 2.0}}


def test_an_output_that_the_next_call_overwrites_is_told():
    """A buffer that is returned; one that is only read stays as it is."""
    own = "self.out = torch.zeros(2)"
    written = made(module("self.out.copy_(x)\nreturn self.out", init=own))
    assert called(written, ("x", torch.ones(2)), verb="inputs_after_call")["overwritten"] is True
    read = made(module("return self.out[: len(x)]", init=own))
    assert called(read, ("x", torch.ones(2)), verb="inputs_after_call")["overwritten"] is False


def test_gradients_of_inputs_and_weights():
    """d(sum(cotangent * out)) with respect to every floating-point input and every weight."""
    session = made(module("return x * self.w", init="self.w = nn.Parameter(torch.tensor(3.0))"))
    told = called(session, ("x", torch.tensor([1.0, 2.0])), verb="gradients",
                  cotangent=torch.tensor([1.0, 10.0]))  # fmt: skip
    assert told["inputs"]["x"].tolist() == [3.0, 30.0]
    assert told["weights"]["w"].item() == 21.0


def test_gradients_do_not_add_up():
    """Two questions have the same answer: gradients of before are cleared."""
    session = made(module("return x * self.w", init="self.w = nn.Parameter(torch.tensor(3.0))"))
    ask = {"verb": "gradients", "cotangent": torch.ones(2)}
    first = called(session, ("x", torch.ones(2)), **ask)["weights"]["w"].item()
    assert called(session, ("x", torch.ones(2)), **ask)["weights"]["w"].item() == first


def test_gradients_of_an_output_without_any():
    """A detached output has no gradients, and an output that is no tensor is named."""
    ask = {"verb": "gradients", "cotangent": torch.ones(2)}
    detached = made(module("return x.detach()"))
    assert called(detached, ("x", torch.ones(2)), **ask) == {
        "dtype": "torch.float32",
        "inputs": {},
        "weights": {},
    }
    assert called(made(module("return (x,)")), ("x", torch.ones(2)), **ask) == {
        "kind": "a tuple with a float32 tensor of shape (2,)"
    }


def test_calls_are_traced_one_after_the_other():
    """What a call returns beside its output is the cache of the next one."""
    text = "return x, (cache or 0) + 1"
    session = made(module(text, head="self, x, cache=None"))
    given = [("x", torch.ones(1, 4))]
    asked = {"inputs": given, "seed": 0, "axes": {"x": ["B", "S"]}, "sizes": {}, "calls": 3}
    answer = session.ask("trace_calls", **asked)
    assert len(answer["traces"]) == 3
    assert session.arguments == {"cache": 2}


def test_unknown_verbs_are_our_own_fault():
    """The judge asks only what a session can do: anything else is a fault in attnlab."""
    with pytest.raises(KeyError):
        Session().ask("dance")


def test_a_changed_text_is_run_in_a_copy_of_the_file():
    """Its values are told, and the next call runs the file as it is."""
    text = "def f(x):\n    return x + 1\n"
    session = Session()
    session.ask("load", file="f.py", text=text, path="", own=None)
    asked = {"name": "f", "init": {}, "seed": 0, "weights": {}, "inputs": [("x", torch.ones(2))]}
    change = (2, 2, "    return x * 3\n")
    answer = session.ask("edited_results", text=text, changes=[change], seconds=9.0, **asked)
    assert answer["results"][0].tolist() == [3.0, 3.0]
    changed = session.ask("edited_values", text=text, change=change, **asked)
    assert [value["op"] for value in changed["values"]][-1] == "mul"
    assert session.ask("values", only_output=True, **asked)["result"].tolist() == [2.0, 2.0]


KEPT = """
import torch
from torch import nn


def width(n):
    return n


class Helper:
    def own(self, x):
        return x - x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(width(2)))
        self.register_buffer("seen", torch.zeros(()))
        self.calls = []
        self.total = torch.zeros(())
        self.helper = Helper()

    def forward(self, x):
        self.seen += 1
        self.total += 1
        self.calls.append(1)
        return x * self.w + self.more(x) + len(self.calls) + self.total - 1 + self.helper.own(x)

    def more(self, x):
        return 0
"""


def test_a_change_finds_the_module_as_it_was_made():
    """Also where changes before it were called: buffers, tensors and lists are as they were. What
    runs when a module is made, or is no module, is made anew."""
    lines = KEPT.splitlines()
    more = next(n for n, text in enumerate(lines, 1) if "return 0" in text)
    made_by = next(n for n, text in enumerate(lines, 1) if "return n" in text)
    own = next(n for n, text in enumerate(lines, 1) if "return x - x" in text)
    session = Session()
    session.ask("load", file="net.py", text=KEPT, path="", own=None)
    changes = [
        (more, more, "        return self.seen\n"),
        (more, more, "        return self.seen\n"),
        (made_by, made_by, "    return n + 1\n"),
        (more, more, "        return self.missing\n"),
        (more, more, "        return 10\n"),
        (own, own, "        return 2 * x\n"),
    ]
    answer = session.ask(
        "edited_results",
        text=KEPT,
        changes=changes,
        seconds=30.0,
        name="Net",
        init={},
        seed=0,
        weights={"w": torch.full((2,), 3.0)},
        inputs=[("x", torch.ones(2))],
    )
    found = [None if t is None else t.tolist() for t in answer["results"]]
    assert found == [[5.0, 5.0], [5.0, 5.0], None, None, [14.0, 14.0], [6.0, 6.0]]


def test_every_verb_is_tried_somewhere():
    """A verb that is added is called by a test of the child's end."""
    verbs = set(load_verbs())
    texts = "".join(p.read_text() for p in sorted(Path(__file__).parent.glob("test_*.py")))
    tried = {verb for verb in verbs if re.search(rf"""["']{verb}["']""", texts)}
    assert verbs - tried == set()


ASKING = ("probe", "grading", "worker", "mutation_testing", "testing")
ASKED = {"ask", "_ask", "read_trace", "Step"}  # functions whose first text is a verb


def test_what_is_asked_is_what_is_answered():
    """Both ends of a verb have its one name: each is registered, and each is asked somewhere."""
    package = Path(attnlab.__file__).parent
    asked = {
        text.value
        for room in ASKING
        for path in (package / room).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and getattr(node.func, "attr", getattr(node.func, "id", "")) in ASKED
        for text in node.args[:2]
        if isinstance(text, ast.Constant) and isinstance(text.value, str)
    }
    assert asked == set(load_verbs())
