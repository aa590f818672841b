"""Values that are right, on a path that leaves the graph."""

from dataclasses import replace

from trial import ATTENTION, KERNEL, LAST, SELF, Case, changed

SCORES = "scores = q @ k.mT / q.shape[-1] ** 0.5"
OVER = """power = (scores - scores.detach().amax(-1, keepdim=True)).exp()
        total = power.sum(-1, keepdim=True)
        weights = power / torch.where(total > 1, total, 1.0)"""
WRONG = {
    "weights taken out of the graph": Case(
        changed(ATTENTION, ("heads = weights @ v", "heads = weights.detach() @ v"))
    ),
    "keys without a gradient": Case(
        changed(ATTENTION, (SCORES, SCORES.replace("k.mT", "k.mT.data")))
    ),
    "keys without a gradient in train mode": Case(
        changed(
            ATTENTION, (SCORES, SCORES.replace("k.mT", "(k.detach() if self.training else k).mT"))
        )
    ),
    "the branch without a gradient": Case(
        changed(ATTENTION, (LAST, f"return ({LAST[7:-4]}).detach() + x"))
    ),
    "no gradient at all": Case(changed(ATTENTION, (LAST, f"return ({LAST[7:]}).detach()"))),
    "gradients doubled": Case(
        changed(
            ATTENTION, ("heads = weights @ v", "heads = 2 * (weights @ v) - (weights @ v).detach()")
        )
    ),
    "a single key without a gradient": Case(
        changed(
            ATTENTION,
            (
                "weights = scores.softmax(-1)",
                OVER,
            ),
        )
    ),
    "without a mask alone": Case(
        changed(
            ATTENTION,
            ("heads = weights @ v", "heads = (weights.detach() if mask is None else weights) @ v"),
        )
    ),
    "small gradients taken for none": Case(
        changed(
            ATTENTION,
            (
                "heads = weights @ v",
                (
                    "heads = weights @ v\n        if heads.requires_grad:\n"
                    "            heads.register_hook(lambda g: g * (g.abs() > 1e-3))"
                ),
            ),
        )
    ),
    "weights learn only where x does": Case(
        changed(
            ATTENTION,
            (
                "heads = weights @ v",
                "heads = weights @ v if x.requires_grad else (weights @ v).detach()",
            ),
        )
    ),
    "weights learn only where x does, in a module without masks": Case(
        changed(
            ATTENTION,
            (
                "heads = weights @ v",
                "heads = weights @ v if x.requires_grad else (weights @ v).detach()",
            ),
        ),
        replace(SELF, inputs=SELF.inputs[:1]),
    ),
    "the residual without a gradient": Case(changed(ATTENTION, (LAST, f"{LAST[:-1]}x.detach()"))),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "scores made twice": Case(changed(ATTENTION, (SCORES, f"{SCORES}; {SCORES}"))),
}
