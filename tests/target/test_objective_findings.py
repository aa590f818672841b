"""What the text of a file says of objectives that compare."""

import pytest

from attnlab.target.source_findings import source_findings

PPO = """
def update(policy, opt, data):
    {before}
    for _ in range(epochs):
        for idx in order.split(32):
            dist, value = policy(data.x[idx])
            logp = dist.log_prob(data.action[idx])
            {old}
            ratio = torch.exp(logp - old_logp)
            loss = -torch.min(ratio * adv, ratio.clamp(0.8, 1.2) * adv).mean()
            loss.backward()
            {step}
"""
AGAIN = "with torch.no_grad(): d, _ = policy(data.x[idx]); old_logp = d.log_prob(data.action[idx])"


def lines(text, rule):
    return [f.line for f in source_findings(text, "net.py") if f.rule == rule]


@pytest.mark.parametrize(
    ("before", "old", "step", "found"),
    [
        ("pass", "old_logp = logp.detach()", "opt.step()", True),
        ("pass", "old_logp = logp.clone().detach()", "opt.step()", True),
        ("pass", AGAIN, "opt.step()", True),
        ("pass", "old_logp = data.logp[idx]", "opt.step()", False),
        ("old_logp = policy(data.x)[0].log_prob(data.action)", "pass", "opt.step()", False),
        ("pass", "if first: old_logp = logp.detach()", "opt.step()", False),
        ("pass", "old_logp = logp.detach() if kept is None else kept[idx]", "opt.step()", False),
        ("pass", "data = rollout(policy); old_logp = logp.detach()", "opt.step()", False),
        ("pass", "old_logp = logp.detach()", "pass", False),
    ],
)
def test_an_old_policy_is_an_older_one(before, old, step, found):
    """Where samples are drawn for each step, or gradients only summed, the ratio may be 1."""
    text = PPO.format(before=before, old=old, step=step)
    assert lines(text, "ratio-of-one") == [8] * found


@pytest.mark.parametrize(
    ("logits", "found"),
    [
        ("pi_ratio + ref_ratio", True),
        ("(pi_c - pi_r) + (ref_c - ref_r)", True),
        ("pi_c - pi_r - ref_c - ref_r", True),
        ("(chosen_logps + ref_chosen_logps) - (rejected_logps + ref_rejected_logps)", True),
        ("score(policy, chosen) - score(policy, bad) + score(ref, chosen)", True),
        ("pi_ratio - ref_ratio", False),
        ("(pi_c - ref_c) - (pi_r - ref_r)", False),
        ("pi_c - pi_r - ref_c + ref_r", False),
        ("pi_ratio + (ref_r - ref_c)", False),
        ("pi_ratio - margin", False),
    ],
)
def test_a_reference_is_subtracted(logits, found):
    """However the four log-probabilities are put together, each has the opposite sign."""
    text = f"""
def loss(pi_c, pi_r, ref_c, ref_r, beta):
    pi_ratio = pi_c - pi_r
    ref_ratio = ref_c - ref_r
    logits = {logits}
    return -F.logsigmoid(beta * logits).mean()
"""
    assert lines(text, "reference-added") == [5] * found


@pytest.mark.parametrize(
    ("score", "then", "found"),
    [
        ("z @ z.t() / tau", "return F.cross_entropy(s, target)", True),
        ("torch.mm(z, z.T)", "return F.cross_entropy(s / tau, target)", True),
        ("z.mm(z.t())", "e = torch.exp(s / tau); return -torch.log(pos / e.sum(1)).mean()", True),
        (
            "F.cosine_similarity(z[:, None], z[None], dim=-1)",
            "pos = torch.diag(s, n); return (torch.logsumexp(s, 1) - pos).mean()",
            True,
        ),
        ("z @ z.t()", "s.fill_diagonal_(float('-inf')); return F.cross_entropy(s, t)", False),
        ("z @ z.t() - 1e9 * torch.eye(2 * n)", "return F.cross_entropy(s, t)", False),
        ("z @ z.t()", "s = s[~own].view(2 * n, -1); return F.cross_entropy(s[mask], t)", False),
        ("z @ z.t()", "return F.cross_entropy(s[:n, n:], t)", False),
        ("z @ bank.t()", "return F.cross_entropy(s, t)", False),
        ("z1 @ z2.t()", "return F.cross_entropy(s, torch.arange(n))", False),
        ("z @ z.t()", "return s.softmax(-1) @ z", False),
        (
            "z @ z.t()",
            "k = torch.exp(-(sq + sq.t() - 2 * s)); return torch.log(k.mean())",
            False,
        ),
    ],
)
def test_no_row_is_its_own_negative(score, then, found):
    """The diagonal is taken out, or only one view is compared with the other; kernels and
    attention keep it."""
    text = f"""
def loss(z1, z2, tau):
    z = F.normalize(torch.cat([z1, z2]), dim=-1)
    s = {score}
    {then}
"""
    assert lines(text, "self-in-denominator") == [4] * found
