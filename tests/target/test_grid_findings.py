"""What the text of a file says of places in a flattened picture."""

import pytest

from attnlab.target.source_findings import source_findings

TEXT = """
class Grid(nn.Module):
    def forward(self, x, idx):
        b, _, h, w = x.shape
        H, W, n_rows, n_cols = h, w, h, w
        self.height, self.width = h, w
        {body}
"""
WRONG = [
    "row, col = idx // h, idx % h",
    "ys = idx // H; xs = idx % H",
    "y = torch.div(idx, h, rounding_mode='floor'); x = torch.remainder(idx, h)",
    "y, x = divmod(idx, n_rows)",
    "y_pos = (idx // self.height).float(); x_pos = (idx % self.height).float()",
    "return self.row_table(idx // h) + self.col_table(idx % h)",
    "return self.row_pos[idx // h] + self.col_pos[idx % h]",
    "gh = int(n ** 0.5); gw = n // gh; row, col = idx // gh, idx % gh",
    "flat = row * h + col",
    "flat = ys.long() * self.height + xs.long()",
]
RIGHT = [
    "row, col = idx // w, idx % w",
    "col, row = idx // h, idx % h",  # column by column
    "y, x = divmod(idx, n_cols)",
    "batch, rest = idx // h, idx % h",
    "i, j = idx // h, idx % h",
    "flat = row * w + col",
    "flat = x * h + y",
    "head, row = idx // h, idx % h",
    "row, col = idx // self.n_heads, idx % self.n_heads",
    "gh = gw = int(idx.numel() ** 0.5); row, col = idx // gh, idx % gh",
    "assert h == w; row, col = idx // h, idx % h",
]


@pytest.mark.parametrize(("body", "count"), [(b, 1) for b in WRONG] + [(b, 0) for b in RIGHT])
def test_places_are_counted_with_the_length_of_a_row(body, count):
    """Rows and columns by any names; pictures column by column, batches and squares are right."""
    found = source_findings(TEXT.format(body=body), "net.py")
    assert [f.line for f in found if f.rule == "grid-by-rows"] == [7] * count


GRID = """
def positions(h, w):
    {}
class Net:
    def forward(self, x):
        return x.flatten(2).transpose(1, 2)
"""
ANGLES = "; return angles(x.flatten(), y.flatten())"


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("x, y = torch.meshgrid(torch.arange(w), torch.arange(h), indexing='ij')" + ANGLES, True),
        ("x, y = torch.meshgrid(torch.arange(w), torch.arange(h))" + ANGLES, True),
        ("y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing='xy')" + ANGLES, True),
        ("a = torch.arange(w).float(); x, y = torch.meshgrid([a, torch.arange(h)])" + ANGLES, True),
        ("y, x = np.meshgrid(np.arange(h), np.arange(w))" + ANGLES, True),
        ("y, x = torch.meshgrid(torch.arange(h), torch.arange(w), indexing='ij')" + ANGLES, False),
        ("x, y = torch.meshgrid(torch.arange(w), torch.arange(h), indexing='xy')" + ANGLES, False),
        ("x, y = np.meshgrid(np.arange(w), np.arange(h))" + ANGLES, False),
        (
            "x, y = torch.meshgrid(torch.arange(w), torch.arange(h)); x, y = x.t(), y.t()" + ANGLES,
            False,
        ),
        ("x, y = torch.meshgrid(torch.arange(w), torch.arange(h)); return img[y, x]", False),
        ("x, y = torch.meshgrid(torch.arange(n), torch.arange(m))" + ANGLES, False),
    ],
)
def test_grids_run_as_tokens_do(body, found):
    """Torch and numpy differ in what they do without `indexing`; a grid that is turned, not
    flattened, or has no names for its sides is none."""
    lines = [f.line for f in source_findings(GRID.format(body), "n.py") if f.rule == "grid-by-rows"]
    assert lines == [3] * found
