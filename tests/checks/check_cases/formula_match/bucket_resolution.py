"""Buckets whose edges lie elsewhere."""

from dataclasses import replace

from scenes import BUCKETS, T5, case

CAUSAL = replace(BUCKETS, position=replace(BUCKETS.position, causal=True))
WRONG = {
    "logarithms of another ratio": case(T5, BUCKETS, ("math.log(40 / 4)", "math.log(64 / 4)")),
    "both sides in one": case(T5, BUCKETS, ("(distance > 0).long() * 8", "0 * distance")),
    "every distance for itself": case(
        T5, BUCKETS, ("torch.where(n < 4, n, far)", "n.clamp(max=7)")
    ),
    "one bucket early": case(
        T5, BUCKETS, ("torch.where(n < 4, n, far)", "torch.where(n < 3, n, far)")
    ),
    "rounded up": case(T5, BUCKETS, ("(octaves * 4).long()", "(octaves * 4).ceil().long()")),
}
RIGHT = {
    "both sides": case(T5, BUCKETS),
    "the past alone": case(
        T5,
        CAUSAL,
        (
            "n, after = distance.abs(), (distance > 0).long() * 8",
            "n, after = (-distance).clamp(min=0), 0",
        ),
        ("clamp(min=4).double() / 4", "clamp(min=8).double() / 8"),
        ("math.log(40 / 4)", "math.log(40 / 8)"),
        ("(4 + (octaves * 4)", "(8 + (octaves * 8)"),
        ("clamp(max=7)", "clamp(max=15)"),
        ("n < 4", "n < 8"),
    ),
}
