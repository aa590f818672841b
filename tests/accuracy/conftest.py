"""The benchmarks are no package that is installed: they are found from the root of the project."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # last, so that an installed attnlab goes first
