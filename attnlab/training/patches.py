"""Put functions in place of others for a while, and keep a script's files out of the way."""

from __future__ import annotations

import builtins
import io
import multiprocessing.process
import os
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import torch
import torch.distributed
import torch.multiprocessing
from torch.utils.data import DataLoader

WRITING = set("wax+")
OUTSIDE = (os.devnull, "/proc/", "/dev/")


class Patches:
    """Attributes that are replaced until `undo`."""

    def __init__(self) -> None:
        self._undo = ExitStack()

    def put(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace `owner.name` by what `make` makes of it."""
        before = getattr(owner, name)
        setattr(owner, name, make(before))
        self._undo.callback(setattr, owner, name, before)

    def undo(self) -> None:
        self._undo.close()


class ScratchFiles:
    """Redirects what a script writes into a scratch folder, and reads it back from there."""

    def __init__(self, patches: Patches, not_seen: set[str]) -> None:
        """What cannot be redirected is not done, and told in `not_seen`."""
        self.not_seen = not_seen
        self.here = os.getcwd() + os.sep  # noqa: PTH109
        self.folder = Path(tempfile.mkdtemp(prefix="attnlab-watch-"))
        self.moved: dict[str, str] = {}
        for owner in (builtins, io):
            patches.put(owner, "open", self._opening)
        for name in ("mkdir", "makedirs"):
            patches.put(os, name, self._making)
        for name in ("remove", "unlink", "rmdir"):
            patches.put(os, name, self._deleting)
        for name in ("rename", "replace"):
            patches.put(os, name, self._renaming)
        patches.put(os, "truncate", self._truncating)
        patches.put(os, "system", self._commanding)
        patches.put(sqlite3, "connect", self._connecting)
        patches.put(torch, "save", self._saving)
        patches.put(torch, "load", self._loading)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted({Path(path).name for path in self.moved}))

    def _place(self, path: Any) -> str | None:
        """Where a path is redirected to; None for what is no path, or lies in a scratch folder."""
        if not isinstance(path, (str, os.PathLike)):
            return None
        full = os.path.abspath(os.fspath(path))  # noqa: PTH100 - the cheapest that follows no link
        temporary = full.startswith(tempfile.gettempdir() + os.sep)
        if (temporary and not full.startswith(self.here)) or full.startswith(OUTSIDE):
            return None
        scratch = self.folder / f"{len(self.moved)}-{Path(full).name}"
        return self.moved.setdefault(full, str(scratch))

    def _known(self, path: Any) -> Any:
        if not isinstance(path, (str, os.PathLike)):
            return path
        return self.moved.get(os.path.abspath(os.fspath(path)), path)  # noqa: PTH100

    def _opening(self, opened: Callable[..., Any]) -> Callable[..., Any]:
        def redirected(file: Any, mode: Any = "r", *args: Any, **kwargs: Any) -> Any:
            writes = isinstance(mode, str) and WRITING & set(mode)
            place = self._place(file) if writes else None
            return opened(place or self._known(file), mode, *args, **kwargs)

        return redirected

    def _making(self, _: Callable[..., Any]) -> Callable[..., Any]:
        def skipped(path: Any, *args: Any, **kwargs: Any) -> None:  # noqa: ARG001
            self._place(path)

        return skipped

    def _deleting(self, delete: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(path: Any, *args: Any, **kwargs: Any) -> None:
            known = self._known(path)
            if known != path or self._place(path) is None:
                delete(known, *args, **kwargs)

        return guarded

    def _renaming(self, rename: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(source: Any, target: Any, *args: Any, **kwargs: Any) -> None:
            known = self._known(source)
            if known != source:
                rename(known, self._place(target) or target, *args, **kwargs)

        return guarded

    def _truncating(self, truncate: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(path: Any, length: int) -> None:
            known = self._known(path)
            if known == path:
                content = Path(path).read_bytes()  # before it is redirected
                known = self._place(path) or path
                Path(known).write_bytes(content)
            truncate(known, length)

        return guarded

    def _commanding(self, _: Callable[..., Any]) -> Callable[..., Any]:
        def skipped(command: str) -> int:
            self.not_seen.add(f"a shell command, which was not run: {command}")
            return 0

        return skipped

    def _connecting(self, connect: Callable[..., Any]) -> Callable[..., Any]:
        def redirected(database: Any, *args: Any, **kwargs: Any) -> Any:
            place = None if database == ":memory:" else self._place(database)
            return connect(place or database, *args, **kwargs)

        return redirected

    def _saving(self, save: Callable[..., Any]) -> Callable[..., Any]:
        def redirected(obj: Any, f: Any, *args: Any, **kwargs: Any) -> None:
            save(obj, self._place(f) or f, *args, **kwargs)

        return redirected

    def _loading(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def redirected(f: Any, *args: Any, **kwargs: Any) -> Any:
            return load(self._known(f), *args, **kwargs)

        return redirected


def run_plainly(patches: Patches) -> None:
    """No worker processes of loaders, no compiler: what runs is what is written."""

    def in_process(make: Callable[..., None]) -> Callable[..., None]:
        def init(loader: Any, *args: Any, **kwargs: Any) -> None:
            plain = {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None}
            given = {name: plain.get(name, value) for name, value in kwargs.items()}
            make(loader, *args, **given)

        return init

    def eager(_: Callable[..., Any]) -> Callable[..., Any]:
        def compile(model: Any = None, *args: Any, **kwargs: Any) -> Any:  # noqa: A001, ARG001
            return model if model is not None else lambda function: function

        return compile

    patches.put(DataLoader, "__init__", in_process)
    patches.put(torch, "compile", eager)


def run_alone(patches: Patches, not_seen: set[str]) -> None:
    """Of several processes that train, the first runs here, as one of one."""

    def first_alone(_: Callable[..., Any]) -> Callable[..., None]:
        def spawn(function: Any, args: Any = (), nprocs: int = 1, *_: Any, **__: Any) -> None:
            not_seen.add(f"{nprocs} processes: the first ran alone, as if there were no others")
            function(0, *args)

        return spawn

    def of_one(begin: Callable[..., Any]) -> Callable[..., Any]:
        def init(*args: Any, **kwargs: Any) -> Any:
            kwargs |= {name: n for name, n in (("world_size", 1), ("rank", 0)) if name in kwargs}
            return begin(*args, **kwargs)

        return init

    def elsewhere(start: Callable[..., Any]) -> Callable[..., Any]:
        def begin(process: Any) -> Any:
            not_seen.add("what other processes of the script do")
            return start(process)

        return begin

    patches.put(torch.multiprocessing, "spawn", first_alone)
    patches.put(torch.distributed, "init_process_group", of_one)
    patches.put(multiprocessing.process.BaseProcess, "start", elsewhere)
