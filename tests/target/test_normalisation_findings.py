"""What the text of a file says of numbers that are brought to mean 0 and back."""

import pytest

from attnlab.target.source_findings import source_findings


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("y = pred * mean + std", True),
        ("y = pred * self.data_mean + self.data_std", True),
        ("y = (x - stds[0]) / means[0]", True),
        ("y = x - mean / std", True),
        ("y = pred * std + mean", False),
        ("y = (x - mean) / std", False),
        ("y = x / std - mean / std", False),
        ("y = bias - mean / std", False),
        ("y = mean + std * noise", False),
        ("y = Normalize(-mean / std, 1 / std)", False),
        ("y = gain * mean + std * noise", False),
    ],
)
def test_mean_and_spread_have_their_places(text, found):
    """Draws around a mean and folded norms look alike and are right."""
    rules = [f.line for f in source_findings(text, "net.py") if f.rule == "scale-turned"]
    assert rules == [1] * found


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("m = (w * x).sum(2)\n    var = (w * x.pow(2)).sum(2) - m", True),
        ("m = x.mean(1)\n    std = ((x**2).mean(1) - m).clamp(min=1e-6).sqrt()", True),
        ("m, e = x.mean(), (x * x).mean()\n    variance = e - m", True),
        ("m = x.mean(1)\n    self.var = x.square().mean(1) - m", True),
        ("m = (w * x).sum(2)\n    var = (w * x.pow(2)).sum(2) - m.pow(2)", False),
        ("m, e = x.mean(), (x * x).mean()\n    variance = e - m * m", False),
        ("m = x.mean() ** 2\n    var = (x**2).mean() - m", False),
        ("m = y.mean()\n    var = (x**2).mean() - m", False),
        ("loss = (x**2).mean() - x.mean()", False),
        ("var = (x - x.mean(1)).pow(2).mean(1)", False),
    ],
)
def test_a_variance_subtracts_the_squared_mean(made, found):
    """A penalty of a difference is another thing, and no variance is named after it."""
    text = f"def pool(self, x, y, w):\n    {made}\n"
    rules = [f.rule for f in source_findings(text, "net.py")]
    assert ("mean-not-squared" in rules) == found


SCALES = """
class Scale:
    def normalise(self, x{more}):
        self.mean, self.std = x.mean(1), x.std(1)
        {there}

    def denormalise(self, y{more}):
        {back}
"""
THERE = "x = (x - self.mean) / self.std\n        return x * self.weight + self.bias"


@pytest.mark.parametrize(
    ("there", "back", "line"),
    [
        (
            THERE,
            (
                "y = y * self.std + self.mean\n"
                "        return (y - self.bias) / (self.weight + self.eps)"
            ),
            9,
        ),
        (
            THERE,
            (
                "y = (y - self.bias) / (self.weight + self.eps)\n"
                "        return y * self.std + self.mean"
            ),
            0,
        ),
        (
            "x -= self.mean\n        x /= self.std\n        return x",
            "y += self.mean\n        y *= self.std\n        return y",
            10,
        ),
        ("return (x - mean) / std", "return (y + mean) * std", 8),
        ("return (x - mean) / std", "return std * y + mean", 0),
        ("return (x - mean) / std, mean, std", "return mean + std * y", 0),
        ("x = x * self.gain\n        return x / self.std", "return y / self.gain * self.std", 0),
        (
            THERE,
            (
                "if self.affine:\n"
                "            y = y - self.bias\n"
                "            y = y / self.weight\n"
                "        return y * self.std + self.mean"
            ),
            0,
        ),
        (THERE, "return y * self.std + self.mean", 0),
        (THERE, "return ()", 0),
    ],
)
def test_what_was_done_last_is_undone_first(there, back, line):
    """Factors alone may change places; what undoes another set of steps is left alone."""
    text = SCALES.format(there=there, back=back, more=", mean, std" if " mean" in there else "")
    found = [f.line for f in source_findings(text, "net.py") if f.rule == "undone-in-order"]
    assert found[:1] == [line] * bool(line)


@pytest.mark.parametrize(
    ("mixed", "line"),
    [
        ("words = gate * p_vocab\n    return words.scatter_add(1, ids, gate * attn)", 5),
        ("p_vocab = gate * p_vocab\n    attn = gate * attn\n    return p_vocab + attn", 5),
        ("return gate * old + gate * new", 4),
        ("return gate.unsqueeze(1) * p_vocab + attn * gate.unsqueeze(1)", 4),
        ("return gate * old + (1 - gate) * new", 0),
        ("words = gate * p_vocab\n    return words.scatter_add(1, ids, (1 - gate) * attn)", 0),
        ("rest = torch.ones_like(gate) - gate\n    return gate * p_vocab + rest * attn", 0),
        ("return gate * (old + new)", 0),
        ("return gate * old + new", 0),
        ("a = gate * old\n    b = gate * new\n    return self.left(a) + self.right(b)", 0),
    ],
)
def test_two_parts_of_a_mixture_have_two_weights(mixed, line):
    """The second takes what the gate leaves; one gate for both of two streams is no mixture."""
    made = "logit = self.gate(x)\n    gate = torch.sigmoid(logit)"
    text = f"def mix(self, x, old, new, p_vocab, attn, ids):\n    {made}\n    {mixed}\n"
    found = [f.line for f in source_findings(text, "net.py") if f.rule == "gate-twice"]
    assert found == [line] * bool(line)
