"""Gradients of which single elements are wrong."""

from dataclasses import replace

from trial import ATTENTION, SELF, Case, changed

SMALL = replace(SELF, vary=())
OWN = """
class Twist(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()
    @staticmethod
    def backward(ctx, g):
        g = g.clone()
        g[0] *= 1.01  # often too little to be seen along a direction of all weights at once
        return g

class M("""
BIASED = "F.linear(out, self.out_proj.weight, Twist.apply(self.out_proj.bias))"
WRONG = {
    "one element is off by little": Case(
        changed(ATTENTION, ("\nclass M(", OWN), ("self.out_proj(out)", BIASED)),
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
