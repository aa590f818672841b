"""What is given, held or computed and reaches nothing, and what a later line undoes."""

# rule: (what was found, why it matters and what to look at, confidence, experiment)
UNUSED_FINDINGS: dict[str, tuple[str, str, float, str]] = {
    "result-dropped": (
        "A result is computed and thrown away",
        (
            "`masked_fill`, `to`, `view`, `dropout` and most others return a new tensor and leave "
            "the one they are called on as it is. Only names that end in `_` write in place."
        ),
        0.95,
        "Assign the result and run again: the values of the rows below change.",
    ),
    "result-unread": (
        "A variable is given a tensor that nothing reads",
        (
            "What follows goes on with the tensor from before: a norm, a projection or a mask "
            "that was meant to take part does not."
        ),
        0.85,
        "Use the variable where its source is used below it, or delete the line.",
    ),
    "unused-argument": (
        "An argument of forward is never read",
        (
            "A caller gives a mask, positions or a cache and the module ignores it. Nothing "
            "raises, so it shows only as attention to padding, or as a cache that does nothing."
        ),
        0.85,
        "Give the module two different values for it: the output is the same.",
    ),
    "unused-input": (
        "Nothing of the output descends from an input",
        "It goes into an operation whose result is lost on the way.",
        0.85,
        "Change this input alone: the output stays the same.",
    ),
    "unused-parameter": (
        "Nothing of the output descends from a parameter",
        (
            "A layer was built and not called, or its result is not used. It gets no gradient, "
            "stays as it was initialised, and may hide that a layer was meant to run here."
        ),
        0.75,
        "After `loss.backward()` its `.grad` is None.",
    ),
    "layers-in-list": (
        "Layers are held in a plain list or dict",
        (
            "`nn.Module` sees attributes that are modules, and those in `nn.ModuleList` and "
            "`nn.ModuleDict`. Layers in a plain list do not train, are not saved and stay on "
            "their device."
        ),
        0.95,
        "`len(list(model.parameters()))` does not count them.",
    ),
    "layer-shared": (
        "One layer runs at several depths",
        (
            "`[layer] * n` repeats a reference, so what looks like n layers is one. Loss falls, "
            "and ends higher than it should."
        ),
        0.8,
        "`layers[0] is layers[1]` is True, and the number of parameters does not grow with n.",
    ),
    "parameter-not-registered": (
        "A tensor that wants gradients is no parameter",
        (
            "`nn.Parameter(...) * 0.02` and `nn.Parameter(...).to(device)` are plain tensors: "
            "`parameters()` does not list them, so no optimizer moves them."
        ),
        0.9,
        "Its name is missing from `model.state_dict()`.",
    ),
    "buffer-not-registered": (
        "A table is a plain attribute",
        (
            "It stays on the CPU when the module is moved, and a checkpoint does not hold it. On "
            "the CPU nothing shows."
        ),
        0.3,
        "`model.to('meta')` leaves it where it was.",
    ),
    "tying-lost": (
        "Two weights that were tied are two again",
        (
            "A later line gives one of them a new `nn.Parameter`, or the model was copied by "
            "hand. They train apart from then on."
        ),
        0.85,
        "`model.a.weight is model.b.weight` is False.",
    ),
    "output-constant": (
        "The output is one number everywhere",
        "Nothing of the input is left at the end: a layer of zeros, a saturated or a dead one.",
        0.8,
        "Print the range of each row: the first whose least and largest value are equal.",
    ),
    "mask-value": (
        "A mask puts a number into the scores that hides nothing",
        (
            "After the softmax a key with score m weighs exp(m). 0, 1e-9 and -1 leave it among "
            "the others; -inf, or the lowest number of the dtype, hides it."
        ),
        0.95,
        "The weights above the diagonal, or at padding, are not 0 in `attnlab trace --attention`.",
    ),
    "mask-multiplied": (
        "Scores are multiplied by a mask",
        "A masked score becomes 0, and exp(0) = 1 is as much as any other key has.",
        0.95,
        "The weights at masked keys are not 0 in `attnlab trace --attention`.",
    ),
    "mask-undone": (
        "A bounded function follows the mask",
        "`tanh`, `clamp` and the like lift -inf back among the other scores.",
        0.95,
        "Put the mask behind it: the weights at masked keys become 0.",
    ),
    "softmax-twice": (
        "A softmax of a softmax",
        "Its operand lies between 0 and 1, so the result is close to uniform.",
        0.9,
        "Compare the largest weight of a row with 1 over the number of keys: they are close.",
    ),
    "scale": (
        "Scores are scaled by an unusual number",
        (
            "A score is a sum of hd products. Divided by sqrt(hd) it has unit spread; without, or "
            "with another number, the softmax is too hard or too soft."
        ),
        0.6,
        "Print the standard deviation of the scores for random normal input: it should be about 1.",
    ),
    "dropout-in-evaluation": (
        "Dropout drops in eval mode",
        "`F.dropout(x, p)` drops always: its argument `training` is True unless it is given.",
        0.95,
        "Call the module twice in eval mode: the outputs differ.",
    ),
    "activation-missing": (
        "Two linear layers follow each other",
        (
            "Without an activation between them they are one linear map: the network is shallower "
            "than it looks. Low-rank pairs, whose middle is narrower, are meant so."
        ),
        0.85,
        "Put GELU or ReLU between them: the training loss falls lower.",
    ),
    "residual-missing": (
        "A sublayer is not added to what it was given",
        (
            "Most blocks add the output of attention and of the feed-forward network to their "
            "input. Where one does not, gradients and the tokens themselves get lost with depth."
        ),
        0.75,
        "Add it (`x = x + sublayer(x)`): the loss falls faster, most of all with more layers.",
    ),
}
