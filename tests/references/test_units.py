"""How a challenge finds its reference by name."""

import subprocess
import sys

import pytest

from attnlab import references
from attnlab.references import unit
from attnlab.references.attention import MultiHeadSelfAttention
from attnlab.references.positional import SinusoidalPositionalEncoding


@pytest.mark.parametrize("cls", [MultiHeadSelfAttention, SinusoidalPositionalEncoding])
def test_a_class_is_found_by_its_name(cls: type) -> None:
    """Whichever file of the folder defines it."""
    assert unit(cls.__name__) is cls


@pytest.mark.parametrize("name", ["Linear", "nn", "unit", "multiheadselfattention", ""])
def test_an_unknown_name_is_answered_with_those_that_exist(name: str) -> None:
    """Imported classes, functions and other spellings are no units."""
    with pytest.raises(
        KeyError, match=r"no reference is called .*\bMultiHeadSelfAttention, .*Sinusoidal"
    ):
        unit(name)


def test_no_name_stands_for_two_classes() -> None:
    """A name in a challenge means one class; each says what it computes."""
    units = list(references._units())
    assert len({name for name, _ in units}) == len(units)
    assert all(cls.__doc__ for _, cls in units)


def test_the_package_itself_needs_no_torch() -> None:
    """Only a search imports it."""
    code = "import sys, attnlab.references; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
