"""Find what a user names: `file.py:Class`, `file.py`, `package.module:Class`; raise `Refused`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from attnlab.errors import Refused
from attnlab.files import exists
from attnlab.records import Challenge, Code, UserEnvironment, record
from attnlab.suggest import either
from attnlab.target.command_line import TraceCommand
from attnlab.target.environment import (
    find_module_file,
    package_environment,
    user_environment,
    with_package_roots,
)
from attnlab.target.outline import Definition, Outline, outline_code
from attnlab.target.source import read_source
from attnlab.target.top_level import no_such_name

MOST = 6  # names that a list shows
FORMS = "TARGET is file.py:Class, file.py:function, file.py or package.module:Class."


@record
class Target:
    """What a target names: the code, and the definition where it can be seen without running."""

    code: Code
    own: UserEnvironment
    seen: Definition | None = None
    demo: bool = False  # where the class cannot be fed, the file's demo may run instead
    choices: str = ""  # `Name one: my.py:Net or my.py:Block, ...`
    near: Outline = Outline(definitions={})  # the file that it stands in


@record
class Answer:
    """Code that is looked at as an answer to a challenge."""

    challenge: Challenge
    code: Code


def find_target(target: str, verb: str) -> Target:
    """The code that `target` names; raises `Refused` or `Unreadable`."""
    place, name = split_target(target)
    if place.endswith(".py") or re.search(r"[/\\]", place) or (place and exists(Path(place))):
        return _find_file(place, name, verb)
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", place):
        raise Refused(f"{target}: no such file, and not the name of a module", FORMS, target)
    if not name:
        hint = f"Name a file, {place}.py, or a class of a module, {place}:Class. {FORMS}"
        raise Refused(f"{target}: no such file, and no class of a module", hint, target)
    return _find_module(place, name)


class Several(Refused):
    """A file of several modules, and nothing says which is meant; `roots` use no other."""

    def __init__(self, message: str, hint: str, where: str, roots: tuple[str, ...]) -> None:
        super().__init__(message, hint, where)
        self.roots = roots


def find_answer(answer: Answer) -> Target:
    name, outlined = answer.challenge.class_name, outline_code(answer.code)
    own = user_environment(str(Path(answer.code.path).absolute().parent))
    seen = find_definition(outlined, name, answer.code)
    return Target(code=replace(answer.code, name=name), own=own, seen=seen, near=outlined)


def split_target(target: str) -> tuple[str, str]:
    r"""`C:\x.py:Class` as its file and its class; the class may be missing."""
    place, colon, name = target.rpartition(":")
    if not colon or re.search(r"[/\\]", name):
        return target, ""
    if name and not name.isidentifier() and not place.endswith(".py"):
        return target, ""
    if not name.isidentifier():
        says = f'{target}: "{name}" is not a class name'
        raise Refused(says, f"Name a class after the colon, or {place} alone.", target)
    return place, name


def _find_file(place: str, name: str, verb: str) -> Target:
    path = Path(place)
    code = read_source(path, place)
    outlined = outline_code(code)
    own = package_environment(path, outlined.climbs) or user_environment(
        str(path.absolute().parent)
    )
    own = with_package_roots(own, path, outlined)
    if name:
        seen = find_definition(outlined, name, code)
        return Target(code=replace(code, name=name), own=own, seen=seen, near=outlined)
    modules = outlined.modules()
    roots = [m for m in outlined.roots if outlined.definitions[m].callable]
    if len(modules) == 1 or (len(roots) == 1 and not outlined.demo):
        seen = outlined.definitions[(roots or modules)[0]]
        code = replace(code, name=seen.name)
        return Target(code=code, own=own, seen=seen, demo=outlined.demo, near=outlined)
    functions = [d.name for d in outlined.definitions.values() if d.kind == "function"]
    choices = name_choices([f"{place}:{name}" for name in roots or modules or functions], verb)
    if outlined.demo:
        return Target(code=code, own=own, demo=True, choices=choices)
    if not modules and functions:
        raise Refused(f"{place} defines no nn.Module, and no demo to run", choices, place)
    if not modules:
        hint = 'Define a class with a forward, or an `if __name__ == "__main__":` that calls one.'
        raise Refused(f"{place} defines no nn.Module, and no demo to run", hint, place)
    raise Several(f"{place} defines {len(modules)} modules", choices, place, tuple(roots))


def name_choices(targets: Sequence[str], verb: str) -> str:
    """`Name one: a.py:Net or a.py:Block, as in attnlab trace a.py:Block`."""
    if not targets:
        return f"Name a class or a function of it, as in attnlab {verb} FILE.py:CLASS"
    shown = [*targets[:MOST], *(["..."] if len(targets) > MOST else [])]
    return (
        f"Name one: {either(shown)}, as in {TraceCommand(target=targets[-1], verb=verb).command()}"
    )


def _find_module(module: str, name: str) -> Target:
    own = replace(user_environment(), module=module)
    path = find_module_file(module, own.sys_path)
    if path is None:  # compiled, zipped or made at run time: the lab imports it and looks
        return Target(code=Code(file=module, text="", name=name), own=own)
    code = read_source(path)
    outlined = outline_code(code)
    seen = find_definition(outlined, name, code)
    return Target(code=replace(code, name=name), own=own, seen=seen, near=outlined)


def find_definition(seen: Outline, name: str, code: Code) -> Definition | None:
    """What `name` is in the file; None where it may come from elsewhere; else raises `Refused`."""
    found = seen.definitions.get(name)
    if found:
        return None if found.kind == "other" else found
    if not seen.complete:
        return None
    raise no_such_name(code.file, name, seen.definitions, seen.classes())


def trains_when_run(target: str) -> bool:
    """Whether the target is a file alone whose code trains when it runs."""
    place, name = split_target(target)
    path = Path(place)
    if name or not place.endswith(".py") or not exists(path):
        return False
    return outline_code(read_source(path)).trains
