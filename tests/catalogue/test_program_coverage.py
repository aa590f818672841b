"""What debugging interviews are reported to hide, and the bugs of programs that practise it."""

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.programs import read_program

# A buffer on the wrong device is reported as well: nothing shows on a machine without a GPU.
REPORTED = {
    "positions are not added": """char-gpt/positions-never-added padded-classifier/bag-of-words""",
    "positions are added twice": """
        padded-classifier/places-again-in-each-layer reverse-seq2seq/places-added-twice""",
    "positions run along the wrong axis, or by the wrong index": """
        trainer-lm/positions-by-row einsum-canon/same-note-same-place vit-patches/grid-turned
        cached-decoder/places-start-over""",
    "positions have wrong values": """
        tiny-llama/angles-of-half-powers trainer-lm/waves-in-pairs-alike""",
    "positions are not cut to the length": """
        char-gpt/positions-not-cut reverse-seq2seq/places-for-the-longest""",
    "a mask is missing": """tiny-llama/answer-in-sight reverse-seq2seq/padding-read-by-letters""",
    "the mask is one off": """char-gpt/mask-one-late reverse-seq2seq/nobody-sees-itself""",
    "the mask fills in a wrong value": """char-gpt/mask-filled-with-zero trainer-lm/mask-of-ones""",
    "the mask comes after the softmax, or multiplies": """
        reverse-seq2seq/hidden-after-the-softmax einsum-canon/shares-cut-afterwards""",
    "the mask lies along the wrong axis": """
        padded-classifier/padding-does-not-ask reverse-seq2seq/source-unrolled-in-step
        cached-decoder/rows-start-over""",
    "the mask means the opposite": """
        cached-decoder/true-hides padded-classifier/only-padding-is-seen""",
    "the mask is made for the longest sequence and not cut": """
        char-gpt/mask-for-the-whole-context trainer-lm/mask-of-the-longest""",
    "a projection is left out": """
        char-gpt/mixed-not-projected padded-classifier/keys-are-queries""",
    "queries meet values": """einsum-canon/asked-of-the-values vit-patches/keys-never-asked""",
    "the scale is missing, or of the wrong width": """
        padded-classifier/scores-at-full-size char-gpt/scale-of-the-model-width
        einsum-canon/sharper-with-heads""",
    "a residual is missing": """trainer-lm/sublayer-not-added einsum-canon/attention-takes-over""",
    "a residual comes from the normed input": """
        char-gpt/residual-from-the-norm einsum-canon/stream-starts-over""",
    "a norm is on the wrong side": """
        padded-classifier/normed-on-the-way-out vit-patches/normed-behind-the-sum""",
    "a mean or a norm runs over the wrong axis": """
        tiny-llama/norm-over-time einsum-canon/one-measure-for-a-tune
        vit-patches/shares-over-the-batch""",
    "dropout is on in evaluation": """
        char-gpt/dropout-always-on cached-decoder/dropped-when-it-writes
        trainer-lm/measured-in-training""",
    "heads are split or merged without the transpose": """
        char-gpt/heads-not-transposed padded-classifier/words-cut-into-heads
        reverse-seq2seq/heads-cut-across-places""",
    "a head is tied, or not, against the plan": """
        char-gpt/head-is-the-embedding tiny-llama/head-left-alone""",
    "zero_grad is missing": """
        char-gpt/no-zero-grad padded-classifier/named-but-not-called
        reverse-seq2seq/gradients-pile-up""",
    "backward, zero_grad and step stand in the wrong order": """
        trainer-lm/gradients-gone-before-use tiny-llama/gradients-cleared-early""",
    "labels are not shifted": """
        char-gpt/labels-not-shifted cached-decoder/asked-for-what-is-there
        reverse-seq2seq/fed-with-the-answer""",
    "labels are shifted twice": """trainer-lm/shifted-twice einsum-canon/a-note-too-far""",
    "a softmax stands before cross_entropy": """
        char-gpt/softmax-before-the-loss padded-classifier/probabilities-for-logits""",
    "padding counts in the loss": """
        char-gpt/padding-counted reverse-seq2seq/divided-by-all-places""",
    "logits are reshaped across axes": """
        char-gpt/logits-across-axes cached-decoder/classes-by-reshape""",
    "eval mode stays on": """char-gpt/eval-mode-stays padded-classifier/judged-ever-after""",
    "gradients are clipped after the step": """
        char-gpt/clip-after-step trainer-lm/clipped-before-there-is-any""",
    "the scheduler moves before the optimizer": """
        tiny-llama/schedule-runs-ahead reverse-seq2seq/rate-moves-first""",
    "a loss is kept with its graph": """
        char-gpt/graph-kept-with-the-loss vit-patches/losses-hold-pictures
        reverse-seq2seq/losses-hold-their-graphs""",
    "accumulated gradients are not divided": """
        tiny-llama/accumulation-not-divided einsum-canon/pieces-divide-for-themselves""",
    "norms and biases decay": """char-gpt/norms-decay-too trainer-lm/rest-decays-by-default""",
}


@pytest.fixture(scope="module")
def programs():
    return [read_program(path) for path in sorted((shipped_folder() / "programs").iterdir())]


@pytest.fixture(scope="module")
def bugs(programs):
    return {f"{program.name}/{bug.id}" for program in programs for bug in program.bugs}


def test_each_program_has_enough_for_many_rounds(programs):
    """Eight of at least ten bugs, two decoys and one stage each, so that rounds seldom repeat."""
    assert len(programs) >= 8
    for program in programs:
        assert len(program.bugs) >= 10, program.name
        assert len(program.decoys) >= 2, program.name
        assert program.stages, program.name
    assert sum(len(program.bugs) for program in programs) >= 80
    assert sum(len(program.decoys) for program in programs) >= 12


@pytest.mark.parametrize("reported", REPORTED)
def test_what_interviews_hide_can_be_practised_in_two_programs(reported, bugs):
    """Each kind of bug that is reported stands in at least two programs, in other words."""
    named = set(REPORTED[reported].split())
    assert named <= bugs
    assert len({name.partition("/")[0] for name in named}) >= 2
