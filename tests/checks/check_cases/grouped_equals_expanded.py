"""Key heads that are not shared as they should be."""

from sources import GROUPED, SHARED
from trial import Case, changed

UNIT = "GroupedQueryAttention"
K = "k = k.repeat_interleave(self.H // self.K, 1)"
V = "v = v.repeat_interleave(self.H // self.K, 1)"


def shared(*pairs, reference=UNIT):
    return Case(changed(GROUPED, *pairs), SHARED, reference)


WRONG = {
    "keys in blocks and values in turn": shared(
        (V, "v = v.repeat(1, self.H // self.K, 1, 1)"), reference=None
    ),
    "the first key head for all": shared((K, "k = k[:, :1].expand(-1, self.H, -1, -1)"),
                                         reference=None),
    "uneven groups": shared(
        (K, "k = k[:, torch.arange(self.H) * self.K // (self.H + 2)]"), reference=None
    ),
}  # fmt: skip
RIGHT = {
    "in blocks": shared(),
    "expanded by a view": shared(
        (K, "k = k[:, :, None].expand(-1, -1, self.H // self.K, -1, -1).flatten(1, 2)"),
        (V, "v = v[:, :, None].expand(-1, -1, self.H // self.K, -1, -1).flatten(1, 2)"),
    ),
    "in turn, where no reference says otherwise": shared(
        (K, "k = k.repeat(1, self.H // self.K, 1, 1)"),
        (V, "v = v.repeat(1, self.H // self.K, 1, 1)"),
        reference=None,
    ),
}  # fmt: skip
