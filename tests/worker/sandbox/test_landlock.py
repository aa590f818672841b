"""What a candidate may open: Python, its packages and the system, no answer and nobody's files."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from attnlab.worker.sandbox import landlock

ROOT = Path(__file__).parents[3]


def holds():
    try:
        return landlock.version() > 0
    except (OSError, AttributeError):
        return False


locked = pytest.mark.skipif(not holds(), reason="a kernel without Landlock")
REFUSALS = ("Permission denied", "Invalid cross-device link")  # the second of a link
HEAD = """
import os, socket, sys
from pathlib import Path
from attnlab.records import Limits
from attnlab.worker.sandbox import layers
layers.no_new_privileges(Limits())
layers.restrict_files(Limits())
"""


def ran(code, cwd):
    """What is printed by code that runs behind the rules, with a folder of its own."""
    command = [sys.executable, "-c", HEAD + code]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    return done.stdout.strip() or done.stderr.strip()


def refused(code, cwd):
    done = f"""
try:
    {code}
    print("done")
except OSError as error:
    print(error.strerror)
"""
    return ran(done, cwd) in REFUSALS


@pytest.fixture
def places(tmp_path):
    """A folder of the candidate's own, and somebody's file beside it."""
    (tmp_path / "own").mkdir()
    (tmp_path / "kept").write_text("kept")
    return tmp_path / "own", tmp_path / "kept"


@locked
@pytest.mark.parametrize(
    "code",
    [
        "open({kept!r}).read()",
        "open({kept!r}, 'w').write('')",
        "os.truncate({kept!r}, 0)",
        "os.remove({kept!r})",
        "os.rename({kept!r}, 'mine')",
        "os.rename('mine', {kept!r})",
        "os.link({kept!r}, 'another')",
        "os.mkdir({kept!r} + '-folder')",
        "os.listdir(os.path.dirname({kept!r}))",
        "open('/proc/self/root' + {kept!r}).read()",
        "os.symlink({kept!r}, 'to') or open('to').read()",
    ],
)
def test_a_users_file_is_out_of_reach(places, code):
    """It is not read, changed, moved, removed or replaced, by whatever way it is called."""
    own, kept = places
    (own / "mine").write_text("mine")
    assert refused(code.format(kept=str(kept)), own)
    assert kept.read_text() == "kept"


@locked
@pytest.mark.parametrize(
    "answer",
    ["challenges/attention/too-sharp/solution.py", "attnlab/references/attention.py",
     "attnlab/lessons/sinusoidal.py", "tests/helpers/attacks.py"],
)  # fmt: skip
def test_no_answer_can_be_read(places, answer):
    """Neither what a file is graded against, nor what else lies in a checkout."""
    assert (ROOT / answer).exists()
    assert refused(f"open({str(ROOT / answer)!r}).read()", places[0])


@locked
@pytest.mark.parametrize(
    "path",
    ["/etc/shadow", "/etc/hostname", "/proc/1/cmdline", "/proc/1/environ",
     "/proc/self/net/tcp", "/proc/self/mounts", "/sys/class/net"],
)  # fmt: skip
def test_what_the_system_tells_of_others_is_out_of_reach(places, path):
    """Passwords, other processes, connections, mounts."""
    if os.path.lexists(path):
        assert refused(
            f"os.listdir({path!r}) if os.path.isdir({path!r}) else open({path!r}).read()", places[0]
        )


@locked
@pytest.mark.parametrize(
    "code",
    [
        "import attnlab.tracer.crash.suggest, decimal, encodings.cp037, typer",
        "open('/etc/passwd').read(); os.listdir('/usr')",
        "open('/proc/self/maps').read(); open('/proc/meminfo').read(); os.listdir('/proc/self/fd')",
        "open('/dev/null', 'w').write('x'); os.urandom(1); open('/dev/urandom', 'rb').read(1)",
        "open('mine', 'w').write('x'); os.mkdir('inner'); os.rename('mine', 'inner/mine')",
        "assert not os.spawnv(os.P_WAIT, sys.executable, [sys.executable, '-c', '1'])",
        "socket.socketpair()",
    ],
)
def test_what_packages_need_is_there(places, code):
    """Modules that are imported late, files of the system, devices, a folder to write to."""
    assert ran(f"{code}\nprint('done')", places[0]) == "done"


@locked
def test_no_port_is_reached_or_offered(places):
    """TCP, where no filter of calls holds."""
    if landlock.version() < landlock.PORTS:
        pytest.skip("a kernel whose rules do not speak of ports")
    for code in ("socket.create_connection(('127.0.0.1', 9))", "socket.socket().bind(('', 0))"):
        assert refused(code, places[0])


@locked
def test_the_rules_are_made_once_and_hold_for_what_is_started(places):
    """A child enters what its parent made; a program that it starts is held by it, too."""
    own, kept = places
    code = f"""
from attnlab.worker.sandbox import landlock
assert landlock.rules() == landlock.rules()
print(os.spawnv(os.P_WAIT, "/bin/cat", ["cat", {str(kept)!r}]), flush=True)
"""
    assert ran(code, own).splitlines()[-1] == "1"


# ---------------------------------------------------------------- what is allowed, without a kernel


def grown(top, names):
    for name in names:
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return top.resolve()


def reading(allowed, path):
    """Whether a file may be read: rules hold for all below them."""
    return any(kind == "read" and path.is_relative_to(at) for at, kind in allowed)


PART = st.sampled_from("abc")


@given(
    files=st.sets(st.tuples(PART, PART, PART), min_size=1, max_size=12),
    answers=st.sets(st.lists(PART, min_size=1, max_size=3).map(tuple), max_size=3),
)
def test_all_is_read_but_answers(tmp_path_factory, files, answers):
    """Below a root each file may be read, unless it lies in an answer, and all folders above one
    that may be read can be listed."""
    top = grown(tmp_path_factory.mktemp("root"), ["/".join(parts) for parts in files])
    kept = frozenset(top.joinpath(*parts) for parts in answers)
    allowed = list(landlock.allowed_paths([top], kept))
    for parts in files:
        path = top.joinpath(*parts)
        answer = any(path.is_relative_to(one) for one in kept)
        assert reading(allowed, path) != answer
    assert all(at.is_relative_to(top) for at, _ in allowed)
    assert allowed[0][0] == top or top in kept


def test_a_link_gives_what_it_leads_to_and_no_more(tmp_path):
    """`lib64` of a virtual environment is `lib`; a link upwards gives nothing that lies there."""
    top = grown(tmp_path, ["lib/answers/a.py", "lib/numpy/core.py", "else/b.py"])
    (top / "lib64").symlink_to("lib")
    (top / "lib" / "up").symlink_to("..")
    (top / "lib" / "far").symlink_to(top / "else")
    allowed = list(
        landlock.allowed_paths([top / "lib", top / "lib64"], frozenset({top / "lib/answers"}))
    )
    assert not reading(allowed, top / "lib/answers/a.py")
    assert reading(allowed, top / "lib/numpy/core.py")
    assert reading(allowed, top / "else/b.py")
    assert (top, "list") not in allowed


def test_a_checkout_gives_its_package_alone():
    """What lies beside it, such as challenges, tests and the user's work, is no part of Python."""
    roots = landlock._roots(ROOT / "attnlab")
    assert ROOT / "attnlab" in roots
    assert not any(ROOT.is_relative_to(root) for root in roots)
    assert not any(a != b and a.is_relative_to(b) for a in roots for b in roots)


def test_an_installed_package_keeps_its_answers(tmp_path, monkeypatch):
    """Where it lies among other packages these are read as ever, and challenges came with it."""
    names = ["attnlab/cli.py", "attnlab/references/rotary.py", "attnlab/challenges/a/solution.py",
             "attnlab/lessons/base.py", "numpy/core.py"]  # fmt: skip
    packages = grown(tmp_path / "lib" / "site-packages", names)
    monkeypatch.setattr(landlock.site, "getsitepackages", lambda: [str(packages)])
    monkeypatch.setattr(landlock.sys, "prefix", str(tmp_path))
    roots = [p for p in landlock._roots(packages / "attnlab") if p.is_relative_to(tmp_path)]
    assert roots == [tmp_path]
    allowed = list(landlock.allowed_paths(roots, landlock._answers(packages / "attnlab")))
    assert [reading(allowed, packages / n) for n in names] == [True, False, False, False, True]


def test_copies_that_an_editable_install_leaves_are_answers_too(tmp_path, monkeypatch):
    """The package is a checkout, and its challenges lie among the installed packages as well."""
    packages = grown(tmp_path / "lib", ["attnlab/challenges/a/solution.py", "references/other.py"])
    monkeypatch.setattr(landlock.site, "getsitepackages", lambda: [str(packages)])
    answers = landlock._answers(ROOT / "attnlab")
    allowed = list(landlock.allowed_paths([packages], answers))
    assert not reading(allowed, packages / "attnlab/challenges/a/solution.py")
    assert reading(allowed, packages / "references/other.py")  # somebody else's package
    assert {ROOT / "challenges", ROOT / "attnlab/references"} <= answers


def test_the_users_own_catalogue_is_an_answer(tmp_path, monkeypatch):
    """Wherever it lies: below a folder of the system all would be read."""
    top = grown(tmp_path, ["mine/attention/a/solution.py", "libs/b.py"])
    monkeypatch.setenv("ATTNLAB_CATALOGUE", str(top / "mine"))
    allowed = list(landlock.allowed_paths([top], landlock._answers(ROOT / "attnlab")))
    assert not reading(allowed, top / "mine/attention/a/solution.py")
    assert reading(allowed, top / "libs/b.py")


@locked
def test_without_a_folder_of_its_own_nothing_can_be_written():
    """As where the disk is full: it is in the root then, and not among the user's files."""
    assert refused("open('/attnlab-test', 'w')", "/")
    assert refused("open('/tmp/attnlab-test', 'w')", "/")
