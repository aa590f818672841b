"""Which axes of a batch are samples and positions, and how inputs are changed along them."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from attnlab.candidate.live.batch import WIDENED, CannotTry, Changes, Leaf, LiveModel

_SOURCES = "src source memory context ctx enc cond image img pixel audio video feat visual xa"
SOURCES = tuple(_SOURCES.split())
PADS = ("pad_id", "pad_token_id", "pad_idx", "padding_idx", "pad")


@dataclass
class Layout:
    """The axes of one batch. Positions stand at 1 and samples at 0, or the other way round."""

    live: LiveModel
    samples: int = 0  # how many there are
    length: int = 0  # positions; 0 where no input has any
    turned: bool = False  # inputs are (S, B, ...)
    pads: frozenset[int] = frozenset()  # ids that stand for padding
    dice: torch.Generator = field(default_factory=lambda: torch.Generator().manual_seed(1))

    @property
    def data(self) -> list[Leaf]:
        """The inputs that are changed: ids and floats with a batch axis."""
        leaves = [leaf for leaf in self.live.leaves if leaf.role in ("ids", "floats")]
        return [leaf for leaf in leaves if leaf.value.shape[self.batch_axis(leaf)] == self.samples]

    @property
    def sequences(self) -> list[Leaf]:
        """Those of them with positions."""
        return [leaf for leaf in self.data if self.position_axis(leaf) is not None]

    @property
    def targets(self) -> list[Leaf]:
        """The sequences in which the outputs' positions run: no source or context."""
        long = [
            leaf
            for leaf in self.sequences
            if leaf.value.shape[self.position_axis(leaf) or 0] == self.length
        ]
        own = [leaf for leaf in long if not leaf.name.lower().startswith(SOURCES)]
        return own or long

    def batch_axis(self, leaf: Leaf) -> int:
        return 1 if self.turned and leaf.sequence_axis == 1 else 0

    def position_axis(self, leaf: Leaf) -> int | None:
        return 0 if self.turned and leaf.sequence_axis == 1 else leaf.sequence_axis

    # ------------------------------------------------------------ outputs

    def by_sample(self, out: Tensor) -> Tensor | None:
        """An output with its samples first; None where it has none."""
        if not out.dim():
            return None
        if self.turned:
            rows = out.dim() > 1 and out.shape[1] == self.samples
            return out.movedim(1, 0) if rows else out if out.shape[0] == self.samples else None
        if out.shape[0] == self.samples:
            return out
        if self.length and out.shape[0] == self.samples * self.length:
            return out.reshape(self.samples, self.length, *out.shape[1:])
        return None

    def by_position(self, out: Tensor) -> Tensor | None:
        """An output as (samples, positions, ...); None where it has no such axes."""
        rows = self.by_sample(out)
        found = rows is not None and rows.dim() > 1 and self.length and rows.shape[1] == self.length
        return rows if found else None

    # ------------------------------------------------------------ changes

    def change_samples(self, *samples: int) -> Changes:
        """Other data in these samples: ids by other ids of the batch, floats in another order."""
        return {leaf.key: self._changed(leaf, samples, 0) for leaf in self.data}

    def change_positions(self, leaves: list[Leaf], start: int, end: int) -> dict[int, Tensor]:
        """Other data at these positions of all samples."""
        samples = tuple(range(self.samples))
        return {leaf.key: self._changed(leaf, samples, start, end) for leaf in leaves}

    def swap_positions(self, leaves: list[Leaf], one: int, other: int) -> Changes:
        """Two positions in each other's place."""
        order = list(range(self.length))
        order[one], order[other] = other, one
        found = {}
        for leaf in leaves:
            at = self.position_axis(leaf) or 0
            found[leaf.key] = leaf.value.index_select(at, torch.tensor(order))
        return found

    def only(self, sample: int) -> Changes:
        """One sample alone; what has no axis of samples stays as it is."""
        found = {}
        for leaf in self.live.leaves:
            value, at = leaf.value, self.batch_axis(leaf) if leaf in self.data else 0
            square = leaf.role == "mask" and value.dim() == 2 and value.shape[0] == value.shape[1]
            whole = square or not value.dim() or value.shape[at] != self.samples
            found[leaf.key] = value if whole else value.narrow(at, sample, 1)
        return found

    def _changed(
        self, leaf: Leaf, samples: tuple[int, ...], start: int, end: int | None = None
    ) -> Tensor:
        value = leaf.value.clone()
        rows = value.movedim(self.batch_axis(leaf), 0)
        at = self.position_axis(leaf)
        if at is not None:
            rows = rows.movedim(max(at, 1), 1)[:, start:end]
        for sample in samples:
            row = rows[sample]
            row.copy_(self._other_ids(row) if leaf.role == "ids" else self._other_floats(row))
        return value

    def _other_floats(self, row: Tensor) -> Tensor:
        """The same numbers in another order; constants become noise."""
        flat = row.flatten()
        if flat.numel() < 2 or not (flat != flat[0]).any():
            drawn = torch.randn(row.shape, generator=self.dice, dtype=torch.float64)
            return row + drawn.to(row.dtype)
        order = torch.randperm(flat.numel(), generator=self.dice)
        return flat[order].view(row.shape)

    def _other_ids(self, row: Tensor) -> Tensor:
        """Another id of the batch at every place but those of padding."""
        seen = {
            int(i) for leaf in self.data if leaf.role == "ids" for i in torch.unique(leaf.value)
        }
        known = sorted(seen - self.pads)
        if len(known) < 2:
            known = sorted({*known, *range(self.vocabulary)} - self.pads)[:2]
        if len(known) < 2:
            raise CannotTry("the batch has a single id, so nothing can be put in its place")
        places = torch.searchsorted(torch.tensor(known), row.clamp(known[0], known[-1]))
        steps = torch.randint(1, len(known), row.shape, generator=self.dice)
        other = torch.tensor(known)[(places + steps) % len(known)].to(row.dtype)
        kept = torch.isin(row, torch.tensor(sorted(self.pads), dtype=row.dtype))
        return torch.where(kept, row, other)

    @property
    def vocabulary(self) -> int:
        tables = [m for m in self.live.model.modules() if isinstance(m, nn.Embedding)]
        return min((m.num_embeddings for m in tables), default=0)


def find_layout(live: LiveModel) -> Layout:
    """Samples and positions as in (B, S, ...); a batch of one is made into one of several."""
    data = [leaf for leaf in live.leaves if leaf.role in ("ids", "floats")]
    if not data:
        return Layout(live)
    samples = data[0].value.shape[0]
    if samples == 1 and _widen(live, data):
        samples = WIDENED
        data = [leaf for leaf in live.leaves if leaf.role in ("ids", "floats")]
    long = [leaf for leaf in data if leaf.sequence_axis is not None]
    own = [leaf for leaf in long if not leaf.name.lower().startswith(SOURCES)] or long
    length = own[0].value.shape[own[0].sequence_axis or 0] if own else 0
    return Layout(live, samples, length, pads=_pad_ids(live))


def _widen(live: LiveModel, data: list[Leaf]) -> bool:
    """Give a batch of one more samples; False where the model does not take them."""
    layout = Layout(live, 1, pads=_pad_ids(live))
    try:
        more = [layout.change_samples(0) for _ in range(WIDENED - 1)]
    except CannotTry:
        return False
    wide = {
        leaf.key: torch.cat([leaf.value, *(m[leaf.key] for m in more)])
        for leaf in data
        if leaf.key in more[0]
    }
    one = {leaf.key for leaf in live.leaves} - wide.keys()
    for leaf in live.leaves:  # what is no data is the same for all samples
        if leaf.key in one and leaf.value.dim() and leaf.value.shape[0] == 1:
            wide[leaf.key] = leaf.value.expand(WIDENED, *leaf.value.shape[1:]).clone()
    try:
        live.call(wide)
    except Exception:
        return False
    live.replace(wide)
    return True


def _pad_ids(live: LiveModel) -> frozenset[int]:
    """The ids that the model's own names call padding."""
    found = set()
    for module in live.model.modules():
        held = [module, getattr(module, "config", None), getattr(module, "cfg", None)]
        values = [vars(h).get(name) for h in held if hasattr(h, "__dict__") for name in PADS]
        found |= {v for v in values if type(v) is int and v >= 0}
    return frozenset(found)
