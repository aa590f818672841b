"""Grids whose cells are counted the other way."""

from scenes import CELLS, FLAT, FLAT_CELLS, GRID, case

WRONG = {
    "columns first": case(
        FLAT,
        FLAT_CELLS,
        ("index // self.C", "index % len(self.rows)"),
        ("index % self.C", "index // len(self.rows)"),
    ),
    "rows of the wrong width": case(
        FLAT,
        FLAT_CELLS,
        ("self.C = columns", "self.C = columns - 1"),
        ("rows, d_model)", "rows + 9, d_model)"),
    ),
    "laid out backwards": case(
        GRID,
        CELLS,
        (
            "torch.cat((rows, columns), -1)",
            "torch.cat((rows, columns), -1).reshape(C, R, D).transpose(0, 1)",
        ),
    ),
}
RIGHT = {
    "a sum of two": case(FLAT, FLAT_CELLS),
    "two halves": case(GRID, CELLS),
    "columns in the first half": case(GRID, CELLS, ("(rows, columns)", "(columns, rows)")),
}
