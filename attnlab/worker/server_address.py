"""Where the warm judge listens: a socket of its own for everything that it has imported.

The name of the socket is a hash of the interpreter, of torch, of attnlab's own sources and of the
environment that counts at import. A command that finds no socket of its own name starts a judge, so
it never talks to one with other code. No torch here.
"""

import importlib.util
import os
import stat
import sys
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import attnlab

# Read when torch, or a library that it loads, is imported.
PREFIXES = (
    "CUDA DYLD_ GLIBC_ HSA_ KMP_ LD_ MALLOC_ MKL_ NVIDIA_ OMP_ OPENBLAS_ PYTORCH_ ROCR_ TORCH"
)
AT_IMPORT = (*PREFIXES.split(), "PYTHONHASHSEED")
LONGEST_FOLDER = 70  # bytes: with the name of the socket, systems take 104 to 108
PRIVATE = 0o700


@dataclass(frozen=True)
class Address:
    """The files of one warm judge."""

    socket: Path
    key: str  # of the sources that it has imported

    @property
    def lock(self) -> Path:
        """Held while one of this installation is being started."""
        return self.socket.with_name(self.socket.name.partition("-")[0] + ".lock")

    @property
    def kin(self) -> list["Address"]:
        """The judges of the same installation whose sources have changed since."""
        prefix = self.socket.name.partition("-")[0]
        found = _addresses_in(self.socket.parent)
        return [a for a in found if a.socket.name.startswith(f"{prefix}-") and a != self]


def find_address() -> Address | None:
    """The address for this installation and environment; None without a private folder for it."""
    folder = private_folder()
    if folder is None:
        return None
    installation = (sys.executable, sys.version, *attnlab.__path__, *_namespaces())
    key = hash_sources()
    name = f"{_short_hash([*installation, *_environment()])}-{key}.sock"
    return Address(folder / name, key)


def known_addresses() -> list[Address]:
    """The addresses of all warm judges that this user may have."""
    folder = private_folder()
    return [] if folder is None else _addresses_in(folder)


def _addresses_in(folder: Path) -> list[Address]:
    return [Address(path, path.stem.partition("-")[2]) for path in sorted(folder.glob("*-*.sock"))]


def hash_sources() -> str:
    """A hash of size and time of every source of attnlab, and of the file with torch's version."""
    return _short_hash(_stamps())


def private_folder() -> Path | None:
    """A folder that nobody else can enter, made where there is none; None where that fails."""
    if not hasattr(os, "getuid"):  # Windows: nobody could say whose it is
        return None
    for above in (os.environ.get("XDG_RUNTIME_DIR", ""), os.environ.get("TMPDIR", ""), "/tmp"):  # noqa: S108 - owner and rights of the folder in it are checked
        folder = Path(above) / f"attnlab-{os.getuid()}"
        short = len(os.fsencode(folder)) <= LONGEST_FOLDER
        if above and folder.is_absolute() and short and _is_private(folder):
            return folder
    return None


def _is_private(folder: Path) -> bool:
    try:
        folder.mkdir(PRIVATE, exist_ok=True)
        state = folder.lstat()
    except OSError:
        return False
    own = state.st_uid == os.getuid() and stat.S_ISDIR(state.st_mode)
    return own and stat.S_IMODE(state.st_mode) & 0o077 == 0 and os.access(folder, os.W_OK)


def _short_hash(lines: Iterable[str]) -> str:
    """It tells our own versions apart and guards nothing; hashlib would take longer to import than
    all the files take to look at."""
    data = "\n".join(lines).encode("utf-8", "surrogateescape")
    return f"{zlib.crc32(data):08x}"


def _namespaces() -> Iterator[str]:
    """What tells containers apart that share a folder of temporary files."""
    for name in ("mnt", "pid", "user"):
        try:
            yield os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115 - no path is wanted
        except OSError:
            continue


def _environment() -> list[str]:
    return sorted(
        f"{key}={value}" for key, value in os.environ.items() if key.startswith(AT_IMPORT)
    )


def _stamps() -> Iterator[str]:
    torch = importlib.util.find_spec("torch")
    folders = [attnlab.__path__[0]]
    while folders:
        with os.scandir(folders.pop()) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.is_dir():
                    folders += [] if entry.name == "__pycache__" else [entry.path]
                elif entry.name.endswith((".py", ".toml")):
                    yield _stamp(entry.path)
    if torch is not None and torch.origin:
        yield _stamp(str(Path(torch.origin).with_name("version.py")))


def _stamp(path: str) -> str:
    try:
        state = os.stat(path)  # noqa: PTH116 - of 500 files
    except OSError:
        return path
    return f"{path} {state.st_size} {state.st_mtime_ns}"
