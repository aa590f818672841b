"""Gradients that are not the slopes, where there is no reference to say so."""

from trial import ATTENTION, KERNEL, LAST, Case, changed

SCORES = "scores = q @ k.mT / q.shape[-1] ** 0.5"
OWN = """
class Half(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, g):
        return g

class M("""
NORM = """
class Norm(nn.LayerNorm):
    def forward(self, x):
        w, b = self.weight.float(), self.bias.float()
        return F.layer_norm(x.float(), self.normalized_shape, w, b, self.eps).to(x.dtype)

class M("""
WRONG = {
    "weights taken out of the graph": Case(
        changed(ATTENTION, ("heads = weights @ v", "heads = weights.detach() @ v")), reference=None
    ),
    "keys without a gradient": Case(
        changed(ATTENTION, (SCORES, SCORES.replace("k.mT", "k.mT.data"))), reference=None
    ),
    "a backward without its factor": Case(
        changed(ATTENTION, ("\nclass M(", OWN), (LAST, f"return Half.apply({LAST[7:]})")),
        reference=None,
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION, reference=None),
    "the kernel": Case(KERNEL, reference=None),
    "a norm in float32": Case(
        changed(
            ATTENTION,
            ("self.norm = nn.LayerNorm(embed_dim)", "self.norm = Norm(embed_dim)"),
            ("\nclass M(", NORM),
        ),
        reference=None,
    ),
    "a softmax in float32": Case(
        changed(ATTENTION, ("scores.softmax(-1)", "scores.float().softmax(-1).to(x.dtype)")),
        reference=None,
    ),
}
