"""Modules that change what belongs to everybody."""

from trial import ATTENTION, FIRST, KERNEL, Case, changed

IMPORT = "from torch.nn import functional as F\n"
INIT = "self.H = num_heads"


def calling(line):
    return Case(changed(ATTENTION, (FIRST, f"{FIRST}\n        {line}")))


def building(line):
    return Case(changed(ATTENTION, (INIT, f"{INIT}\n        {line}")))


def importing(line):
    return Case(changed(ATTENTION, (IMPORT, f"{IMPORT}{line}\n")))


WRONG = {
    "a seed in the constructor": building("torch.manual_seed(0)"),
    "a seed in forward": calling("torch.manual_seed(0)"),
    "random numbers for nothing": calling("torch.rand(1)"),
    "a seed in forward, in train mode": calling("self.training and torch.manual_seed(0)"),
    "Python's seed": calling("__import__('random').seed(0)"),
    "grad mode": calling("torch.set_grad_enabled(False)"),
    "the matmul precision": building('torch.set_float32_matmul_precision("high")'),
    "threads": building("torch.set_num_threads(2)"),
    "grad mode while importing": importing("torch.set_grad_enabled(False)"),
    "a function of torch": Case(
        changed(
            ATTENTION, (IMPORT, f"{IMPORT}real = F.gelu\nF.gelu = lambda *a, **k: real(*a, **k)\n")
        )
    ),
}
RIGHT = {
    "by hand": Case(ATTENTION),
    "the kernel": Case(KERNEL),
    "a seed of one's own": building("torch.rand(2, generator=torch.Generator().manual_seed(0))"),
    "no_grad with a with": calling("with torch.no_grad(): x.sum()"),
    "a seed while importing": importing("torch.manual_seed(0)"),
    "threads while importing": importing("torch.set_num_threads(2)"),
    "deterministic while importing": importing("torch.use_deterministic_algorithms(True)"),
    "print options while importing": importing("torch.set_printoptions(precision=2)"),
    "precision while importing": importing('torch.set_float32_matmul_precision("high")'),
}
