"""From what a user names to a job: which code, how it is built and fed, and what is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from challenge_folder import write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_target import own_job

from attnlab.catalogue.load import read_challenge
from attnlab.errors import AttnlabError, Refused, Unreadable
from attnlab.records import Code, Input, Job, Limits, TraceOptions, from_json, to_json
from attnlab.target.challenge_job import challenge_job
from attnlab.target.resolve import resized_job, tiny_job

NET = """\
from torch import nn

class Net(nn.Module):
    def __init__(self, embed_dim, num_heads):
        super().__init__()

    def forward(self, x, mask=None):
        return x
"""
TWO = NET + NET.replace("Net", "Other")
DEMO = '\nif __name__ == "__main__":\n    print(1)\n'


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with net.py in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def refused(target, **flags):
    with pytest.raises(Refused) as caught:
        own_job(target, **flags)
    assert caught.value.hint
    return caught.value


LOOP = """
for _ in range(3):
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("text", [LOOP, NET + NET.replace("Net", "Two") + LOOP])
def test_a_script_that_trains_says_how_it_is_traced(here, text):
    """Where it has no module, or several, the command that shows a step of it comes first."""
    (here / "train.py").write_text(text)
    assert refused("train.py").hint.startswith("attnlab trace train.py --step 1 shows a step")
    assert "--step" not in refused("train.py:Nothing").hint


# ---------------------------------------------------------------- a challenge's file


def test_a_challenge_job_holds_the_code_and_the_contract(here):
    """The job is complete: nothing in it needs the catalogue again."""
    challenge = read_challenge(write(here))
    job = challenge_job(challenge, Path("net.py"), limits=Limits(seconds=3), seed=7)
    assert job.candidate == Code(file="net.py", text=NET, name="Net", path=str(here / "net.py"))
    assert (job.contract, job.reference) == (challenge.contract, "MultiHeadSelfAttention")
    assert (job.stages, job.limits.seconds, job.seed, job.own) == (("trace", "check"), 3, 7, None)


def test_a_reference_may_be_the_solution_itself(here):
    """`reference = "solution.py"` sends its source, to be run in a child of its own."""
    toml = (write(here) / "challenge.toml").read_text()
    folder = write(here, toml=toml.replace('"MultiHeadSelfAttention"', '"solution.py"'))
    reference = challenge_job(read_challenge(folder), Path("net.py"), stages=("check",)).reference
    assert isinstance(reference, Code)
    assert (reference.name, reference.path) == ("Net", str(folder / "solution.py"))


@pytest.mark.parametrize(
    "text",
    [
        "class Net: ...",
        "from models import Net",
        "from models import Other as Net",
        "from models import *",
        "import models\nNet = models.Net",
        "Net: type = object",
        "def Net(): ...",
        "if True:\n    class Net: ...",
        "try:\n    import x\nexcept ImportError:\n    class Net: ...",
        "a, (Net, b) = 1, (2, 3)",
        "def __getattr__(name): ...",
    ],
)
def test_every_way_to_give_the_class_is_accepted(here, text):
    """Only a file that surely lacks the class is refused before it runs."""
    (here / "mine.py").write_text(text + "\n")
    assert challenge_job(read_challenge(write(here)), Path("mine.py")).candidate.name == "Net"


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("class Nett: ...", "Did you mean Nett?"),
        ("class Transformer: ...\nclass Block: ...", "It defines Transformer, Block."),
        ("x = 1", "It defines no class."),
        ("def make():\n    class Net: ...", "It defines no class."),
        ("class Outer:\n    class Net: ...", "It defines Outer."),
        ("x = 0\nx.Net = 1", "It defines no class."),
        ('if __name__ == "__main__":\n    class Net: ...', "It defines no class."),
    ],
)
def test_a_file_without_the_class_is_refused(here, text, hint):
    """The class's name is part of the task; what the file does define is shown."""
    (here / "mine.py").write_text(text + "\n")
    with pytest.raises(Refused) as caught:
        challenge_job(read_challenge(write(here)), Path("mine.py"))
    assert caught.value.message == "mine.py defines no Net"
    assert caught.value.hint == hint


# ---------------------------------------------------------------- one's own: which code


def test_an_own_job_is_traced_where_it_lies(here, monkeypatch):
    """The code runs with its folder, the current folder and PYTHONPATH, as for its author."""
    (here / "sub").mkdir()
    (here / "sub" / "net.py").write_text(NET)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["lib", str(here / "sub"), ""]))
    job = own_job("sub/net.py:Net")
    assert job.candidate.file == "sub/net.py"
    assert job.own.cwd == str(here)
    assert job.own.sys_path == (str(here / "sub"), str(here), str(here / "lib"))
    assert job.own.env["PYTHONPATH"].startswith("lib")
    assert (job.stages, job.reference, job.own.module) == (("trace",), None, None)


def test_the_environment_travels_as_text(here, monkeypatch):
    """A variable that is no text is left out; it could not be written as JSON."""
    monkeypatch.setenv("ODD", "a\udc80")
    monkeypatch.setenv("EVEN", "ä")
    env = own_job("net.py").own.env
    assert "ODD" not in env
    assert env["EVEN"] == "ä"


def test_a_file_with_one_module_needs_no_name(here):
    """Helper classes and functions beside it do not matter."""
    (here / "net.py").write_text(NET + "class Config: ...\ndef helper(): ...\n")
    assert own_job("net.py").candidate.name == "Net"


@pytest.mark.parametrize(
    "base", ["nn.Module", "torch.nn.Module", "Module", "pl.LightningModule", "nn.Linear", "Base"]
)
def test_a_module_is_known_by_its_base_or_its_forward(here, base):
    """Also through a base class in the same file."""
    head = "class Base(nn.Module): ...\n" if base == "Base" else ""
    (here / "net.py").write_text(f"{head}class Net({base}):\n    def forward(self, x): ...\n")
    name = "net.py:Net" if head else "net.py"
    assert own_job(name).candidate.name == "Net"


def test_a_demo_runs_where_the_class_alone_is_not_enough(here):
    """Several modules, or a constructor nobody can guess: the author's own demo shows how."""
    (here / "two.py").write_text(TWO + DEMO)
    (here / "odd.py").write_text(NET.replace("embed_dim", "config") + DEMO)
    for file in ("two.py", "odd.py"):
        job = own_job(file)
        assert (job.candidate.name, job.contract) == (None, None)


def test_one_plain_module_is_preferred_to_the_demo(here):
    """Its axes get names, which a demo cannot give."""
    (here / "net.py").write_text(NET + DEMO)
    assert own_job("net.py").candidate.name == "Net"


def test_flags_for_a_demo_ask_which_class(here):
    """Flags that would go nowhere are refused, not ignored."""
    (here / "two.py").write_text(TWO + DEMO)
    error = refused("two.py", init="D=8")
    assert error.message == "two.py: which class do the flags mean?"
    assert "two.py:Net or two.py:Other" in error.hint


def test_a_step_of_training_shows_rows_alone(here):
    """Views of a call are refused there, not ignored."""
    (here / "two.py").write_text(TWO + DEMO)
    options = TraceOptions(step=2, attention=True, values=("q",))
    error = refused("two.py", options=options)
    assert error.message.endswith("cannot take --attention and --values")
    assert error.hint.endswith("attnlab trace two.py")


def test_several_modules_are_listed_ready_to_paste(here):
    """The choice is the user's, the typing is not."""
    (here / "two.py").write_text(TWO)
    error = refused("two.py")
    assert error.message == "two.py defines 2 modules"
    assert error.hint == ("Name one: two.py:Net or two.py:Other, as in attnlab trace two.py:Other")


def test_functions_are_listed_where_there_is_no_module(here):
    """A function can be traced, too; a long list is cut."""
    (here / "f.py").write_text("".join(f"def f{i}(x): ...\n" for i in range(9)))
    hint = refused("f.py").hint
    assert hint.startswith("Name one: f.py:f0, f.py:f1, ")
    assert hint.endswith("f.py:f5 or ..., as in attnlab trace f.py:f8")


def test_a_class_without_forward_shows_those_that_have_one(here):
    """Config classes lie beside the modules they are for."""
    (here / "net.py").write_text(NET + "class Config: ...\n")
    assert refused("net.py:Config").hint == "Name one: net.py:Net, as in attnlab trace net.py:Net"


@pytest.mark.parametrize(
    ("target", "message"),
    [("a.py", "a.py: class A defines no forward"), ("a.py:A", "a.py:A defines no forward")],
)
def test_a_module_without_forward_is_not_offered_again(here, target, message):
    """The only class of a file cannot be traced, whether the target names it or not."""
    (here / "a.py").write_text("from torch import nn\nclass A(nn.Module):\n    size = 3\n")
    error = refused(target)
    assert error.message == message
    assert error.hint == "Define A.forward, or name another class."


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("none.py", "none.py defines no nn.Module, and no demo to run"),
        ("net.py:Nett", "net.py defines no Nett"),
        ("net.py:", 'net.py:: "" is not a class name'),
        ("net.py:3x", 'net.py:3x: "3x" is not a class name'),
        ("net.py:Net.Inner", '"Net.Inner" is not a class name'),
        ("to-sharp", "to-sharp: no such file, and not the name of a module"),
        ("nett", "nett: no such file, and no class of a module"),
        ("a..b:Net", "a..b:Net: no such file, and not the name of a module"),
        ("", ": no such file, and not the name of a module"),
        ("x" * 5000, "no such file, and no class of a module"),
        ("none.py:helper", "none.py:helper is a function of (no arguments), and nothing says how"),
        ("none.py:Config", "none.py:Config defines no forward"),
        ("pkg.mod:Nett", "defines no Nett"),
    ],
)  # fmt: skip
def test_targets_that_name_nothing_are_refused(here, target, message):
    """Every form of TARGET that leads nowhere has a sentence and a hint."""
    (here / "none.py").write_text("def helper(): ...\nclass Config:\n    size = 3\n")
    (here / "pkg").mkdir()
    (here / "pkg" / "mod.py").write_text(NET)
    assert message in refused(target).message


@pytest.mark.parametrize("target", ["gone.py", "gone.py:Net", "./gone", "pkg", "C:\\x.py:Net"])
def test_files_that_cannot_be_read_are_unreadable(here, target):
    """A path is a path, also with a class behind it and in the manner of Windows."""
    (here / "pkg").mkdir()
    with pytest.raises(Unreadable) as caught:
        own_job(target)
    assert caught.value.message.startswith(target.removesuffix(":Net"))


def test_a_module_is_found_without_importing_anything(here, monkeypatch):
    """Importing the parents of `pkg.mod` would run a user's code in the front, and torch."""
    (here / "pkg").mkdir()
    (here / "pkg" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    (here / "pkg" / "mod.py").write_text(NET)
    job = own_job("pkg.mod:Net")
    assert job.own.module == "pkg.mod"
    assert job.own.sys_path == (str(here),)
    assert (job.candidate.name, job.candidate.text) == ("Net", NET)
    assert job.contract.init == {"embed_dim": "D", "num_heads": "H"}


def test_a_module_that_cannot_be_seen_is_left_to_the_lab(here):
    """Compiled modules and names made at run time: what the flags say goes along."""
    job = own_job("no_such_package.mod:Net", init="D=8, dropout=0.1", inputs=["x: B S D"])
    assert job.candidate == Code(file="no_such_package.mod", text="", name="Net")
    assert job.contract.init == {"dropout": 0.1}
    assert job.contract.sizes == {"B": 2, "S": 5, "D": 8}
    assert job.contract.inputs == (Input(name="x", axes=("B", "S", "D")),)
    (here / "again.py").write_text("from net import Net\n")
    assert own_job("again:Net").contract.inputs == ()


def test_naming_a_target_imports_nothing_heavy(here):
    """A wrong target is refused before torch, pydantic or rich are imported."""
    heavy = "{'torch', 'pydantic', 'rich', 'typer', 'sqlite3'} & set(sys.modules)"
    code = (
        "import sys; from attnlab.target.resolve import own_job; "
        "from attnlab.target.command_line import TraceCommand; "
        "own_job(TraceCommand(target='net.py')); "
        f"print({heavy} or 'light')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "light\n"


# ---------------------------------------------------------------- functions and packages


def test_a_function_is_traced_itself(here):
    """Where its first argument is a tensor by its name, or is said to be."""
    (here / "f.py").write_text("def attend(q, k, v, d_k, causal): ...\ndef g(a, b): ...\n")
    contract = own_job("f.py:attend").contract
    assert [entry.name for entry in contract.inputs] == ["q", "k", "v"]
    assert (contract.init, contract.arguments) == ({}, {"d_k": "hd", "causal": False})
    contract = own_job("f.py:g", inputs=["a: B D", "b = 3"]).contract
    assert (contract.init, contract.arguments) == ({}, {"b": 3})


def test_a_function_of_unknown_arguments_is_asked_about(here):
    """The command that is shown goes one step further."""
    (here / "f.py").write_text("def g(a, b): ...\n")
    assert refused("f.py:g").hint.endswith('attnlab trace f.py:g --input "a: B S D"')
    error = refused("f.py:g", inputs=["a: B S D"])
    assert error.hint.endswith('attnlab trace f.py:g --input "a: B S D" --input "b: B S D"')


@pytest.mark.parametrize(
    ("text", "file", "module", "root"),
    [
        ("from ..other import K\n", "pkg/sub/rel.py", "pkg.sub.rel", "."),
        ("from .other import K\n", "pkg/sub/rel.py", "pkg.sub.rel", "."),
        ("from .. import other\n", "plain/sub/rel.py", "plain.sub.rel", "."),
        ("import os\n", "pkg/sub/rel.py", None, "pkg/sub"),
        ("from . import x\n", "odd-name/rel.py", None, "odd-name"),
    ],
)
def test_relative_imports_find_their_package(here, text, file, module, root):
    """Such a file runs as a module of its package, below the folder that holds it."""
    path = here / file
    path.parent.mkdir(parents=True)
    if file.startswith("pkg"):
        (here / "pkg" / "__init__.py").touch()
        (here / "pkg" / "sub" / "__init__.py").touch()
    path.write_text(text + NET)
    own = own_job(file).own
    assert own.module == module
    assert own.sys_path[0] == str((here / root).absolute())


def test_a_challenge_may_be_made_small(here):
    """Only the sizes that its contract has."""
    job = challenge_job(read_challenge(write(here)), Path("net.py"))
    names = set(job.contract.sizes)
    assert set(tiny_job(job).contract.sizes) == names
    assert tiny_job(job).contract.sizes["S"] == 4
    assert tiny_job(own_job("net.py")).contract.sizes["B"] == 1


def test_a_challenge_may_have_other_sizes(here):
    """Those that are given; a symbol that its contract does not have is refused."""
    job = challenge_job(read_challenge(write(here)), Path("net.py"))
    sizes = job.contract.sizes
    assert resized_job(job, "S=13").contract.sizes == {**sizes, "S": 13}
    assert resized_job(job, "") == job
    with pytest.raises(Refused, match="the challenge has no Q"):
        resized_job(job, "Q=1")


PIECES = [
    "D",
    "H",
    "B",
    "=",
    ",",
    "12",
    "0",
    "-1",
    "'a'",
    '"',
    "x",
    ":",
    " ",
    "hd",
    "bool",
    "forbids",
]
PIECES += ["3*D", "embed_dim", "None", "nan", "1e5", "\0", "\n", "é", "Net", "net.py", "/", ".."]
said = st.one_of(st.text(max_size=20), st.lists(st.sampled_from(PIECES), max_size=8).map("".join))


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(target=st.one_of(st.just("net.py"), said), init=said, sizes=said, entry=st.none() | said)
def test_no_typing_leads_to_a_traceback(here, target, init, sizes, entry):
    """Whatever is typed becomes a job that survives JSON, or a message with a hint."""
    try:
        job = own_job(target, init=init, sizes=sizes, inputs=() if entry is None else [entry])
    except AttnlabError as error:
        told = error.message and error.hint
    else:
        told = from_json(Job, to_json(job)) == job
    assert told


def test_a_step_of_training_is_of_a_whole_file(here):
    """A class, flags that build one, or a module by its name are refused; a file needs no demo."""
    (here / "train.py").write_text("print(1)")
    job = own_job("train.py", options=TraceOptions(step=2))
    assert (job.candidate.name, job.contract, job.options.step) == (None, None, 2)
    for target, flags in (("net.py:Net", {}), ("net", {}), ("net.py", {"sizes": "B=2"})):
        said = refused(target, options=TraceOptions(step=2), **flags)
        assert "whole file" in said.message
