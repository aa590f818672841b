"""Gradients of which single elements are wrong."""

from dataclasses import replace

from trial import ATTENTION, LAST, SELF, Case, changed

SMALL = replace(SELF, sizes={"B": 2, "S": 3, "D": 4, "H": 1}, vary=())
OWN = """
class Twist(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        g[0, 0, 0] += 1.5e-3 * g[0, 0, 1].sign()
        return g

class M("""
WRONG = {
    "one element is off by little": Case(
        changed(ATTENTION, ("\nclass M(", OWN), (LAST, f"return Twist.apply({LAST[7:]})")),
        SMALL,
        None,
        full=True,
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION, SMALL, None, full=True),
    "in a loop": Case(
        changed(ATTENTION, ("weights @ v", "torch.stack([a @ b for a, b in zip(weights, v)])")),
        SMALL,
        None,
        full=True,
    ),
}
