"""The verbs that a candidate answers to, and what they say of every way to go wrong."""

import os
import sys

import pytest
import torch
from modules import HEAD, module, randn

from attnlab.lab.session import Session
from attnlab.records import Own, plain

NET = module(
    "return self.proj(x) + self.pe",
    init="""\
self.proj = nn.Linear(width, width)
self.register_buffer("pe", torch.ones(width))""",
)


def loaded(text, file="net.py"):
    session = Session()
    assert session.ask("load", file=file, text=text, path="", own=None) == {}
    return session


def made(text, name="Net", **init):
    session = loaded(text)
    answer = session.ask("build", name=name, init=init or {"width": 4}, seed=0)
    assert answer == {}, answer
    return session


def called(session, *inputs, verb="call", **more):
    given = [(n, t) for n, t in inputs]
    return session.ask(verb, inputs=given, **more)


# ---------------------------------------------------------------- load


def test_load_runs_the_file_as_a_module_of_its_own(monkeypatch):
    """It has a name and a file, can be found by its classes, and is no `__main__`."""
    text = "NAME = __name__\nMAIN = __name__ == '__main__'\nFILE = __file__\n"
    session = Session()
    session.ask("load", file="my-net.py", text=text, path="/there/my-net.py", own=None)
    space = vars(session.module)
    assert (space["NAME"], space["MAIN"], space["FILE"]) == ("my_net", False, "/there/my-net.py")
    assert sys.modules["my_net"] is session.module


def test_load_serves_dataclasses():
    """A dataclass asks sys.modules for its module while the file still runs."""
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Config:\n    width: int = 4\n"
    )
    assert loaded(text).module.Config().width == 4


@pytest.mark.parametrize("file", ["json.py", "random.py", "torch.py", "bisect.py", "typing.py"])
def test_load_takes_no_name_that_others_import(file):
    """A candidate in a file called torch.py must not replace torch for everybody."""
    name = file.removesuffix(".py")
    before = sys.modules.get(name)
    loaded("x = 1", file=file)
    assert sys.modules.get(name) is before


def test_load_again_replaces_the_module():
    """A second submission of the same name is the one that counts."""
    loaded("x = 1", file="again_and_again.py")
    second = loaded("x = 2", file="again_and_again.py")
    assert sys.modules["again_and_again"] is second.module
    assert second.module.x == 2


@pytest.mark.parametrize(
    ("text", "error", "line"),
    [
        ("x = 1\nraise ValueError('no')", "ValueError", 2),
        ("import no_such_module_at_all", "ModuleNotFoundError", 1),
        ("import sys\n\nsys.exit(3)", "SystemExit", 3),
        ("def f():\n    return f()\nf()", "RecursionError", 2),
        ("raise KeyboardInterrupt", "KeyboardInterrupt", 1),
        ("class E(BaseException): pass\nraise E", "E", 2),
    ],
)
def test_load_reports_what_the_file_raises(text, error, line):
    """Whatever the file raises when it is read becomes an answer with the line."""
    session = Session()
    raised = session.ask("load", file="net.py", text=text, path="", own=None)["raised"]
    assert (raised["error"], raised["file"], raised["line"]) == (error, "net.py", line)
    assert raised["source"] == text.splitlines()[line - 1].strip()


def test_an_exception_is_told_with_its_bases():
    """Checks ask for ValueError: a subclass of it counts, and so its bases are told."""
    session = Session()
    text = "class Mine(ValueError): pass\nraise Mine('no')"
    raised = session.ask("load", file="net.py", text=text, path="", own=None)["raised"]
    assert raised["kinds"][:2] == ["ValueError", "Exception"]
    assert raised["memory"] is False


@pytest.mark.parametrize("error", ["MemoryError()", "RuntimeError('cannot allocate memory: 9 GB')"])
def test_running_out_of_memory_is_told_apart(error):
    """Python's MemoryError and PyTorch's message are the same outcome."""
    session = Session()
    answer = session.ask("load", file="net.py", text=f"raise {error}", path="", own=None)
    assert answer["raised"]["memory"] is True


def test_load_in_the_users_surroundings(tmp_path, monkeypatch):
    """A user's own target finds its helpers, its folder and its environment, and nothing else."""
    (tmp_path / "helper_of_mine.py").write_text("VALUE = 5\n")
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path.parent)
    before = dict(os.environ)
    own = Own(cwd=str(tmp_path), sys_path=(str(tmp_path),), env={"MINE": "1"})
    text = "import os, helper_of_mine\nseen = helper_of_mine.VALUE, os.getcwd(), dict(os.environ)"
    session = Session()
    try:
        assert session.ask("load", file="net.py", text=text, path="", own=plain(own)) == {}
    finally:
        os.environ.clear()
        os.environ.update(before)
    value, cwd, env = session.module.seen
    assert (value, cwd, env) == (5, str(tmp_path), {"MINE": "1"})


# ---------------------------------------------------------------- build


def test_build_is_in_eval_mode_and_repeatable():
    """The same seed gives the same weights; dropout is off."""
    session = made(NET)
    first = session.ask("parameters")["tensors"]["proj.weight"].clone()
    session.ask("build", name="Net", init={"width": 4}, seed=0)
    assert torch.equal(session.ask("parameters")["tensors"]["proj.weight"], first)
    assert not session.built.training


def test_build_finds_the_only_module():
    """Without a name the one module that the file defines is meant, not those that it imports."""
    session = loaded("from torch.nn import Linear, Module\n" + NET)
    assert session.ask("build", name=None, init={"width": 4}, seed=0) == {}
    assert type(session.built).__name__ == "Net"


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


def test_build_takes_a_function_as_it_is():
    """A plain function answers `call` like a module, and has no weights."""
    session = loaded("def Net(x):\n    return x * 2\n")
    assert session.ask("build", name="Net", init={}, seed=0) == {}
    assert torch.equal(called(session, ("x", torch.ones(2)))["output"], torch.full((2,), 2.0))
    assert session.ask("parameters") == {"tensors": {}}


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
    assert session.ask("put", tensors=new) == {"missing": [], "extra": [], "shapes": {}}
    out = called(session, ("x", randn(1, 2, 4)))["output"]
    assert torch.equal(out, torch.full((1, 2, 4), 2.0))
    told = session.ask("put", tensors={"pe": torch.zeros(4)})
    assert told["missing"] == ["pe"]
    assert torch.equal(session.ask("buffers")["tensors"]["pe"], torch.ones(4))


def test_put_tells_what_does_not_fit_and_then_changes_nothing():
    """Missing and extra names and other shapes are told; half a set of weights is never loaded."""
    session = made(NET)
    before = session.ask("parameters")["tensors"]["proj.bias"].clone()
    told = session.ask("put", tensors={"proj.bias": torch.zeros(4), "w": torch.zeros(1)})
    assert (told["missing"], told["extra"]) == (["w"], ["proj.weight"])
    told = session.ask("put", tensors={"proj.weight": torch.zeros(2, 2)})
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
        ("(x, x)", "tuple"),
        ("[x]", "list"),
        ("None", "NoneType"),
        ("{'x': x}", "dict"),
        ("3", "int"),
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
@pytest.mark.parametrize("verb", ["call", "after", "trace"])
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
    told = called(session, ("x", torch.zeros(2)), ("mask", None), verb="after")
    assert torch.equal(told["tensors"].pop("x"), torch.ones(2))
    assert told == {"tensors": {}}


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
    assert called(detached, ("x", torch.ones(2)), **ask) == {"inputs": {}, "weights": {}}
    assert called(made(module("return (x,)")), ("x", torch.ones(2)), **ask) == {"kind": "tuple"}


def test_unknown_verbs_are_our_own_fault():
    """The judge asks only what a session can do: anything else is a fault in attnlab."""
    with pytest.raises(AttributeError):
        Session().ask("dance")


def test_every_verb_is_tried_here():
    """A verb that is added to the session is added to these tests."""
    verbs = {name.removeprefix("do_") for name in dir(Session) if name.startswith("do_")}
    assert verbs == {
        *("load", "build", "parameters", "buffers", "put"),
        *("call", "after", "gradients", "trace", "demo"),
    }
