"""What the text of a file says of targets that go on from a value."""

import pytest

from attnlab.target.source_findings import source_findings

LEARN = """
def learn(batch, gamma):
    state, reward, following, {flag} = batch
    best = target(following).max(1).values
    {target}
    return F.mse_loss(net(state), goal)
"""


def lines(text):
    return [f.line for f in source_findings(text, "a.py") if f.rule == "bootstrap-at-the-end"]


@pytest.mark.parametrize(
    ("target", "flag", "found"),
    [
        ("goal = reward + gamma * done * best", "done", True),
        ("goal = reward + gamma * best * done.float()", "done", True),
        ("goal = reward + self.gamma * (terminals[:, None] * best)", "terminals", True),
        ("best = best * done; goal = reward + gamma * best", "done", True),
        ("gae = reward + args.gamma * lam * gae * dones[t]", "dones", True),
        ("goal = reward + gamma * (1 - done) * best", "done", False),
        ("goal = reward + gamma * best * ~done", "done", False),
        ("goal = reward + gamma * best * not_done", "not_done", False),
        ("goal = reward + gamma * best * mask", "mask", False),
        ("goal = reward + gamma ** n * terminal", "terminal", False),
        ("kernel = torch.exp(-(gamma * d))", "d", False),
        ("done = 1 - done; goal = reward + gamma * best * done", "done", False),
        ("done = done.logical_not(); goal = reward + gamma * best * done", "done", False),
    ],
)
def test_nothing_follows_what_is_done(target, flag, found):
    """Flags that were turned round, or mean that it goes on, are factors as they are."""
    assert lines(LEARN.format(target=target, flag=flag)) == [5] * found


@pytest.mark.parametrize(
    ("stored", "found"),
    [
        ("batch.append(0.0 if done else 1.0)", False),
        ("memory.push(float(not done))", False),
        ("memory.push(done)\n    if not done:\n        go_on()", True),
        ("memory.push(done)\n    while not (done or late):\n        go_on()", True),
    ],
)
def test_what_is_stored_may_be_the_opposite(stored, found):
    """Of a name that is turned round where it is stored, nothing is said; a condition is none."""
    text = LEARN.format(target="goal = reward + gamma * best * done", flag="done")
    assert lines(f"{text}\ndef play(done):\n    {stored}\n") == [5] * found
