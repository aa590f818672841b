"""Vectors that are stretched, or get something added, where they should turn."""

from scenes import HALVES, ROPE, TURNED, TURNED_ANY, TURNED_HALVES, case

WRONG = {
    "no minus": case(ROPE, TURNED_ANY, ("a * cos - b * sin", "a * cos + b * sin")),
    "repeat_interleave with rotate_half": case(
        HALVES,
        TURNED_ANY,
        ("torch.cat((angles, angles), dim=-1)", "angles.repeat_interleave(2, -1)"),
    ),
    "nothing swapped": case(HALVES, TURNED_HALVES, ("self.rotate_half(q) *", "q *")),
    "a table added as well": case(
        ROPE, TURNED_ANY, ("return torch.stack", "return 0.1 + torch.stack")
    ),
}
RIGHT = {
    "neighbours are pairs": case(ROPE, TURNED),
    "cat(freqs, freqs) with rotate_half": case(HALVES, TURNED_HALVES),
    "either layout": case(HALVES, TURNED_ANY),
}
