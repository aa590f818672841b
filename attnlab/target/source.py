"""Read a Python file once, and raise every error that needs no torch."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from pathlib import Path

from attnlab.errors import Unreadable
from attnlab.files import PARSING, read_bytes
from attnlab.records import Code

LARGEST = 1 << 20
_MARK = re.compile(r"# *attnlab: *([a-z0-9-]+/[a-z0-9-]+)\s*$")
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


def read_source(path: Path, shown: str | None = None) -> Code:
    """The source file at `path`, valid Python; raises `Unreadable` with what is wrong."""
    file = shown or str(path)
    if path.suffix == ".ipynb" and path.is_file():
        hint = f"Export it as a .py file: jupyter nbconvert --to script {file}"
        raise Unreadable(f"{file} is a notebook, not a Python file", hint, file)
    text = _decode(read_bytes(path, file, LARGEST), file)
    if not text.strip():
        raise Unreadable(
            f"{file} is empty", "Write the module into it, or name another file.", file
        )
    parse(text, file)
    return Code(file=file, text=text, path=str(path.absolute()))


def marked_slug(text: str) -> str | None:
    """The challenge that a file made by `attnlab start` names on its first line."""
    found = _MARK.match(text.partition("\n")[0])
    return found[1] if found else None


def parse(text: str, file: str) -> ast.Module:
    """The syntax tree of a whole file; raises `Unreadable` with the line that is wrong."""
    try:
        with PARSING, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about escapes such as "\d": not ours to tell
            tree = ast.parse(text, file)
            compile(text, file, "exec", dont_inherit=True)  # finds what parsing alone does not
    except SyntaxError as error:
        raise _syntax_error(text, file, error) from None
    except (RecursionError, MemoryError):
        hint = "Write it as several smaller statements."
        raise Unreadable(f"{file} is nested too deeply to be compiled", hint, file) from None
    return tree


def _decode(data: bytes, file: str) -> str:
    """The text in the file's declared encoding, UTF-8 where it declares none."""
    if data.startswith(_UTF16):
        raise Unreadable(f"{file} is UTF-16 text", "Save it as UTF-8.", file)
    if (at := data.find(0)) >= 0:
        hint = "Name the .py file, not a compiled, compressed or saved one."
        raise Unreadable(f"{file} is a binary file (a NUL byte at offset {at})", hint, file)
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        text = data.decode(encoding)
        text.encode()  # lone surrogates, which some codecs make, are no text
    except UnicodeError as error:
        raise _bad_text(data, file, error) from None
    except (SyntaxError, LookupError) as error:
        if re.search("encoding problem|unknown encoding|not a text encoding", str(error)):
            hint = "Delete the coding line and save the file as UTF-8."
            raise Unreadable(f"{file} declares no usable encoding: {error}", hint, file) from None
        raise _bad_text(data, file, error) from None
    return text.removeprefix("\ufeff")


def _bad_text(data: bytes, file: str, error: Exception) -> Unreadable:
    """Names the first line that is not UTF-8."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as found:
        line = data.count(b"\n", 0, found.start) + 1
        says = f"{file} is not UTF-8: byte 0x{data[found.start]:02x} on line {line}"
        hint = "Save it as UTF-8, or declare its encoding on line 1: # coding: latin-1"
        return Unreadable(says, hint, f"{file}:{line}")
    hint = "Delete the coding line and save the file as UTF-8."
    says = f"{file} is not text in its declared encoding: {_printable(str(error))}"
    return Unreadable(says, hint, file)


def _syntax_error(text: str, file: str, error: SyntaxError) -> Unreadable:
    line = error.lineno or 1
    lines = re.split("\r\n|\r|\n", text)  # splitlines knows more ends of lines than Python
    source = _printable(lines[line - 1].strip())[:100] if line <= len(lines) else ""
    says = f"{file}:{line}: syntax error, {error.msg}" + (f": {source}" if source else "")
    return Unreadable(says, "Mend that line, then try again.", f"{file}:{line}")


def _printable(text: str) -> str:
    """Without control characters: a terminal would obey them."""
    return "".join(c if c.isprintable() else "?" for c in text)
