"""What the text of a file says of learning rates."""

import pytest

from attnlab.target.source_findings import source_findings

TEXT = """
def get_lr(it):
    if it < warm_up:
        return {first}
    return {then}

optimizer = AdamW(model.parameters(), lr=learning_rate)
scheduler = LambdaLR(optimizer, lr_lambda={given})
"""


@pytest.mark.parametrize(
    ("first", "then", "given", "lines"),
    [
        ("learning_rate * it / warm_up", "least", "get_lr", [8]),
        ("it / warm_up", "least + 0.5 * (learning_rate - least)", "get_lr", [8]),
        ("it / warm_up", "least / learning_rate", "get_lr", []),
        ("learning_rate", "least", "lambda it: get_lr(it) / learning_rate", []),
        ("learning_rate * it", "least", "lambda it: get_lr(it)", [8]),
        ("it / warm_up", "1.0", "lambda it: get_lr(it)", []),
        ("it / warm_up", "1.0", "lambda it: learning_rate * 0.9**it", [8]),
    ],
)
def test_a_factor_is_no_rate(first, then, given, lines):
    """The optimizer's own rate is multiplied with what the function returns."""
    text = TEXT.format(first=first, then=then, given=given)
    found = [f for f in source_findings(text, "net.py") if f.rule == "rate-squared"]
    assert [f.line for f in found] == lines


@pytest.mark.parametrize(
    ("body", "made", "found"),
    [
        ("return c.peak_lr * step / c.warm_up", "lr=c.peak_lr", True),
        ("lr = self.c.peak_lr * step\n        return lr", "lr=cfg.peak_lr", True),
        ("return 3e-4 * min(1, step / 100)", "lr=3e-4", True),
        ("lr = step / c.warm_up\n        return lr", "lr=c.lr", False),
        ("return max(0.01, cosine(step))", "lr=0.01", False),
        ("return 0.01 + 0.99 * cosine(step)", "lr=0.01", False),
        ("return c.peak_lr * step / c.warm_up", "lr=1.0", False),
        ("return cosine(step) / c.peak_lr * c.least", "lr=c.peak_lr", False),
    ],
)
@pytest.mark.parametrize("given", ["self.schedule", "partial(self.schedule)"])
def test_a_method_gives_factors_too(body, made, found, given):
    """A rate has its name wherever it is kept; a local of that name and a floor are none."""
    text = f"""
class Trainer:
    def __init__(self, cfg):
        self.optimizer = AdamW(self.model.parameters(), {made})
        self.scheduler = LambdaLR(self.optimizer, {given})
    def schedule(self, step):
        {body}
"""
    rules = [f.line for f in source_findings(text, "net.py") if f.rule == "rate-squared"]
    assert rules == [5] * found


def test_a_factor_may_come_from_a_function_that_makes_one():
    """What the inner function returns is what counts."""
    text = """
def make(cfg):
    def factor(step):
        return cfg.lr * min(1, step / cfg.warm_up)
    return factor
optimizer = AdamW(groups, lr=cfg.lr)
scheduler = LambdaLR(optimizer, make(cfg))
"""
    for told, source in (([7], text), ([], text.replace("cfg.lr * min", "0.9 * min"))):
        found = [f for f in source_findings(source, "net.py") if f.rule == "rate-squared"]
        assert [f.line for f in found] == told


@pytest.mark.parametrize(
    ("returned", "lines"),
    [
        ("(step + 1) // warmup", [4]),
        ("base * (step // cfg.warmup_steps)", [4]),
        ("(step + 1) / warmup", []),
        ("0.1 ** (step // every)", []),
        ("total_steps // warmup", []),
        ("min(1.0, step / warmup)", []),
    ],
)
def test_a_warm_up_is_not_rounded_down(returned, lines):
    """It is 0 to its end; a rate that falls every so many steps is rounded on purpose."""
    text = (
        f"\ndef factor(step):\n    if step < warmup:\n        return {returned}\n    return 1.0\n"
    )
    found = [f for f in source_findings(text, "net.py") if f.rule == "rate-rounded-down"]
    assert [f.line for f in found] == lines
