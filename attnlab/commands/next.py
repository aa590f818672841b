import typer

from attnlab.commands.base import Json

PLACE = 25


def command(ctx: typer.Context, json: Json = False) -> int:
    """Go on: start the next unsolved challenge here.

    What is under way in this folder comes first, or a round that is going on or was just solved.
    """
    from attnlab.commands.list import list_page, overview
    from attnlab.commands.rounds import next_after_round
    from attnlab.commands.start import command as start
    from attnlab.render.list import next_unsolved

    listing = list_page(ctx)
    following = next_unsolved(tuple(r for r in listing.rows if r[0].slug not in listing.here))
    if listing.under_way or following is None or next_after_round(ctx):
        return overview(ctx, json)
    return start(ctx, following.name, json=json)
