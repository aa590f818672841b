"""What each rule of a trace's findings means, by the name that stands beside the finding."""

# rule: (what was found, why it matters and what to look at)
FINDINGS: dict[str, tuple[str, str]] = {
    "attention-axis": (
        "Attention runs along an axis that is not the positions",
        (
            "Scores are taken over the last axis but one of queries and keys. If heads stand "
            "there, heads attend to heads: transpose heads and positions first."
        ),
    ),
    "axes-meet": (
        "Two axes of different meaning are lined up",
        (
            "Their sizes are equal in this run, so nothing raises. With other sizes it would "
            "crash, or broadcast. Compare how each operand was made."
        ),
    ),
    "axes-order": (
        "Two merged axes are lined up whose parts are in another order",
        (
            "Both have as many entries, but `(H, hd)` and `(hd, H)` flattened are different "
            "features. Transpose one of them before it is merged."
        ),
    ),
    "axes-reversed": (
        "`.T` reverses the axes of a batch",
        (
            "Of a matrix `.T` is the transpose. With more axes it turns all of them around, the "
            "batch included. What was meant is nearly always `.mT` or `.transpose(-2, -1)`."
        ),
    ),
    "batch-contraction": (
        "A sum or a softmax runs over the batch",
        (
            "Every sample's output then depends on the other samples. Look for an axis number "
            "or an einsum letter that is one off."
        ),
    ),
    "constant-output": (
        "An activation is the same everywhere though its input is not",
        (
            "Nothing of its input is left, and often no gradient: look at the range of what it "
            "takes."
        ),
    ),
    "decode-differs": (
        "Decoding with the cache differs from one pass over all positions",
        (
            "The row named is the first whose values differ. Look at the positions, the mask "
            "and the order in which the cache is extended."
        ),
    ),
    "denormal-values": (
        "All values are too small to be held in full",
        ("Below the smallest normal number of a dtype, digits are lost and operations are slow."),
    ),
    "gradient-cut": (
        "An operation cuts the gradient",
        (
            "`detach`, `.data`, `torch.no_grad` or a new tensor made of values: parameters "
            "before it reach the output and get no gradient through it."
        ),
    ),
    "head-order": (
        "Grouped key and value heads are repeated in another order than the query heads",
        (
            "`repeat` lays heads down as 0 1 0 1. Query head h belongs to key head `h // (H / "
            "Hkv)`, which is the order of `repeat_interleave`."
        ),
    ),
    "infinity-origin": (
        "The first infinity that no mask put there",
        (
            "A division by zero, or a value beyond the largest number of the dtype. An infinity "
            "soon becomes NaN: inf - inf, 0 * inf and inf / inf are NaN."
        ),
    ),
    "leftover-axis": (
        "A split left an axis of size 1",
        (
            "`chunk` and `split` keep the axis that they cut, also where its size is 1 "
            "afterwards; `unbind` removes it. What meets the tensor later lines up one axis "
            "off."
        ),
    ),
    "mask-after-softmax": (
        "A mask takes weights away after the softmax",
        (
            "The rows no longer sum to 1. Set the scores to -inf before the softmax, or divide "
            "by the new sum."
        ),
    ),
    "mask-no-effect": (
        "A mask is the same for all keys of a row",
        (
            "Softmax ignores what is added to a whole row, so no key is hidden. The keys are "
            "the last axis of the scores: the mask's positions belong there."
        ),
    ),
    "merge-order": (
        "Axes are merged in another order than they were split",
        (
            "The shape is right and the features are shuffled. Undo the transpose of heads "
            "before they are flattened."
        ),
    ),
    "nan-origin": (
        "The first NaN of the run",
        (
            "Every later one may come from it, so start here: 0/0, inf - inf, or a softmax over "
            "a row that is -inf everywhere."
        ),
    ),
    "no-visible-key": (
        "A query may see no key at all",
        (
            "A softmax over keys that are all masked divides 0 by 0, or weighs the masked keys "
            "alike; fused attention gives 0 or NaN by its version. A causal mask keeps the "
            "diagonal (`tril(0)`, not `tril(-1)`); a padded query may see itself."
        ),
    ),
    "position-on-batch": (
        "A table of positions is laid along the batch",
        (
            "Every sample gets another row of the table. Check which axis holds the positions, "
            "and whether the input is batch first."
        ),
    ),
    "reshape-cut": (
        "A reshape cuts an axis in the middle",
        (
            "`reshape` and `view` deal entries out in the order of memory and move no axis. To "
            "let axes change places use `transpose` or `permute`; reshape only splits or merges "
            "neighbours."
        ),
    ),
    "roll-axes": (
        "A roll shifts positions together with another axis",
        (
            "Windows are shifted along their two axes of positions. One of the axes given is the "
            "batch or the features: count again where height and width stand."
        ),
    ),
    "silent-broadcast": (
        "Broadcasting made the result larger than every operand",
        (
            "Two tensors of different rank were lined up from the right, and an axis grew from "
            "1 to a size that the data has already. Give the smaller tensor its axes with "
            "`unsqueeze`."
        ),
    ),
    "size-coincidence": (
        "It only works because two sizes are equal here",
        "At other sizes the same line raises. Look for an axis that is taken for another.",
    ),
    "softmax-axis": (
        "Softmax and the sum of the values run over different axes",
        (
            "The weights of one sum then do not add up to 1. Softmax belongs on the axis of the "
            "keys."
        ),
    ),
    "softmax-saturated": (
        "Softmax over scores so large that one key takes all",
        (
            "Such a row has no gradient. A scale such as `1/sqrt(hd)` may be missing, or "
            "applied the wrong way round."
        ),
    ),
    "squeeze-did-nothing": (
        "A squeeze left its input as it was",
        ("It removes an axis only where its size is 1: the axis that was meant is another one."),
    ),
    "squeeze-too-much": (
        "A squeeze without an axis took more than one",
        (
            "It removes every axis of size 1, the batch or the sequence too where they are 1. "
            "Name the axis, as in `squeeze(-1)`."
        ),
    ),
}
