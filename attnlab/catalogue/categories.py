"""The kinds of bugs, as challenge.toml and what practice shows call them."""

CATEGORIES = (
    "attention", "positions", "mask", "normalisation", "residual", "embedding", "dropout",
    "optimizer", "loss", "data", "evaluation", "generation", "training",
)  # fmt: skip
