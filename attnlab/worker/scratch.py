"""The folder of one worker: its processes' current folder, where libraries may leave files.

Its name holds the id of the command's process, so that what a killed one left can be removed.
"""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

PREFIX = "attnlab-worker-"


def make_scratch() -> str | None:
    """A new folder; None where there is none to write to."""
    try:
        return tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-")
    except OSError:
        return None


def remove_scratch(folder: str | None) -> None:
    """Remove a folder of `make_scratch` and all in it; one that is gone is no error."""
    if not folder or not Path(folder).name.startswith(PREFIX):
        return
    try:
        shutil.rmtree(folder, ignore_errors=True)
    except RecursionError:  # a candidate nested thousands of folders
        subprocess.run(["rm", "-rf", "--", folder], check=False, stderr=subprocess.DEVNULL)


def remove_left_scratches() -> None:
    """Remove the folders of this user whose commands have ended."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        number = folder.name.removeprefix(PREFIX).partition("-")[0]
        try:
            ours = folder.lstat().st_uid == os.getuid() and number.isdecimal()
        except OSError:
            continue
        if ours and not _is_alive(int(number)):
            remove_scratch(str(folder))


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
