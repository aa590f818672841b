"""Positions on grids that are not square: cells in raster order, and resampling (B6, B5)."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from attnlab.references.grid import (
    FactorisedGridEncoding,
    LearnedGridEncoding,
    SinusoidalGridEncoding,
    resample_grid_positions,
    sinusoidal_grid_encoding,
)
from attnlab.references.positional import LAYOUTS, sinusoidal_positional_encoding

few = settings(max_examples=20, deadline=None)
sides = st.lists(st.integers(1, 7), min_size=2, max_size=2, unique=True)  # never a square
quarters = st.integers(1, 4)


def modules(H: int, W: int, D: int) -> list[nn.Module]:
    return [
        SinusoidalGridEncoding(H, W, D),
        LearnedGridEncoding(H, W, D),
        FactorisedGridEncoding(H, W, D),
        FactorisedGridEncoding(H, W, D, combine="concatenate"),
    ]


@given(sides, quarters, st.sampled_from(LAYOUTS))
@few
def test_half_of_a_row_says_the_row_and_half_the_column(
    sizes: list[int], quarter: int, layout: str
) -> None:
    """B6: cell (h, w) at index h * W + w."""
    (H, W), D = sizes, 4 * quarter
    table = sinusoidal_grid_encoding(H, W, D, 100.0, layout=layout, dtype=torch.float64)
    one = sinusoidal_positional_encoding(
        max(H, W), D // 2, 100.0, layout=layout, dtype=torch.float64
    )
    assert table.shape == (H * W, D)
    for h in range(H):
        for w in range(W):
            assert torch.equal(table[h * W + w], torch.cat((one[h], one[w])))


@given(sides, quarters)
@few
def test_every_module_adds_its_cells_to_every_image(sizes: list[int], quarter: int) -> None:
    """B6: x + cells; the table in raster order is the same cells; a smaller grid is the corner."""
    (H, W), D = sizes, 4 * quarter
    x = torch.randn(3, H, W, D)
    for module in modules(H + 2, W + 1, D):
        cells = module.get_encoding(H, W)
        assert cells.shape == (H * W, D)
        assert torch.equal(module(x), x + cells.view(H, W, D))
        whole = module.get_encoding(H + 2, W + 1).view(H + 2, W + 1, D)
        assert torch.equal(cells.view(H, W, D), whole[:H, :W])


def test_rows_and_columns_are_not_swapped() -> None:
    """B6: two cells of a row share the row's half, two of a column the column's."""
    table = SinusoidalGridEncoding(3, 5, 8).get_encoding(3, 5).view(3, 5, 8)
    assert torch.equal(table[1, 0, :4], table[1, 4, :4])
    assert torch.equal(table[0, 4, 4:], table[2, 4, 4:])
    assert not torch.allclose(table[0, 1, :4], table[1, 1, :4])
    assert len(table.flatten(0, 1).unique(dim=0)) == 15


def test_the_full_table_has_a_row_per_cell() -> None:
    """B6: each of its own, which training may move alone."""
    module = LearnedGridEncoding(3, 5, 4)
    assert sum(p.numel() for p in module.parameters()) == 3 * 5 * 4
    assert torch.equal(module.get_encoding(3, 5), module.weight.detach().reshape(15, 4))


@pytest.mark.parametrize(("combine", "numbers"), [("sum", 8 * 4), ("concatenate", 8 * 2)])
def test_factors_are_a_row_and_a_column_each(combine: str, numbers: int) -> None:
    """B6: H + W rows in place of H * W, added or side by side."""
    module = FactorisedGridEncoding(3, 5, 4, combine=combine)
    assert sum(p.numel() for p in module.parameters()) == numbers
    rows, columns = module.row_weight.detach(), module.column_weight.detach()
    for h in range(3):
        for w in range(5):
            pair = (rows[h], columns[w])
            expected = pair[0] + pair[1] if combine == "sum" else torch.cat(pair)
            assert torch.equal(module.get_encoding(3, 5)[h * 5 + w], expected)


def test_tables_are_drawn_narrowly() -> None:
    """B6: N(0, 0.02), as a learned table of one axis is."""
    torch.manual_seed(0)
    assert LearnedGridEncoding(30, 40, 64).weight.std().item() == pytest.approx(0.02, rel=0.02)
    factors = FactorisedGridEncoding(300, 400, 64)
    assert factors.row_weight.std().item() == pytest.approx(0.02, rel=0.03)


def by_cells(table: Tensor, old: tuple[int, int], new: tuple[int, int], align: bool) -> Tensor:
    """Bilinear resampling cell by cell: along the rows, then along the columns."""

    def weights(S: int, length: int) -> Tensor:
        line = torch.eye(S, dtype=table.dtype).T[None]
        return F.interpolate(line, length, mode="linear", align_corners=align)[0].T

    grid = table.view(*old, -1)
    return torch.einsum(
        "ah,bw,hwd->abd", weights(old[0], new[0]), weights(old[1], new[1]), grid
    ).flatten(0, 1)


@given(sides, sides, st.booleans(), st.integers(0, 2))
@few
def test_resampling_goes_along_rows_and_columns(
    old: list[int], new: list[int], align: bool, prefix: int
) -> None:
    """B5, B6: from one grid that is not square to another; the rows before it stay."""
    torch.manual_seed(old[0] + 10 * old[1])
    (H, W), (H2, W2) = old, new
    table = torch.randn(prefix + H * W, 3, dtype=torch.float64)
    out = resample_grid_positions(
        table, (H, W), (H2, W2), prefix=prefix, mode="bilinear", align_corners=align
    )
    assert torch.equal(out[:prefix], table[:prefix])
    expected = by_cells(table[prefix:], (H, W), (H2, W2), align)
    torch.testing.assert_close(out[prefix:], expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("mode", ["bicubic", "bilinear"])
@pytest.mark.parametrize("align", [False, True])
def test_the_same_grid_gives_the_same_table(mode: str, align: bool) -> None:
    """B5: nothing is blurred where nothing is to be done."""
    table = torch.randn(15, 4, dtype=torch.float64)
    same = resample_grid_positions(table, (3, 5), (3, 5), mode=mode, align_corners=align)
    torch.testing.assert_close(same, table, rtol=0, atol=1e-12)


def test_a_slope_stays_a_slope() -> None:
    """B5: with aligned corners a table that says 10 h + w says so at the new cells too."""
    h, w = torch.meshgrid(torch.arange(3.0), torch.arange(5.0), indexing="ij")
    table = (10 * h + w).reshape(15, 1).double()
    out = resample_grid_positions(table, (3, 5), (5, 9), mode="bilinear", align_corners=True)
    new_h = torch.linspace(0, 2, 5).double()
    new_w = torch.linspace(0, 4, 9).double()
    expected = 10 * new_h[:, None] + new_w
    torch.testing.assert_close(out.view(5, 9), expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_tables_are_resampled_in_float32(dtype: torch.dtype) -> None:
    """B5: and rounded once."""
    table = torch.randn(16, 4).to(dtype)
    out = resample_grid_positions(table, (3, 5), (4, 7), prefix=1)
    assert torch.equal(
        out, resample_grid_positions(table.float(), (3, 5), (4, 7), prefix=1).to(dtype)
    )


@pytest.mark.parametrize("kind", range(4))
@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ((15, 8), r"x has shape \(15, 8\): expected \(B, H, W, D\) with D = 8"),
        ((2, 15, 8), r"x has shape .* expected \(B, H, W, D\)"),
        ((2, 3, 5, 1), r"x has shape .* with D = 8"),
        ((2, 5, 3, 8), "the grid is 5 x 3: expected at most max_height x max_width = 3 x 5"),
        ((2, 3, 6, 8), "the grid is 3 x 6: expected at most"),
    ],
)
def test_grids_that_do_not_fit_are_refused(kind: int, shape: tuple[int, ...], said: str) -> None:
    """B6: a grid lying on its side too."""
    with pytest.raises(ValueError, match=said):
        modules(3, 5, 8)[kind](torch.zeros(shape))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sinusoidal_grid_encoding(3, 5, 6), "d_model=6: expected a positive multiple of 4"),
        (lambda: sinusoidal_grid_encoding(-3, 5, 8), "height=-3: expected 0 or more"),
        (lambda: SinusoidalGridEncoding(3, 5, 6), "d_model=6: expected a positive multiple of 4"),
        (lambda: LearnedGridEncoding(0, 5, 6), "max_height=0: expected 1 or more"),
        (lambda: LearnedGridEncoding(5, 5, 0), "d_model=0: expected 1 or more"),
        (lambda: FactorisedGridEncoding(3, 0, 6), "max_width=0: expected 1 or more"),
        (lambda: FactorisedGridEncoding(3, 5, 6, combine="add"), "combine='add': expected one of"),
        (
            lambda: FactorisedGridEncoding(3, 5, 7, combine="concatenate"),
            "d_model=7: expected a positive even number",
        ),
    ],
)
def test_sizes_that_make_no_grid_are_refused(make: Any, said: str) -> None:
    """B6: naming argument and value."""
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (15, {"prefix": 1}, r"table has 15 rows, old=\(3, 5\).* prefix \+ H\*W = 16 rows"),
        (16, {}, r"table has 16 rows.* = 15 rows"),
        (15, {"mode": "nearest"}, "mode='nearest': expected one of 'bicubic', 'bilinear'"),
        (15, {"prefix": -1}, "prefix=-1: expected 0 or more"),
    ],
)
def test_tables_that_are_not_of_the_grid_are_refused(
    rows: int, options: dict[str, Any], said: str
) -> None:
    """B5: a class token that was forgotten would shift every cell."""
    with pytest.raises(ValueError, match=said):
        resample_grid_positions(torch.zeros(rows, 4), (3, 5), (6, 7), **options)
    with pytest.raises(ValueError, match=r"new=\(0, 7\)"):
        resample_grid_positions(torch.zeros(15, 4), (3, 5), (0, 7))
