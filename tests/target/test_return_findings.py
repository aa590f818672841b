"""What the text of a file says of discounted returns."""

import pytest

from attnlab.target.source_findings import source_findings


def lines(text):
    return [f.line for f in source_findings(text, "net.py") if f.rule == "returns-forward"]


def written(loop, *body, end="return torch.tensor(out)", name="returns"):
    """A function that sums rewards up; its loop is at line 3."""
    inside = "".join(f"        {line}\n" for line in body)
    return (
        f"def {name}(rewards, dones, gamma):\n    out, g = [], 0.0\n    {loop}:\n{inside}    {end}"
    )


EACH = "for r in rewards"


@pytest.mark.parametrize(
    ("loop", "body"),
    [
        (EACH, ("g = r + gamma * g", "out.append(g)")),
        (EACH, ("g = r + g * gamma", "out.insert(0, g)")),
        ("for reward in self.rewards", ("R = reward + args.gamma * R", "returns.appendleft(R)")),
        ("for r, d in zip(rewards, dones)", ("g = r + gamma * g * (1 - d)", "out.append(g)")),
        ("for t in range(len(rewards))", ("g = rewards[t] + gamma * g", "out[t] = g")),
        ("for t in range(1, n)", ("ret[t] = rewards[t] + gamma * ret[t - 1]",)),
        ("for t in range(n)", ("ret[:, t] = rewards[:, t] + gamma * ret[:, t - 1]",)),
        (
            "for t in range(n)",
            ("d = 0", "td = rewards[t] - v[t]", "g = td + gamma * g", "out.append(g)"),
        ),
        (EACH, ("running = r + gamma * running", "out.append(running)")),
        (EACH, ("running_add = r + gamma * running_add", "out[i] = running_add")),
        ("for t in range(n)", ("gae = deltas[t] + gamma * lam * gae", "out.append(gae)")),
    ],
)
def test_a_return_begins_at_the_last_reward(loop, body):
    """From the first reward on, each sum holds what came before its step."""
    assert lines(written(loop, *body)) == [3]
    if "out." in body[-1]:  # turned around at the end, it is still of the past
        assert lines(written(loop, *body, end="return out[::-1]")) == [3]


@pytest.mark.parametrize(
    ("loop", "body"),
    [
        ("for r in reversed(rewards)", ("g = r + gamma * g", "out.insert(0, g)")),
        ("for r in rewards[::-1]", ("g = r + gamma * g", "out.append(g)")),
        ("for t in range(n - 1, -1, -1)", ("g = rewards[t] + gamma * g", "out[t] = g")),
        ("for t in range(n)", ("g = rewards[n - 1 - t] + gamma * g", "out.append(g)")),
        ("for t in reversed(range(n))", ("ret[t] = rewards[t] + gamma * ret[t + 1]",)),
        (EACH, ("running = r + gamma * running", "std.update(running)")),
        ("for t in range(n)", ("delta = r - v[t]", "z = delta + gamma * z", "w += z")),
        ("for t in range(n)", ("v[:, t] = rewards[:, t] + gamma * v[:, t + 1]",)),
        (EACH, ("g = g + scale * r", "scale = scale * gamma")),
        ("for grad in gradients", ("v = grad + gamma * v", "out.append(v)")),
        ("for delta in deltas", ("trace = delta + gamma * lam * trace",)),
    ],
)
def test_other_sums_run_forward(loop, body):
    """Discounts that grow with the step, momentum and eligibility traces."""
    assert lines(written(loop, *body)) == []


def test_rewards_may_come_turned_around():
    """By the caller, or above the loop; statistics of a running return go forward."""
    body = (EACH, "g = r + gamma * g", "out.append(g)")
    assert lines(f"{written(*body)}\nreturns(batch.rewards[::-1], dones, 0.9)") == []
    assert (
        lines(written(*body).replace("    out,", "    rewards = rewards.flip(0)\n    out,")) == []
    )
    assert lines(written(*body, name="running_returns")) == []
