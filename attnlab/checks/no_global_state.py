"""Importing, building and calling leave the rest of the process as it was.

Other models run in the same process. The default dtype and device, grad mode, the number of
threads, the flags of PyTorch and the functions in its name spaces belong to everybody, and so does
the random seed: a module may draw its initial weights, and nothing else.

Wrong: `torch.manual_seed(0)` in a constructor; `torch.set_default_dtype(torch.float64)` at the top
of the file; `torch.set_grad_enabled(False)` in forward without a `with`; `F.softmax = my_softmax`.
Right: arguments (`dtype=`, `generator=`) and context managers.

A seed that is set while the file is imported is not looked at: demos do that. Rests on the word of
the process that ran the candidate.
"""

from attnlab.checks.base import Failure, Probe, Tier

TITLE = "Nothing outside the module changes"
NEEDS = ("output",)
TIER = Tier.ASIDE
ADVICE = "Search the file for torch.set_..., manual_seed, and assignments to names in torch."
TRUSTED = False
FEW = True


def run(probe: Probe) -> Failure | None:
    found = list(probe.side_effects(probe.draw("random")))
    if not found:
        return None
    more = f", and {len(found) - 3} more" if len(found) > 3 else ""
    return Failure(message="; ".join(found[:3]) + more)
