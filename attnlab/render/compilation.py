"""What torch.compile makes of a call."""

from attnlab.records.trace import Compilation, Recompilation
from attnlab.render.formats import format_place
from attnlab.render.screen import Screen, plural


def show_compilation(seen: Compilation, screen: Screen) -> None:
    screen.gap()
    if seen.problem:
        screen.hang(("torch.compile  ", "title"), seen.problem)
        return
    whole = seen.graphs == 1 and not seen.breaks
    graphs = "one graph, no break" if whole else plural(seen.graphs, "graph")
    told = "" if whole else f", {plural(len(seen.breaks), 'place')} where they break"
    screen.say(("torch.compile", "title"), f"  {graphs}{told}")
    for place in seen.breaks:
        spot = (format_place(place.file, place.line), "name")
        screen.hang((f"  {screen.marks.warn} ", "warn"), spot, f"  {place.reason}")
        screen.say((place.source, "aside"), indent=6)
    for change in seen.recompilations:
        screen.hang(f"  {change.axis}: ", _cost(change))
    if seen.breaks:
        screen.say(("fullgraph=True makes a break an error, with its line", "aside"), indent=2)


def _cost(change: Recompilation) -> str:
    """What other sizes of an axis cost."""
    why = f" ({change.reason})" if change.reason else ""
    anew = [str(n) for n, again in zip(change.sizes, change.compiled, strict=True) if again]
    if not anew:
        return f"other sizes ({', '.join(map(str, change.sizes))}) need no new graph"
    if len(anew) == len(change.sizes):
        return f"compiled anew for each size ({', '.join(anew)}){why}"
    rest = "" if change.compiled[-1] else ", and for no other size"
    return f"compiled anew for {' and '.join(anew)}{rest}{why}"
