"""Each layer in a process of its own: what it must stop is tried, and does not work any more."""

import signal
import struct
import subprocess
import sys

import pytest

from attnlab.records import Limits
from attnlab.worker.sandbox import layers, seccomp

linux = pytest.mark.skipif(sys.platform != "linux", reason="a layer of Linux")
HEAD = """
import os, signal, sys, time
from attnlab.records import Limits
from attnlab.worker.sandbox import layers
"""


def ran(code, **more):
    """How a process ended that ran this code, and what it printed."""
    command = [sys.executable, "-c", HEAD + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, **more)
    return done.returncode, done.stdout.strip() or done.stderr.strip()


def test_own_session_leads_a_group():
    """All that a candidate starts can be ended through one number."""
    code = "layers.own_session(Limits()); print(os.getpgid(0) == os.getsid(0) == os.getpid())"
    assert ran(code) == (0, "True")


@linux
def test_it_dies_with_its_parent():
    """The kernel ends a candidate whose worker has gone, however that went."""
    code = """
read, write = os.pipe()
middle = os.fork()
if middle == 0:
    if os.fork() == 0:
        layers.dies_with_parent(Limits())
        os.write(write, b"ready")
        time.sleep(60)
        os._exit(0)
    os.read(read, 5)
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(middle, 0)
os.close(write)
print(repr(os.read(read, 1)))  # the end of the pipe: nobody is left to write
"""
    assert ran(code) == (0, "b''")


@linux
def test_no_new_privileges_is_set():
    """The kernel itself says so."""
    code = """
layers.no_new_privileges(Limits())
print([l.split()[1] for l in open("/proc/self/status") if l.startswith("NoNewPrivs")])
"""
    assert ran(code) == (0, "['1']")


@linux
def test_memory_has_an_allowance_over_what_is_held():
    """A process that holds much already gets the same allowance; over it is a MemoryError."""
    code = """
held = bytes(300 << 20)
layers.memory(Limits(memory=200 << 20))
more = bytes(100 << 20)
try:
    bytes(150 << 20)
except MemoryError:
    print("MemoryError")
"""
    assert ran(code) == (0, "MemoryError")


def test_cpu_time_ends_with_a_signal_that_tells():
    """SIGXCPU, not SIGKILL: the judge must know that the time was up."""
    ended, _ = ran("layers.cpu_time(Limits(seconds=-1))\nwhile True: pass")
    assert ended == -signal.SIGXCPU


def test_cpu_time_cannot_be_waited_out():
    """A candidate that ignores the signal is killed a second later."""
    code = """
signal.signal(signal.SIGXCPU, signal.SIG_IGN)
layers.cpu_time(Limits(seconds=-2))
while True: pass
"""
    assert ran(code)[0] == -signal.SIGKILL


def test_no_files_can_be_filled(tmp_path):
    """A file may be made, and not one byte goes in; what was there is not overwritten."""
    (tmp_path / "old").write_text("kept")
    code = """
layers.no_files(Limits())
for mode, name in (("w", "new"), ("a", "old")):
    try:
        with open(name, mode) as file:
            file.write("x")
    except OSError as error:
        print(error.strerror)
"""
    assert ran(code, cwd=tmp_path) == (0, "File too large\nFile too large")
    assert (tmp_path / "old").read_text() == "kept"
    assert (tmp_path / "new").read_text() == ""


def test_few_files_can_be_open():
    """A leak of descriptors stops at the candidate's own limit."""
    code = """
layers.no_files(Limits())
try:
    held = [os.dup(0) for _ in range(100)]
except OSError as error:
    print(error.strerror)
"""
    assert ran(code) == (0, "Too many open files")


def test_a_lower_limit_of_the_machine_stays():
    """Where the machine is stricter than we are, nothing is raised and nothing breaks."""
    code = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
layers.no_files(Limits())
layers.cpu_time(Limits(seconds=10))
print(resource.getrlimit(resource.RLIMIT_NOFILE), resource.getrlimit(resource.RLIMIT_CPU))
"""
    assert ran(code) == (0, "(32, 32) (5, 5)")


KNOWN = seccomp.calls() is not None
FOREIGN = """
layers.no_new_privileges(Limits())
layers.filter_calls(Limits())
import ctypes, resource, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
def tried(name, doing):
    try:
        doing()
    except OSError as error:
        print(name, error.strerror)
parent = os.getppid()
"""


@linux
@pytest.mark.skipif(not KNOWN, reason="a machine whose calls have other numbers")
@pytest.mark.parametrize(
    "call",
    [
        "os.kill(parent, 0)",
        "os.kill(-1, 0)",
        "os.kill(0, 0)",
        "os.killpg(os.getpgid(0), 0)",
        "signal.pidfd_send_signal(os.pidfd_open(parent), 0)",
        "resource.prlimit(parent, resource.RLIMIT_CPU)",
        "os.sched_setaffinity(parent, {0})",
        "os.sched_setscheduler(parent, os.SCHED_OTHER, os.sched_param(0))",
        "os.setpriority(os.PRIO_USER, 0, 1)",
        "socket.socket(socket.AF_UNIX)",
        "socket.socket(socket.AF_INET)",
        "socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)",
        "os.chmod('/proc/self', 0)",
        "os.chown('/proc/self', 0, 0)",
        "os.utime('/proc/self')",
        "os.setxattr('/proc/self', 'user.a', b'')",
    ],
)
def test_no_other_process_and_no_network_is_reached(call):
    """By no call that ends, stops, limits or moves one; nor by its group or by all. And what files
    a user has keep their rights, owners and times."""
    assert ran(f"{FOREIGN}tried('refused:', lambda: {call})") == (
        0,
        "refused: Operation not permitted",
    )


@linux
@pytest.mark.skipif(not KNOWN, reason="a machine whose calls have other numbers")
def test_it_still_reaches_itself():
    """A program may end itself, abort, set its own limits, and end what it began."""
    code = """
child = os.fork() or time.sleep(60)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
os.kill(os.getpid(), 0)
signal.raise_signal(signal.SIGURG)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
resource.prlimit(os.getpid(), resource.RLIMIT_CORE)
os.sched_setaffinity(0, os.sched_getaffinity(0))
socket.socketpair()
print(libc.ptrace(0, 0, 0, 0), os.strerror(ctypes.get_errno()), flush=True)
os.abort()
"""
    ended, said = ran(f"{FOREIGN}{code}")
    assert (ended, said) == (-signal.SIGABRT, "-1 Operation not permitted")


TESTS = {
    seccomp.EQUAL: lambda word, constant: word == constant,
    seccomp.AT_LEAST: lambda word, constant: word >= constant,
    seccomp.ANY_OF: lambda word, constant: bool(word & constant),
}


def test_a_filter_goes_forward_and_ends():
    """As the kernel asks: every jump lands inside, and the last step is a verdict."""
    for known in seccomp.KNOWN.values():
        code = seccomp.filter_for(known, 1234, 1200)
        steps = list(struct.iter_unpack("<HBBI", code))
        for at, (kind, holds, fails, _) in enumerate(steps):
            assert kind in (seccomp.LOAD, seccomp.RETURN, *TESTS)
            assert at + 1 + max(holds, fails) < len(steps) or kind == seccomp.RETURN
        assert steps[-1][0] == seccomp.RETURN


OTHERS = (0, 1, 1200, 1233, 2**31, 2**32 - 1)


def verdict(code, known, number, argument):
    """What a filter says of a call, worked out step by step."""
    seen = {seccomp.NUMBER: number, seccomp.MACHINE: known.machine}
    seen[seccomp.FIRST_ARGUMENT] = argument
    steps, at, word = list(struct.iter_unpack("<HBBI", code)), 0, 0
    while True:
        kind, holds, fails, constant = steps[at]
        at += 1
        if kind == seccomp.RETURN:
            return constant
        if kind == seccomp.LOAD:
            word = seen[constant]
        else:
            at += holds if TESTS[kind](word, constant) else fails


@pytest.mark.parametrize("name", seccomp.KNOWN)
def test_a_filter_refuses_what_is_meant_for_others(name):
    """On machines that are not at hand as well; calls that it does not know go through."""
    known = seccomp.KNOWN[name]
    code = seccomp.filter_for(known, 1234, 1200)
    for number in known.to_one:
        said = [verdict(code, known, number, pid) for pid in (1234, 1235, *OTHERS)]
        assert said == [seccomp.ALLOW] * 2 + [seccomp.REFUSE] * len(OTHERS)
    for number in known.to_own:
        said = [verdict(code, known, number, pid) for pid in (1234, 0, 1233, 1)]
        assert said == [seccomp.ALLOW] * 2 + [seccomp.REFUSE] * 2
    wrapped = seccomp.filter_for(known, 1234, 4000)
    assert verdict(wrapped, known, known.to_one[0], 4000) == seccomp.REFUSE
    assert {verdict(code, known, n, 1234) for n in known.never} == {seccomp.REFUSE}
    assert {verdict(code, known, n, 1) for n in (0, 1, 9, 56)} == {seccomp.ALLOW}
    assert verdict(code, known, seccomp.X32 + 62, 1) == seccomp.REFUSE
    process, thread, user_namespace = 0x11, 0x3D0F00, 0x10000011  # flags of clone
    said = [verdict(code, known, known.clone, n) for n in (process, thread, user_namespace)]
    assert said == [seccomp.ALLOW, seccomp.ALLOW, seccomp.REFUSE]
    assert verdict(code, known, seccomp.CLONE3, 0) == seccomp.UNKNOWN  # C libraries then use clone
    other = known._replace(machine=1)
    assert verdict(code, other, 0, 1) == seccomp.REFUSE


@linux
@pytest.mark.parametrize("own", [False, True])
def test_apply_names_what_holds(own):
    """Every layer of the list holds on this system, a user's own target gets fewer."""
    ended, said = ran(f"print(layers.apply(Limits(), {own}))")
    assert (ended, said) == (0, str((list(layers.LAYERS[own]), [])))


def test_own_code_may_write_files():
    """A user's own target is held by limits only: it saves checkpoints and starts loaders."""
    assert set(layers.OWN) < set(layers.CANDIDATE)
    assert not {"writes no files", "CPU limit"} & set(layers.OWN)


def test_a_layer_that_is_missing_is_named_and_the_rest_holds(monkeypatch):
    """A machine without one layer still gives the others, and the report tells."""

    def absent(_limits):
        raise layers.Missing("this kernel has it not")

    def refused(_limits):
        raise PermissionError("not allowed")

    called = []
    some = {"first": absent, "second": refused, "third": called.append}
    monkeypatch.setitem(layers.LAYERS, False, some)
    holds, missing = layers.apply(Limits(), own=False)
    assert holds == ["third"]
    assert missing == ["first: this kernel has it not", "second: not allowed"]
    assert called == [Limits()]


def test_other_systems_say_what_they_lack(monkeypatch):
    """Outside Linux the process calls are missing, with one plain reason each."""
    monkeypatch.setattr(layers.sys, "platform", "darwin")
    for layer in (
        layers.dies_with_parent,
        layers.no_new_privileges,
        layers.filter_calls,
        layers.restrict_files,
    ):
        with pytest.raises(layers.Missing, match="only Linux"):
            layer(Limits())
    layers.adopt_orphans()  # no Linux, no orphans to adopt, no exception
