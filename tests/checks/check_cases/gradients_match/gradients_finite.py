"""Steps whose slope is infinite where their value is not."""

from trial import ATTENTION, KERNEL, LAST, Case, changed

GAP = "(x - x.detach()).square().sum(-1, keepdim=True)"
DRIFT = "(self.norm.bias - self.norm.bias.detach()).square().sum()"
WRONG = {
    "the square root of nothing": Case(changed(ATTENTION, (LAST, f"{LAST} + 0 * {GAP}.sqrt()"))),
    "a root that where hides": Case(
        changed(ATTENTION, (LAST, f"{LAST} + torch.where({GAP} > 0, {GAP}.sqrt(), 0.0)"))
    ),
    "a weight's norm that is nothing": Case(
        changed(ATTENTION, (LAST, f"{LAST} + 0 * {DRIFT}.sqrt()"))
    ),
    "NaN cleaned out of the output": Case(
        changed(
            ATTENTION,
            (LAST, f"{LAST} + 0 * torch.nan_to_num((x - x).sum(-1, keepdim=True) / (x - x))"),
        )
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a root kept off zero": Case(
        changed(ATTENTION, (LAST, f"{LAST} + 0 * ({GAP} + 1e-12).sqrt()")),
    ),
}
