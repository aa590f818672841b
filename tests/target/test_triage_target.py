"""Which lines of a file some rules of triage say nothing of."""

from attnlab.target.triage_target import REVERSED, ignored_lines

TEXT = """
def softmax_backward(a, da):
    return a * (da - (a * da).sum(-1, keepdim=True))

def feed_back(x):
    return x  # attnlab: ignore[scale]

class Net:
    def backward(self, grad):
        dw = torch.einsum("btd,btc->dc", h, grad)  # attnlab: ignore[view-order]
        return dw
"""


def test_a_backward_pass_by_hand_sums_over_other_axes_on_purpose(tmp_path):
    """Gradients of weights sum over the batch, and those of values over the queries; what a comment
    names is switched off besides."""
    file = tmp_path / "net.py"
    file.write_text(TEXT)
    found = {line: rules for (_, line), rules in ignored_lines(frozenset({str(file)})).items()}
    assert {line for line, rules in found.items() if rules >= REVERSED} == {2, 3, 9, 10, 11}
    assert found[6] == {"scale"}
    assert found[10] == {"view-order", *REVERSED}
    file.write_text("def backward(:\n")
    assert ignored_lines(frozenset({str(file)})) == {}
