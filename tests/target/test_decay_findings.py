"""What the text of a file says of a recurrence that is to forget."""

import pytest

from attnlab.target.source_findings import source_findings


def lines_of(text):
    return [f.line for f in source_findings(text, "net.py") if f.rule == "state-grows"]


@pytest.mark.parametrize(
    ("matrix", "decay", "found"),
    [
        ("torch.exp(self.A_log)", "torch.exp(dt.unsqueeze(-1) * A)", True),
        ("self.A_log.float().exp()", "(A[None] * dt[..., None]).exp()", True),
        ("F.softplus(self.a)", "torch.exp(torch.einsum('bld,dn->bldn', delta, A))", True),
        ("torch.exp(self.log_A_real) + 1j * self.A_imag", "torch.exp(self.dt * A)", True),
        ("torch.exp(self.A_log)", "selective_scan_fn(x, dt, A, B, C)", True),
        ("-torch.exp(self.A_log)", "torch.exp(dt.unsqueeze(-1) * A)", False),
        ("-torch.exp(self.A_log)", "selective_scan_fn(x, dt, A, B, C)", False),
        ("torch.exp(self.A_log)", "torch.exp(-dt.unsqueeze(-1) * A)", False),
        ("torch.exp(self.A_log)", "torch.exp(dt.unsqueeze(-1) * -A)", False),
        ("torch.exp(self.A_log)", "torch.exp(-(dt.unsqueeze(-1) * A))", False),
        ("torch.exp(self.A_log)\n    A = -A", "torch.exp(dt * A)", False),
        ("torch.exp(self.A_log).neg()", "torch.exp(dt * A)", False),
        ("-torch.exp(self.log_A_real) + 1j * self.A_imag", "torch.exp(self.dt * A)", False),
        ("torch.exp(self.scale)", "torch.exp(self.dt * A)", False),
        ("torch.exp(self.A_log)", "1 / (1 + dt * A)", False),
    ],
)
def test_a_state_fades(matrix, decay, found):
    """The minus may stand at the matrix, at the step, or before their product."""
    text = f"\ndef scan(self, x, dt, delta, B, C):\n    A = {matrix}\n    return {decay}\n"
    assert lines_of(text) == [3] * found


@pytest.mark.parametrize(("sign", "lines"), [("", [3]), ("-", [])])
def test_a_log_of_a_decay_is_negative(sign, lines):
    """As the gates of gated delta networks, which are raised where they are used."""
    text = f"""
def forward(self, a, state):
    g = {sign}self.A_log.float().exp() * F.softplus(a + self.dt_bias)
    return state * g.exp()[..., None]
"""
    assert lines_of(text) == lines


def test_another_function_may_raise_it():
    """The scan is often a function of its own, and a minus may be given to it."""
    text = """
def scan(x, dt, A):
    return torch.exp(dt * A)

class SSM(nn.Module):
    def forward(self, x, dt):
        A = torch.exp(self.A_log)
        return scan(x, dt, {})
"""
    assert lines_of(text.format("A")) == [7]
    assert lines_of(text.format("-A")) == []
