"""On a grid, rows and columns are not mixed up, also where it is not square.

What is added to cell (r, c) is made of a part for r and a part for c. So the step from row r to
row r + 1 is the same in every column, and the step from one column to the next the same in every
row.

Wrong: cells counted `c * rows + r` or `r * rows + c`; `meshgrid` with "xy" where "ij" was meant;
`reshape(W, H, D)`. On a square grid the first two hide.
Right: cell (r, c) stands at index r * columns + c.
"""

from attnlab.checks.base import Failure, Probe, Tier, check
from attnlab.checks.shared.positions import grid_sizes, plain_inputs, rows
from attnlab.probe.answers import Skip


@check(
    title="Grid cells lie in raster order",
    needs=("output", "table", "grid"),
    tier=Tier.MASKS,
    advice="Take a grid of 2 rows and 3 columns and print which row and column each cell is given.",
)
def run(probe: Probe) -> Failure | None:
    height, width = grid_sizes(probe)
    if min(height, width) < 2:
        raise Skip("the grid has one row or one column only")
    table = rows(probe, plain_inputs(probe))
    cells = table.reshape(height, width, -1)
    limit = probe.tolerance(cells)
    down = cells[1:] - cells[:-1]
    bad = ~((down[:, 1:] - down[:, :-1]).abs() <= limit)
    if not bad.any().item():
        return None
    r, c = bad.nonzero()[0].tolist()[:2]
    return Failure(
        message=f"on a grid of {height} rows and {width} columns the step from row {r} to {r + 1} "
        f"differs between column {c} and column {c + 1}"
    )
