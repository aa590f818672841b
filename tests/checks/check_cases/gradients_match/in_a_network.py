"""Layers that learn by themselves, and something else amid others."""

from trial import ATTENTION, FIRST, KERNEL, LAST, Case, changed

PROJECTED = "self.out_proj(out)"
LINEAR = """
class Projection(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        KEEP
        return x @ weight.T

    @staticmethod
    def backward(ctx, g):
        x, weight = KEPT
        return g @ weight, ROWS


class M(nn.Module):"""
VIEWED = "g.view(-1).view(g.shape)"
SAME = """
class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.view(-1).view(g.shape)


class M(nn.Module):"""
KEEP, KEPT = "ctx.save_for_backward(x, weight)", "ctx.saved_tensors"
ROWS = "g.flatten(0, 1).T @ x.flatten(0, 1)"


def own(keep=KEEP, kept=KEPT, rows=ROWS):
    """With a backward of its own for the output projection."""
    linear = LINEAR.replace("KEEP", keep).replace("KEPT", kept).replace("ROWS", rows)
    return changed(
        ATTENTION,
        ("\nclass M(nn.Module):", linear),
        (PROJECTED, "(Projection.apply(out, self.out_proj.weight) + self.out_proj.bias)"),
    )


def early(line):
    return Case(changed(ATTENTION, (FIRST, f"{FIRST}\n        {line}")))


def late(line):
    return Case(changed(ATTENTION, (LAST, f"out = {LAST[7:]}\n        {line}\n        return out")))


LAST_LINE = "self.norm = nn.LayerNorm(embed_dim)"


def built(line):
    return Case(changed(ATTENTION, (LAST_LINE, f"{LAST_LINE}\n        {line}")))


WRONG = {
    "what is no leaf is detached": early("x = x if x.is_leaf else x.detach()"),
    "zero_grad in forward": early("self.zero_grad()"),
    "no gradient where nothing is trained": early(
        "x = x if self.norm.weight.requires_grad else x.detach()"
    ),
    "no gradient for one position": early("x = x.detach() if S == 1 else x"),
    "another value where gradients are on": late("out = out + 0.01 * torch.is_grad_enabled()"),
    "nothing learns under a mask in a first layer": Case(
        changed(
            ATTENTION,
            ("weights @ v", "(weights if x.requires_grad or mask is None else weights.detach())@v"),
        )
    ),
    "gradients that are clamped": built(
        "self.out_proj.weight.register_hook(lambda g: g.clamp(-100, 100))"
    ),
    "an average of what it learnt from": late(
        "learns = self.training and out.requires_grad and not x.is_leaf\n"
        "        self.seen = 0.5 if learns else getattr(self, 'seen', 0.0)\n"
        "        out = out + self.seen * (not self.training)"
    ),
    "what backward needs lies on the class": Case(
        own("Projection.kept = x, weight", "Projection.kept")
    ),
    "a view of the gradient": Case(changed(ATTENTION, ("\nclass M(nn.Module):", SAME),
                                           (LAST, f"return Same.apply({LAST[7:]})"))),
    "backward writes to its gradient": Case(
        changed(ATTENTION, ("\nclass M(nn.Module):", SAME.replace(VIEWED, "g.mul_(2) / 2")),
                (LAST, f"return Same.apply({LAST[7:]})"))),
}  # fmt: skip
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a backward of its own": Case(own()),
    "a checkpoint": Case(
        changed(
            ATTENTION,
            (
                PROJECTED,
                "torch.utils.checkpoint.checkpoint(self.out_proj, out, use_reentrant=False)",
            ),
            ("\nclass M(nn.Module):", "\nimport torch.utils.checkpoint\n\nclass M(nn.Module):"),
        )
    ),
}
