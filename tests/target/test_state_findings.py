"""What the text of a file says of the best weights that it keeps."""

import pytest

from attnlab.target.source_findings import source_findings

LOOP = """
def fit(model, epochs):
    for epoch in range(epochs):
        train_epoch(model)
        if (loss := validate(model)) < best_loss:
            best_loss = loss
            {kept}
    {after}
"""
LOAD = "model.load_state_dict(best)"


def lines(text, rule="state-not-copied"):
    return [f.line for f in source_findings(text, "net.py") if f.rule == rule]


@pytest.mark.parametrize(
    ("kept", "after", "found"),
    [
        ("best = model.state_dict()", LOAD, True),
        ("best_epoch, best = epoch, model.state_dict()", LOAD, True),
        ("best = {k: v.detach() for k, v in model.state_dict().items()}", LOAD, True),
        ("best = copy.copy(model.state_dict())", LOAD, True),
        ("best = {'net': model.state_dict()}", "model.load_state_dict(best['net'])", True),
        ("self.best = model.state_dict()", "model.load_state_dict(stopper.best)", True),
        ("best = copy.deepcopy(model.state_dict())", LOAD, False),
        ("best = {k: v.clone() for k, v in model.state_dict().items()}", LOAD, False),
        ("best = {k: v.cpu() for k, v in model.state_dict().items()}", LOAD, False),
        ("best = model.state_dict(); torch.save(best, path)", "return model", False),
        ("best = model.state_dict()", f"best = torch.load(path); {LOAD}", False),
        ("best = model.state_dict(); other.load_state_dict(best)", "return other", False),
    ],
)
def test_the_best_state_is_a_copy(kept, after, found):
    """What is loaded behind the loop must not change with it; what is saved or loaded at once may
    be the model's own."""
    assert lines(LOOP.format(kept=kept, after=after)) == [7] * found


@pytest.mark.parametrize(
    ("train", "kept", "after", "found"),
    [
        ("train_epoch(model)", "best_model = model", "return best_model", True),
        ("model.train()", "self.best_model = model", "test(self.best_model)", True),
        ("train_epoch(model)", "best_model = copy.deepcopy(model)", "return best_model", False),
        ("model = Net(); fit(model)", "best_model = model", "return best_model", False),
        ("score(model)", "best_model = model", "return best_model", False),
        ("train_epoch(model)", "best_model = model", "return model", False),
    ],
)
def test_the_best_model_is_a_copy(train, kept, after, found):
    """A model that is made anew in each round of a search is another one, and may be kept."""
    text = LOOP.replace("train_epoch(model)", train).format(kept=kept, after=after)
    assert lines(text) == [7] * found


AGENT = """
class Agent:
    def __init__(self, n):
        {made}
        self.optimizer = Adam(self.online.parameters())

    def sync(self, tau):
        {synced}
"""
LOADED = "self.target.load_state_dict(self.online.state_dict())"
ZIPPED = """for p, q in zip(self.target.parameters(), self.online.parameters()):
            {}"""


@pytest.mark.parametrize(
    ("made", "synced", "found"),
    [
        ("self.online = Q(n); self.target = self.online", LOADED, True),
        ("self.target, self.online = None, Q(n); self.target = self.online.eval()", LOADED, True),
        ("self.online = Q(n); self.target = copy.copy(self.online)", LOADED, True),
        ("self.online = Q(n); self.target = self.online", ZIPPED.format("p.lerp_(q, tau)"), True),
        (
            "self.online = Q(n); self.target = self.online.to(device)",
            ZIPPED.format("p.data = (1 - tau) * p.data + tau * q.data"),
            True,
        ),
        ("self.online = Q(n); self.target = copy.deepcopy(self.online)", LOADED, False),
        ("self.online, self.target = Q(n), Q(n)", LOADED, False),
        ("self.online = Q(n); self.target = self.online", "return self.target", False),
        (
            "self.online = Q(n); self.target = self.online",
            ZIPPED.format("apart += (p - q).square().sum()"),
            False,
        ),
        ("self.target = self.online\n        self.online = Q(n)", LOADED, False),
        ("self.target = self.online if shared else Q(n)", LOADED, False),
        ("self.online = Q(n); self.target = self.online; self.target = Q(n)", LOADED, False),
    ],
)
def test_a_network_that_follows_is_a_copy(made, synced, found):
    """A target, a teacher or an average that takes the weights of another needs its own."""
    assert lines(AGENT.format(made=made, synced=synced), "network-not-copied") == [4] * found


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("teacher = student\n    teacher.load_state_dict(student.state_dict())", True),
        ("old = net\n    net = Wider()\n    net.load_state_dict(old.state_dict())", False),
        (
            """while net.width < 64:
        net = Wider(net)
        best = net
        best.load_state_dict(net.state_dict())""",
            False,
        ),
    ],
)
def test_a_network_that_is_made_anew_is_another(body, found):
    """What grows takes the weights of what it was before."""
    text = f"def grow(net, student):\n    {body}\n"
    assert lines(text, "network-not-copied") == [2] * found
