"""A worker for one command: a zygote that imports torch now and ends with the command."""

import errno
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from attnlab.errors import Broken

ZYGOTE = Path(__file__).parent / "zygote.py"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
# A heap of large pages is forked in half the time: 500 times fewer entries are copied. What large
# tensors leave stays in it: to ask the system each time takes longer than to compute.
MALLOC = {"hugetlb": 1, "mmap_threshold": 32 << 20, "trim_threshold": 256 << 20}
TUNABLES = ":".join(f"glibc.malloc.{name}={value}" for name, value in MALLOC.items())
HEAP = {"GLIBC_TUNABLES": TUNABLES}  # other C libraries do not read it
# torch.compile runs the code as written: operations can be traced, and no compiler writes files.
NO_COMPILER = {"TORCHDYNAMO_DISABLE": "1"}
NO_PROCESS = (
    "no process is left (ulimit -u, or the container's limit of pids); a grade needs about ten"
)
NOWHERE = "/"  # the current folder of a worker without one of its own: it cannot write there
INHERITED = ("PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "ATTNLAB_DEBUG")


def worker_environment(catalogue: str = "") -> dict[str, str]:
    """The environment of the processes that judge and run candidates: little of the user's."""
    environment = {k: os.environ[k] for k in INHERITED if k in os.environ}
    environment |= dict.fromkeys(THREADS, "1") | HEAP | NO_COMPILER
    return environment | {"ATTNLAB_CATALOGUE": catalogue}


def isolated_python() -> list[str]:
    """The command that runs this interpreter with nothing of the user's; what judges is compiled
    once, unless the user forbids that."""
    return [sys.executable, "-I", *["-B"] * sys.flags.dont_write_bytecode]


class ColdStart:
    """The process tree of a command that has no warm judge."""

    warm = False

    def __init__(self, catalogue: str) -> None:
        from attnlab.worker.scratch import make_scratch  # needed by few commands, and slow

        self.sock, theirs = socket.socketpair()
        self.folder = make_scratch()
        command = [*isolated_python(), str(ZYGOTE), str(theirs.fileno())]
        with theirs:
            try:
                self.process = subprocess.Popen(
                    [*command, self.folder or ""],
                    env=worker_environment(catalogue),
                    cwd=self.folder or NOWHERE,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=None if os.environ.get("ATTNLAB_DEBUG") else subprocess.PIPE,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,  # Ctrl-C is ours to handle
                )
            except OSError as error:
                self.end_nothing()
                hint = NO_PROCESS if error.errno == errno.EAGAIN else ""
                raise Broken(f"the worker cannot be started: {error}", hint) from error

    def end_nothing(self) -> None:
        """Remove what was prepared for a process that could not be started."""
        from attnlab.worker.scratch import remove_scratch

        self.sock.close()
        remove_scratch(self.folder)

    def end(self) -> bytes:
        """End all its processes; returns what they printed on stderr."""
        self.sock.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            said = self.process.communicate(timeout=10)[1]
        except subprocess.TimeoutExpired:
            self.process.kill()
            said = self.process.communicate()[1]
        self.end_nothing()  # it may have been killed before it could
        return said or b""
