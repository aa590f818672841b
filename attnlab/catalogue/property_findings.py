"""What each property of a model means, by the id that `attnlab verify` shows."""

# id: (a sentence that is true of right models, what it usually means when it is not,
#      confidence, the experiment that settles it)
PROPERTY_FINDINGS: dict[str, tuple[str, str, float, str]] = {
    "finite": (
        "Outputs are finite",
        (
            "NaN or infinity comes out of the model for its own batch: a row of scores that is "
            "masked everywhere, a division by 0, a logarithm of 0, an overflow."
        ),
        0.9,
        "`attnlab trace` flags the first operation whose output has a NaN.",
    ),
    "deterministic-eval": (
        "Equal calls give equal outputs",
        (
            "Something is random in eval mode: `F.dropout(x)` without `training=self.training`, "
            "noise that is added always, weights that are made in forward."
        ),
        0.85,
        "Call `model.eval()` and compare two calls with the same input, layer by layer.",
    ),
    "input-unchanged": (
        "Inputs stay unchanged",
        (
            "Forward writes into its argument: `+=`, a method that ends in `_`, `x[...] = ...`. "
            "The caller's batch is another one afterwards."
        ),
        0.6,
        "Compare the batch before the call with the batch after it.",
    ),
    "constant-output": (
        "The output depends on the input",
        (
            "The input does not reach the output: it is overwritten, multiplied by 0, or another "
            "variable is returned."
        ),
        0.9,
        "Follow the input through the trace up to the operation whose result is not used.",
    ),
    "batch-independence": (
        "Samples of a batch do not mix",
        (
            "The batch axis takes part in what runs over positions or features: attention over "
            "axis 0, a layer that reads (S, B, D), a `view` in place of a transpose, a softmax or "
            "a mean over the wrong axis."
        ),
        0.9,
        "Change one sample of a batch and list which other outputs move.",
    ),
    "edge-shapes": (
        "A sample alone gives what it gives in a batch",
        (
            "Something is computed from the whole batch or depends on its size: `squeeze()` "
            "without an axis, statistics of the batch in eval mode, padding to the longest "
            "sample."
        ),
        0.7,
        ("Call the model with one sample and compare with its row of the batch, layer by layer."),
    ),
    "causality": (
        "The future does not leak",
        (
            "Later inputs reach earlier outputs, so next tokens are read and not predicted: "
            "training loss is far too low, and what is generated is poor. The mask is missing, "
            "shifted, transposed, filled with a value that hides nothing, or undone by what "
            "follows."
        ),
        0.95,
        "Change the last token and see whether the output of an earlier position moves.",
    ),
    "mask-effect": (
        "Masked keys change nothing",
        (
            "The mask does not hide what it should: it is not handed on, inverted, filled with a "
            "value that is not low enough, multiplied in after the softmax, or lies along the "
            "wrong axis."
        ),
        0.9,
        "Print the attention weights of masked keys: each must be 0.",
    ),
    "padding-invariance": (
        "Padding changes nothing",
        (
            "Padded positions are counted: in attention that gets no mask, in a mean over all "
            "positions, in a norm or a pooled last position."
        ),
        0.8,
        "Compare a short sample alone with the same sample padded to a longer one.",
    ),
    "position-sensitivity": (
        "Positions can be told apart",
        (
            "The order of the inputs makes no difference: the positional encoding is not added, "
            "is the same for all positions, or is indexed along the wrong axis."
        ),
        0.85,
        "Swap two tokens and compare the outputs; print two rows of what is added.",
    ),
    "permutation-equivariance": (
        "Permuted positions give permuted outputs",
        (
            "Attention without positions treats all of them alike; here some do not get what is "
            "theirs. Heads were split or merged by a reshape where a transpose was needed, or keys "
            "and values are paired in another order."
        ),
        0.85,
        "Swap two positions of the input: their outputs must be swapped and no other may move.",
    ),
    "second-call": (
        "A call leaves nothing behind",
        (
            "Something is kept on the module from call to call, such as a mask, a table or a "
            "cache, and used where it does not belong."
        ),
        0.75,
        ("Call the model with A, with B, and with A again: the first and third output are equal."),
    ),
    "train-mode": (
        "Train and eval mode agree but for dropout",
        (
            "A branch on `self.training` changes what is computed, and neither dropout nor batch "
            "norm explains it."
        ),
        0.6,
        "Search for `self.training` and set every dropout to 0: both modes must agree.",
    ),
    "prefill-equals-decode": (
        "Decoding with a cache equals one pass",
        (
            "Steps with a cache give another output than one pass over all positions: positions "
            "that begin anew, a cache that is joined along the wrong axis, a mask made for one "
            "position."
        ),
        0.9,
        "`attnlab trace TARGET --decode` shows the first row of a step that differs.",
    ),
}
