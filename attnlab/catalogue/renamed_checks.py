"""Ids that checks had before, which files and scripts may still hold."""

import tomllib
from pathlib import Path

RENAMED: dict[str, str] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
