"""The warm judge, which keeps torch imported: status, stop."""

from typing import Annotated

import typer

from attnlab.commands.base import Json, emit

PLACE = 220
All = Annotated[bool, typer.Option("--all", help="Also those of your other installations.")]


def status(ctx: typer.Context, json: Json = False) -> int:  # noqa: ARG001
    """Show the warm judges that run: since when, what they served, when they leave."""
    from attnlab.render.server import ServerPage
    from attnlab.worker.warm_start import ask_servers, why_unwanted

    page = ServerPage(servers=tuple(ask_servers("status")), unwanted=why_unwanted())
    return emit(page, json)


def stop(ctx: typer.Context, everything: All = False, json: Json = False) -> int:  # noqa: ARG001
    """End them, once the commands that they serve have ended; the next command starts one anew."""
    from attnlab.render.server import ServerPage
    from attnlab.worker.warm_start import INSTALLATION, ask_servers, why_unwanted

    asked = tuple(ask_servers("stop", everywhere=everything))
    stopped = tuple(s for s in asked if everything or s.installation == INSTALLATION)
    others, why = len(asked) - len(stopped), why_unwanted()
    return emit(ServerPage(servers=stopped, stopped=True, unwanted=why, others=others), json)


COMMANDS = {"status": status, "stop": stop}
