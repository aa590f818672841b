"""Forward passes that train by themselves."""

from trial import ATTENTION, FIRST, KERNEL, Case, changed

WRONG = {
    "in train mode": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        if self.training: self.norm.bias.data += 1"))
    ),
    "a weight that decays": Case(
        changed(
            ATTENTION, (FIRST, f"{FIRST}\n        self.qkv_proj.weight.data[0, 0] *= 0.999999")
        ),
        reference=None,
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a copy that is changed": Case(
        changed(ATTENTION, (FIRST, f"{FIRST}\n        w = self.norm.bias.detach().clone().add_(1)"))
    ),
}
