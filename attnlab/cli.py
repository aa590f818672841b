"""The command line: find the commands, and turn every outcome into an exit code.

Commands are the modules of `attnlab/commands/`; nothing here names one. Every error leaves as one
clear line on stderr, or as one JSON document on stdout where `--json` was asked for.
"""

import importlib
import os
import pkgutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from attnlab import __version__, commands
from attnlab.errors import AttnlabError, Broken, Refused
from attnlab.render.streams import flush_streams, is_output_lost, prepare_streams

REPORT = "please report it with this command, the output of `attnlab doctor` and of ATTNLAB_DEBUG=1"


class Interrupted(AttnlabError):
    """Ctrl-C, or Ctrl-D at a question."""

    outcome = "error"
    exit_code = 130


class OutputLost(AttnlabError):
    """What was printed went nowhere: the disk of the file or pipe is full, or has failed."""

    outcome = "error"
    exit_code = 74


def run(args: Sequence[str]) -> int:
    """Run one command line; returns its exit code and never raises."""
    prepare_streams()
    args = move_global_options(args)
    try:
        code, lost = _run(args), flush_streams()
    except OSError as error:  # raised by what prints, which alone is left to fail
        code, lost = OutputLost.exit_code, error.strerror or str(error)
        flush_streams()
    if not lost:
        return code
    with suppress(OSError):
        hint = "make room where it goes, and type the command again"
        report_error(OutputLost(f"the output is not complete: {lost}", hint), ())
    flush_streams()
    return OutputLost.exit_code


def _run(args: Sequence[str]) -> int:
    if "--install-completion" in args:
        _announce_completion()
    try:
        code = app().main(args, prog_name="attnlab", standalone_mode=False)
    except AttnlabError as error:
        code = report_error(error, args)
    except typer.TyperException as error:
        code = report_error(_usage(error, args), args)
    except (KeyboardInterrupt, typer.Abort):
        code = Interrupted.exit_code
    except Exception as error:  # the last resort: no bare traceback, ever
        if is_output_lost(error):
            raise
        code = report_error(_internal_error(error), args)
    if code == Interrupted.exit_code:  # Typer returns it, too
        report_error(Interrupted("interrupted"), args)
    return int(code or 0)


def report_error(error: AttnlabError, args: Sequence[str]) -> int:
    """Print the error; returns its exit code."""
    if wants_json(args):
        from attnlab.render.json import error_document, write_document

        write_document(error_document(error))
    else:
        from attnlab.render.screen import show_error, stderr

        show_error(error, stderr())
    return error.exit_code


def wants_json(args: Sequence[str]) -> bool:
    """Read from the raw words: a command line that cannot be parsed may ask for JSON too."""
    return "--json" in _before_dashes(args)


# What to type where an argument is missing, by its name in the help.
EXAMPLES = {
    "NAME": "{path} NAME; attnlab list shows the names",
    "TARGET": "{path} model.py:MyAttention",
    "KIND": "{path} sinusoidal",
    "MODULE": "{path} my_model.py --tests tests/",
    "REFERENCE": "{path} my_model.py right.py",
    "FOLDER|MANIFEST.csv": "{path} submissions --challenge too-sharp",
    "RUN": "{path} submissions.run",
}


def _usage(error: typer.TyperException, args: Sequence[str]) -> AttnlabError:
    context: Any = getattr(error, "ctx", None)
    path = context.command_path if context else "attnlab"
    message = error.format_message().rstrip(".")
    hint = _suggest_command(args, context) or f"see {path} --help"
    for name, example in EXAMPLES.items():
        if message == f"Missing argument '{name}'":
            hint = f"type {example.format(path=path)}"
    extra = message.rpartition("(")[2].rstrip(")")
    if message.startswith("Got unexpected extra") and extra.isdecimal():
        counts = [each for each in context.command.params if each.metavar == "N"]
        hint = f"did you mean {path} {counts[0].opts[0]} {extra}?" if counts else hint
    return Refused(message, hint)


def _suggest_command(args: Sequence[str], context: Any) -> str:
    """The command that was meant, where the first word is none."""
    known = list(getattr(getattr(context, "command", None), "commands", ()))
    words = [word for word in args if not word.startswith("-")]
    if not known or not words or words[0] in known:
        return ""
    for word in words[1:]:
        if word in known:  # they are swapped
            return f"did you mean attnlab {word} {words[0]}?"
    if words[0] in ("continue", "status"):
        return "attnlab alone says where you are and what is next"
    return _suggest_challenge(words[0])


def _suggest_challenge(word: str) -> str:
    from attnlab.catalogue.load import load

    names = {name for c in load().challenges for name in (c.name, c.slug)}
    return f"did you mean attnlab run {word}?" if word in names else ""


# The files that Typer writes for a shell, below the user's home.
COMPLETION = {
    "bash": ".bash_completions/attnlab.sh, and a line in .bashrc that reads it",
    "zsh": ".zfunc/_attnlab, and lines in .zshrc that read it",
    "fish": ".config/fish/completions/attnlab.fish",
}


def _announce_completion() -> None:
    """Say what --install-completion writes, before it does."""
    from attnlab.render.screen import stderr

    shell = Path(os.environ.get("SHELL", "")).name
    files = COMPLETION.get(shell, "the start file of your shell")
    place = "in your home folder " if shell in COMPLETION else ""
    stderr().message(f"writes {place}{files}; --show-completion only prints it")


def _internal_error(error: Exception) -> AttnlabError:
    """Anything that is not an `AttnlabError` is a bug of attnlab."""
    import traceback

    if os.environ.get("ATTNLAB_DEBUG"):
        traceback.print_exc(file=sys.stderr)
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    text = " ".join(str(error).split())
    return Broken(f"attnlab broke: {type(error).__name__}: {text}"[:500] + where, REPORT)


# ---------------------------------------------------------------- the app


def app() -> TyperGroup:
    """Every command of the folder; its module is imported when it is asked for."""
    group = get_command(_new_typer(_Main, _main_options))
    assert isinstance(group, TyperGroup)
    return group


def _module(name: str) -> Any:
    return importlib.import_module(f"attnlab.commands.{name}")


def _read_commands(names: Iterable[str]) -> dict[str, Any]:
    """The commands called so, in the order of their places."""
    modules = [_module(name) for name in names]
    made = _new_typer(_Group)
    for module in modules:
        name = module.__name__.rpartition(".")[2]
        if hasattr(module, "COMMANDS"):
            several = _subcommands(module.COMMANDS)
            made.add_typer(several, name=name, help=module.__doc__)
        else:
            made.command(name, cls=_Command)(module.command)
    group = get_command(made)
    assert isinstance(group, TyperGroup)
    order = [name for _, name in sorted((m.PLACE, m.__name__.rpartition(".")[2]) for m in modules)]
    return {name: group.commands[name] for name in order}  # typer puts groups last


def _new_typer(cls: type[TyperGroup], callback: Callable[..., None] | None = None) -> typer.Typer:
    return typer.Typer(
        cls=cls,
        callback=callback or _show_help_alone,
        invoke_without_command=True,
        rich_markup_mode=None,  # plain help takes half the time of a framed one
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["--help", "-h"]},
    )


def _subcommands(commands: Mapping[str, Callable[..., int]]) -> typer.Typer:
    made = _new_typer(_Group)
    for name, function in commands.items():
        made.command(name, cls=_Command)(function)
    return made


def _show_help_alone(ctx: typer.Context) -> None:
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help())


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"attnlab {__version__}")
        raise typer.Exit


def _main_options(  # noqa: PLR0913, PLR0917  options that every command takes
    ctx: typer.Context,
    catalogue: Annotated[
        str, typer.Option("--catalogue", metavar="DIR", help="Add a folder of challenges.")
    ] = "",
    no_color: Annotated[bool, typer.Option("--no-color", help="Plain text; as NO_COLOR.")] = False,
    no_server: Annotated[
        bool, typer.Option("--no-server", help="Import torch anew; as ATTNLAB_SERVER=0.")
    ] = False,
    require_isolation: Annotated[
        str,
        typer.Option(
            "--require-isolation",
            metavar="LEVEL",
            help="full, basic or none: without it nothing runs, and the exit code is 78.",
        ),
    ] = "",
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Practise and debug attention and positional-encoding code.

    Alone it says where you are and what is next.
    """
    ctx.obj = Path(catalogue) if catalogue else None
    if no_color:
        os.environ["NO_COLOR"] = "1"
    if no_server:
        os.environ["ATTNLAB_SERVER"] = "0"
    if require_isolation:
        os.environ["ATTNLAB_REQUIRE_ISOLATION"] = require_isolation
    if ctx.invoked_subcommand is None:
        from attnlab.commands.list import overview

        overview(ctx, json)


# ---------------------------------------------------------------- reading without pydantic


class _Text:
    """Reads a parameter that is text, a list of texts, or a flag, unchanged."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:  # noqa: ARG002
        several = param.multiple or param.nargs == -1
        return () if value is None and several else value


def _skip_pydantic(params: list[Any]) -> list[Any]:
    """Typer reads every value with pydantic, whose import doubles the time of a small command.

    Ours are all text or flags, so nothing needs reading. A Typer that keeps its readers elsewhere
    does not notice: it is as right as before, and slower.
    """
    for param in params:
        kind = getattr(getattr(param, "type_descriptor", None), "annotation", None)
        if kind in (str, bool, list[str]):
            param._runtime_param = _Text()  # noqa: SLF001
    return params


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        return _skip_pydantic(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Without what is read only to be refused."""
        refused = [p for p in self.params if getattr(p, "hidden", False)]
        unshown = [piece for param in refused for piece in param.get_usage_pieces(ctx)]
        return [piece for piece in super().collect_usage_pieces(ctx) if piece not in unshown]


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        return _skip_pydantic(super().get_params(ctx))


class _Main(_Group):
    """Reads the one command that is called; all of them for help, and where none is called so."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        names = [m.name for m in pkgutil.iter_modules(commands.__path__)]
        names = [name for name in names if name not in commands.SHARED]
        if cmd_name not in names:
            self.commands = _read_commands(names)
        elif cmd_name not in self.commands:
            self.commands.update(_read_commands([cmd_name]))
        return super().get_command(ctx, cmd_name)

    def list_commands(self, ctx: Any) -> list[str]:
        self.get_command(ctx, "")
        return super().list_commands(ctx)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What a command is for is the heading above it."""
        names = self.list_commands(ctx)
        wide = max(map(len, names))
        for title, places in commands.TITLES.items():
            listed = [name for name in names if _module(name).PLACE in places]
            with formatter.section(title):
                formatter.write_dl(
                    [
                        (name.ljust(wide), self.commands[name].get_short_help_str(formatter.width))
                        for name in listed
                    ]
                )


# ---------------------------------------------------------------- global options


WITH_VALUE = ("--catalogue", "--require-isolation")


def move_global_options(args: Sequence[str]) -> list[str]:
    """Global options may stand anywhere: they are moved to the front; --json goes behind the name
    of the command."""
    front: list[str] = []
    rest: list[str] = []
    words = iter(_before_dashes(args))
    for word in words:
        if word in WITH_VALUE:
            front += [word, *([value] if (value := next(words, None)) is not None else [])]
        elif word in ("--no-color", "--no-server") or word.startswith(
            ("--catalogue=", "--require-isolation=")
        ):
            front.append(word)
        else:
            rest.append(word)
    if rest[:1] == ["--json"] and len(rest) > 1:
        rest = [*rest[1:], "--json"]
    return [*front, *rest, *args[len(_before_dashes(args)) :]]


def _before_dashes(args: Sequence[str]) -> Sequence[str]:
    """The words before a lone `--`, after which nothing is an option."""
    return args[: list(args).index("--")] if "--" in args else args
