"""Positions on a grid of H rows and W columns, such as the patches of an image.

Everything here is in raster order: row by row, cell (h, w) at index h * W + w. H and W differ in
general, and swapping them misplaces every row but the first.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from attnlab.references._arguments import check_choice, check_count, check_features, check_width
from attnlab.references.positional import sinusoidal_positional_encoding


def sinusoidal_grid_encoding(
    height: int,
    width: int,
    d_model: int,
    base: float = 10000.0,
    *,
    layout: str = "interleaved",
    dtype: torch.dtype | None = None,
) -> Tensor:
    """A table whose first half encodes the row and second half the column: (H*W, D), raster order.

        table[h * W + w] = [ PE[h] | PE[w] ]        PE of width D/2, for rows and for columns

    The row comes first, as in positional-encodings and in the ViT-MAE of transformers (there with
    `layout` "concatenated"); the first release of MAE has the column first: there swap the halves.

    Source: "Masked Autoencoders Are Scalable Vision Learners" (He et al., 2022), its released code
    Rows: B6"""
    check_width("d_model", d_model, parts=4)
    check_count("height", height, least=0)
    check_count("width", width, least=0)
    half = d_model // 2
    rows = sinusoidal_positional_encoding(height, half, base, layout=layout, dtype=dtype)
    columns = sinusoidal_positional_encoding(width, half, base, layout=layout, dtype=dtype)
    return _joined_columns(rows, columns).flatten(0, 1)  #     (H, W, D) -> (H*W, D)


def resample_grid_positions(
    table: Tensor,
    old: tuple[int, int],
    new: tuple[int, int],
    *,
    prefix: int = 0,
    mode: str = "bicubic",
    align_corners: bool = False,
) -> Tensor:
    """A position table interpolated to another grid: (prefix + H*W, D) -> (prefix + H'*W', D).

    The first `prefix` rows belong to no cell (1 for a class token) and stay as they are. The
    defaults are those of ViT and DINOv2; `align_corners=True` keeps the corners in place instead.
    Half types are computed in float32, as in DINOv2 and unlike in ViT.

    Source: "An Image is Worth 16x16 Words" (Dosovitskiy et al., 2021), section 3.2
    Rows: B5, B6"""
    check_features("table", table, "N D")
    check_choice("mode", mode, ("bicubic", "bilinear"))
    check_count("prefix", prefix, least=0)
    if min(*old, *new) < 1 or table.shape[0] != prefix + old[0] * old[1]:
        raise ValueError(
            f"table has {table.shape[0]} rows, old={old}, new={new}, prefix={prefix}: expected "
            f"sizes from 1 and prefix + H*W = {prefix + old[0] * old[1]} rows"
        )
    kept, cells = table[:prefix], table[prefix:]  #                        (prefix, D), (H*W, D)
    image = cells.T.reshape(1, -1, *old)  #                                (1, D, H, W)
    wide = image.to(torch.promote_types(table.dtype, torch.float32))
    image = F.interpolate(wide, new, mode=mode, align_corners=align_corners)  # (1, D, H', W')
    return torch.cat((kept, image[0].flatten(1).T.to(table.dtype)))


class _GridEncoding(nn.Module):
    """Adds a row per cell; subclasses say where `_cells`, (H, W, D), come from."""

    def __init__(self, max_height: int, max_width: int, d_model: int) -> None:
        super().__init__()
        check_count("max_height", max_height)
        check_count("max_width", max_width)
        check_count("d_model", d_model)
        self.max_height = max_height
        self.max_width = max_width
        self.d_model = d_model

    def forward(self, x: Tensor) -> Tensor:
        check_features("x", x, "B H W D", D=self.d_model)
        _, H, W, _ = x.shape
        self._check_sizes(H, W)
        return x + self._cells(H, W)  #     (B, H, W, D) + (H, W, D): every image alike

    def get_encoding(self, height: int, width: int) -> Tensor:
        """The rows of the first `height` x `width` cells in raster order, (H*W, D): a copy."""
        self._check_sizes(height, width)
        return self._cells(height, width).detach().clone().flatten(0, 1)

    def _cells(self, height: int, width: int) -> Tensor:
        raise NotImplementedError

    def _check_sizes(self, height: int, width: int) -> None:
        if not (0 <= height <= self.max_height and 0 <= width <= self.max_width):
            raise ValueError(
                f"the grid is {height} x {width}: expected at most max_height x max_width = "
                f"{self.max_height} x {self.max_width}"
            )


class SinusoidalGridEncoding(_GridEncoding):
    """Adds the sinusoidal table of a grid, half of its columns for the row, half for the column.

    Shapes
        x       (B, H, W, D)  batch, rows, columns, `d_model`; patches in raster order, (B, H*W, D),
                              become that by `x.unflatten(1, (H, W))`
        output  (B, H, W, D)

    Source: "Masked Autoencoders Are Scalable Vision Learners" (He et al., 2022), its released code
    Rows: B6"""

    pe: Tensor

    def __init__(
        self,
        max_height: int,
        max_width: int,
        d_model: int,
        *,
        base: float = 10000.0,
        layout: str = "interleaved",
    ) -> None:
        super().__init__(max_height, max_width, d_model)
        table = sinusoidal_grid_encoding(max_height, max_width, d_model, base, layout=layout)
        cells = table.reshape(max_height, max_width, d_model)
        self.register_buffer("pe", cells, persistent=False)

    def _cells(self, height: int, width: int) -> Tensor:
        return self.pe[:height, :width]


class LearnedGridEncoding(_GridEncoding):
    """Adds a trained row per cell: a full table of `max_height` * `max_width` rows.

    Shapes
        x       (B, H, W, D)  batch, rows, columns, `d_model`; patches in raster order, (B, H*W, D),
                              become that by `x.unflatten(1, (H, W))`
        output  (B, H, W, D)

    A smaller grid takes the upper left corner; to spread a table over another grid there is
    `resample_grid_positions`.

    Source: "An Image is Worth 16x16 Words" (Dosovitskiy et al., 2021), section 3.1
    Rows: B6"""

    def __init__(self, max_height: int, max_width: int, d_model: int, *, std: float = 0.02) -> None:
        super().__init__(max_height, max_width, d_model)
        self.weight = nn.Parameter(torch.empty(max_height, max_width, d_model))
        nn.init.normal_(self.weight, std=std)

    def _cells(self, height: int, width: int) -> Tensor:
        return self.weight[:height, :width]


class FactorisedGridEncoding(_GridEncoding):
    """Adds a trained row for the cell's row of the grid and one for its column.

    `max_height` + `max_width` rows in place of their product.

        cell(h, w) = R[h] + C[w]          `combine` "sum", R and C of width D
        cell(h, w) = [ R[h] | C[w] ]      `combine` "concatenate", of width D/2 each

    Shapes
        x       (B, H, W, D)  batch, rows, columns, `d_model`; patches in raster order, (B, H*W, D),
                              become that by `x.unflatten(1, (H, W))`
        output  (B, H, W, D)

    Source: "An Image is Worth 16x16 Words" (Dosovitskiy et al., 2021), appendix D.4 (concatenated);
        "Reformer: The Efficient Transformer" (Kitaev et al., 2020), its released code (both)
    Rows: B6"""

    def __init__(
        self,
        max_height: int,
        max_width: int,
        d_model: int,
        *,
        combine: str = "sum",
        std: float = 0.02,
    ) -> None:
        super().__init__(max_height, max_width, d_model)
        check_choice("combine", combine, ("sum", "concatenate"))
        if combine == "concatenate":
            check_width("d_model", d_model)
        self.combine = combine
        columns = d_model if combine == "sum" else d_model // 2
        self.row_weight = nn.Parameter(torch.empty(max_height, columns))
        self.column_weight = nn.Parameter(torch.empty(max_width, columns))
        nn.init.normal_(self.row_weight, std=std)
        nn.init.normal_(self.column_weight, std=std)

    def _cells(self, height: int, width: int) -> Tensor:
        rows, columns = self.row_weight[:height], self.column_weight[:width]
        if self.combine == "sum":
            return rows[:, None] + columns[None]  #     (H, 1, D) + (1, W, D) -> (H, W, D)
        return _joined_columns(rows, columns)


def _joined_columns(rows: Tensor, columns: Tensor) -> Tensor:
    """(H, D/2) and (W, D/2) -> (H, W, D): each row with each column."""
    H, W = rows.shape[0], columns.shape[0]
    return torch.cat((rows[:, None].expand(-1, W, -1), columns[None].expand(H, -1, -1)), dim=-1)
