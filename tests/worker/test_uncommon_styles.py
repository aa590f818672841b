"""Right code in styles that ask more of the process it runs in: compiled, scripted, checkpointed.

Each passes in a locked-in child, or is told by a sentence of its own why nothing can be said.
"""

import pytest
from attacks import HONEST

SOFTMAX = "scores.softmax(-1)"
SCRIPTED = """

Module = MultiHeadSelfAttention

def MultiHeadSelfAttention(embed_dim, num_heads):
    return torch.jit.script(Module(embed_dim, num_heads))
"""


def function(decorator):
    """The softmax in a function of its own."""
    soft = f"{decorator}\ndef soft(s: torch.Tensor) -> torch.Tensor:\n    return s.softmax(-1)\n"
    return HONEST.replace("class Multi", f"{soft}\n\nclass Multi").replace(SOFTMAX, "soft(scores)")


def scripted():
    """All of it in TorchScript, which knows no augmented attributes and no negative shapes."""
    attend = HONEST[HONEST.index("    def attend") :]
    plain = """    def attend(self, x, mask: Optional[torch.Tensor]):
        batch, length, width = x.shape
        parts = self.qkv_proj(x).view(batch, length, 3, self.num_heads, width // self.num_heads)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-2, -1) / (width // self.num_heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask.unsqueeze(1), float("-inf"))
        context = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.norm(self.out_proj(context)) + x
"""
    text = HONEST.replace(attend, plain).replace("        self.calls += 1\n", "")
    text = text.replace("mask=None", "mask: Optional[torch.Tensor] = None")
    return text.replace("import os\n", "import os\nfrom typing import Optional\n") + SCRIPTED


STYLES = {
    "a compiled method": HONEST.replace("    def attend", "    @torch.compile\n    def attend"),
    "a compiled function": function("@torch.compile"),
    "a scripted function": function("@torch.jit.script"),
    "a scripted module": scripted(),
    "a checkpoint": HONEST.replace("import torch\n", "import torch, torch.utils.checkpoint\n", 1)
    .replace("self.attend(x, mask)", "CHECKPOINT")
    .replace(
        "CHECKPOINT",
        "torch.utils.checkpoint.checkpoint(self.attend, x, mask, use_reentrant=False)",
    ),
    "a lock among the attributes": HONEST.replace(
        "self.calls = 0", "self.calls = 0; import threading; self.lock = threading.Lock()"
    ),
}


@pytest.mark.parametrize("style", STYLES)
def test_uncommon_styles_pass(grader, style):
    """What is right passes, however it is run."""
    verdict = grader.grade(STYLES[style], seconds=60)
    assert verdict.outcome == "passed", verdict.message


@pytest.mark.parametrize("style", ["a compiled method", "a scripted module", "a checkpoint"])
def test_and_what_is_wrong_in_them_does_not(grader, style):
    """The same with scores that are multiplied by the square root instead."""
    wrong = STYLES[style].replace("(-2, -1) / ", "(-2, -1) * ")
    assert wrong != STYLES[style]
    assert grader.grade(wrong, seconds=60).outcome == "failed"


def test_lazy_layers_are_told_to_say_their_sizes(grader):
    """They have no weights to give before the first call."""
    lazy = HONEST.replace("nn.Linear(embed_dim, 3 * embed_dim)", "nn.LazyLinear(3 * embed_dim)")
    verdict = grader.grade(lazy)
    assert verdict.outcome == "crashed"
    assert "qkv_proj.weight has no shape before the first call" in verdict.message


def test_what_pytorch_has_for_other_machines_alone_cannot_be_compared(grader):
    """flex_attention has no backward pass on a CPU: not passed, and no mistake of the file's."""
    flex = HONEST.replace(
        "        scores = q @",
        "        from torch.nn.attention.flex_attention import flex_attention\n"
        "        flex_attention(q.contiguous(), k.contiguous(), v.contiguous())\n"
        "        scores = q @",
    )
    verdict = grader.grade(flex, seconds=60)
    assert verdict.outcome == "cannot-compare"
    assert "PyTorch cannot do this on this machine" in verdict.message


def test_an_error_that_only_looks_like_it_is_a_crash(grader):
    """A forward that is yet to be written raises NotImplementedError, too."""
    todo = HONEST.replace("        self.calls += 1", "        raise NotImplementedError('todo')")
    verdict = grader.grade(todo)
    assert verdict.outcome == "crashed"
    assert "is not written yet: calling it raises NotImplementedError: todo" in verdict.message
    assert verdict.checks[0].title == "Every part of the module is written"


def test_a_type_that_an_operation_does_not_know_is_a_crash(grader):
    """PyTorch raises NotImplementedError for a softmax of integers on any machine."""
    verdict = grader.grade(HONEST.replace(SOFTMAX, "scores.long().softmax(-1)"))
    assert verdict.outcome == "crashed"
    assert "NotImplementedError" in verdict.message
