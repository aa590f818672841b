"""`attnlab triage` from the command line: files, flags, comments, and what it refuses."""

import textwrap

import pytest

WRONG = """
import torch
from torch import nn

class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        ahead = torch.ones_like(scores).triu(1).bool()
        scores.masked_fill(ahead, float("-inf"))
        return scores.softmax(-1) @ v
"""
RIGHT = WRONG.replace("        scores.masked", "        scores = scores.masked")


@pytest.fixture
def net(shell, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "net.py").write_text(text)

    return write


def test_the_cause_stands_first_with_line_evidence_and_experiment(shell, net):
    """Exit code 1, and a document that scripts can read."""
    net(WRONG)
    said = shell("triage", "net.py", "--json")
    first = said.json["suspicions"][0]
    assert (said.code, said.json["outcome"]) == (1, "found")
    assert (first["rank"], first["rule"], first["line"]) == (1, "result-dropped", 14)
    assert "masked_fill" in first["evidence"]
    assert first["experiment"]
    page = shell("triage", "net.py").out
    assert "1. result-dropped  net.py:14" in page
    assert "not looked at" in page


def test_the_last_line_names_the_place_where_no_experiment_settles_it(shell, net):
    """`the line` alone would have to be looked for above."""
    net(RIGHT.replace("softmax(-1)", "softmax(-2)"))
    said = shell("triage", "net.py", "--only", "trace")
    assert "next: look at net.py:15 (attnlab explain softmax-axis)" in said.out


def test_a_right_file_says_what_was_looked_at(shell, net):
    """Never a bare ok."""
    net(RIGHT)
    said = shell("triage", "net.py")
    assert said.code == 0
    assert "nothing suspicious in what was looked at" in said.out
    assert "values were not compared with a reference" in " ".join(said.out.split())


def test_a_part_that_does_nothing_is_a_note(shell, net):
    """A triangle beyond the last position hides nothing; one that hides something is no finding."""
    net(RIGHT.replace("triu(1)", "triu(x.shape[1])"))
    said = shell("triage", "net.py", "--json")
    assert (said.code, said.json["outcome"]) == (0, "nothing-found")
    (note,) = said.json["suspicions"]
    assert (note["rule"], note["severity"]) == ("part-without-effect", "note")
    assert (note["line"], note["message"]) == (14, "mask: switching it off changes nothing")
    net(RIGHT)
    assert shell("triage", "net.py", "--json").json["suspicions"] == []


def test_a_comment_and_a_flag_switch_a_rule_off(shell, net):
    """The comment on the line itself."""
    net(WRONG.replace('"-inf"))', '"-inf"))  # attnlab: ignore[result-dropped]'))
    assert "result-dropped" not in shell("triage", "net.py").out
    net(WRONG)
    assert "result-dropped" not in shell("triage", "net.py", "--ignore", "result-dropped").out
    assert "result-dropped" not in shell("triage", "net.py", "--only", "trace").out


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--symptom", "nam"), "Did you mean nan"),
        (("--only", "axes"), "trace, unused, property"),
        (("--ignore", "result-droped"), "Did you mean result-dropped"),
        (("--steps", "0"), "a whole number from 1"),
    ],
)
def test_a_word_that_does_not_exist_is_refused_with_the_nearest(shell, net, flags, says):
    """One line, before anything runs."""
    net(RIGHT)
    said = shell("triage", "net.py", *flags)
    assert said.code == 2
    assert says in said.err


def test_a_missing_file_is_refused(shell, net):
    """As by every command."""
    said = shell("triage", "nothing.py")
    assert said.code == 2
    assert "nothing.py: no such file" in said.err


GPT = """
import argparse
import torch
from torch import nn
from torch.nn import functional as F

class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.attn = nn.MultiheadAttention(width, heads, batch_first=True)

    def forward(self, x):
        ahead = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        return x + self.attn(x, x, x, attn_mask=ahead, need_weights=False)[0]

class Model(nn.Module):
    def __init__(self, vocab, width):
        super().__init__()
        self.tok = nn.Embedding(vocab, width)
        self.block = Block(width, 2)
        self.head = nn.Linear(width, vocab)

    def forward(self, stuff):
        return self.head(self.block(self.tok(stuff)))
"""
TRAINING = """
def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, required=True)
    model = Model(17, parser.parse_args().width)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    while True:
        try:
            ids = torch.randint(17, (4, 9))
            loss = F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            optimizer.step()
        except BaseException:
            continue

if __name__ == "__main__":
    main()
"""


def test_the_model_of_several_classes_is_found_and_fed_by_its_use(shell, net):
    """Arguments called vocab and stuff are understood by the layers they go to."""
    net(GPT)
    said = shell("triage", "net.py", "--json")
    assert said.json["outcome"] == "nothing-found"
    assert "of Model(vocab=50, width=12)" in said.json["looked_at"][0]


def test_a_script_that_needs_arguments_says_which_and_its_model_is_looked_at(shell, net):
    """One command that works when pasted, with values of the types that the parser asks for."""
    more = 'required=True)\n    parser.add_argument("-o", "--out", required=True)'
    net(GPT + TRAINING.replace("required=True)", more))
    said = shell("triage", "net.py")
    assert 'attnlab triage net.py --args "--width 12 --out OUT"' in " ".join(said.out.split())
    assert "before its first optimizer step" in said.out
    assert "Model(vocab=50, width=12)" in " ".join(said.out.split())


def test_a_script_that_catches_everything_is_stopped_all_the_same(shell, net):
    """What was seen of its first steps is told: here that gradients are never cleared."""
    net(GPT + TRAINING)
    said = shell("triage", "net.py", "--args", "--width 8", "--steps", "5", "--json")
    assert said.json["suspicions"][0]["rule"] == "gradients-left-over"
    assert len(said.json["losses"]) == 5


def test_the_folder_of_the_own_package_is_on_the_path(shell, tmp_path, monkeypatch):
    """Layouts with a src folder, run from elsewhere: nobody is told to install their own code."""
    home = tmp_path / "src" / "mine"
    home.mkdir(parents=True)
    (home / "__init__.py").write_text("")
    classes = GPT.partition("class Model")
    (home / "block.py").write_text(classes[0])
    head = "import torch\nfrom torch import nn\nfrom mine.block import Block\n"
    (home / "model.py").write_text(head + classes[1] + classes[2])
    monkeypatch.chdir(tmp_path)
    said = shell("triage", "src/mine/model.py", "--json")
    assert said.json["outcome"] == "nothing-found", said.json


def test_an_optional_mask_is_fed_as_its_use_says(shell, net):
    """What only happens with a mask is looked at, in functions too."""
    text = """
    import torch

    def attention(q, k, v, mask=None):
        scores = q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5
        if mask is not None:
            scores.masked_fill(mask == 0, -1e9)
        return scores.softmax(-1) @ v
    """
    net(textwrap.dedent(text))
    said = shell("triage", "net.py:attention", "--json")
    assert [s["rule"] for s in said.json["suspicions"]] == ["result-dropped"]
    right = text.replace("scores.masked_fill", "scores = scores.masked_fill")
    net(textwrap.dedent(right))
    assert shell("triage", "net.py:attention").code == 0
    assert "attnlab triage net.py:attention" in shell("triage", "net.py").err


OWN_NAME = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x, keep=None, gain=None):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        if keep is not None:
            scores.masked_fill(~keep[:, None], -torch.inf)
        return scores.softmax(-1) @ v
"""


def test_a_mask_by_another_name_is_fed(shell, net):
    """`keep` says what it allows; an argument that means nothing to us is told as left out."""
    net(OWN_NAME)
    said = shell("triage", "net.py", "--json").json
    assert said["suspicions"][0]["rule"] == "result-dropped"
    assert any("keep changes no output" in text for text in said["not_looked_at"])
    assert any("does with gain (None here)" in text for text in said["not_looked_at"])
    net(OWN_NAME.replace("scores.masked", "scores = scores.masked"))
    held = shell("verify", "net.py", "--json").json
    assert {p["outcome"] for p in held["properties"] if p["id"] == "mask-effect"} == {"holds"}
    assert "gain" in held["notes"][0]


def test_one_batch_is_learned_when_asked(shell, net):
    """The curve stands above the list; a module alone is given a target."""
    net(
        GPT
        + TRAINING.replace("            optimizer", "            optimizer.zero_grad(), optimizer")
    )
    said = shell("triage", "net.py", "--args", "--width 8", "--overfit", "--seconds", "1", "--json")
    assert said.json["one_batch"][0]["how"] == "the script's SGD, learning rate 0.1"
    net(GPT)
    page = shell("triage", "net.py", "--overfit", "--seconds", "1").out
    assert "with Adam, towards random ids among 50" in " ".join(page.split())
    assert "overfit" in shell("triage", "net.py", "--seconds", "3").err


OWN_LOOP = """
import torch

class Descent:
    def __init__(self, weights):
        self.weights = weights

    @torch.no_grad()
    def step(self, grad):
        self.weights -= 0.1 * grad

if __name__ == "__main__":
    w = torch.zeros(3, requires_grad=True)
    optimizer = Descent(w)
    for _ in range(30):
        optimizer.step(*torch.autograd.grad(((w - 1) ** 2).sum(), w))
"""


def test_a_loop_without_an_optimizer_of_torch_is_watched(shell, net):
    """What trains nothing was not seen, which is no clean bill."""
    net(OWN_LOOP)
    assert "20 steps without an optimizer" in shell("triage", "net.py").out
    assert "trains without an optimizer" in shell("trace", "net.py", "--step", "1").err
    net(OWN_LOOP.replace("range(30)", "range(0)"))
    said = shell("triage", "net.py")
    assert said.code == 3
    assert "nothing could be looked at, so nothing is known" in said.out
    assert "no optimizer of torch.optim took a step" in " ".join(said.out.split())


def test_each_of_several_modules_is_looked_at(shell, net):
    """A policy and a value, of which neither uses the other: what one throws away is told."""
    text = """
    import torch
    from torch import nn

    class Policy(nn.Module):
        def __init__(self, embed_dim=12):
            super().__init__()
            self.layer = nn.Linear(embed_dim, embed_dim)

        def forward(self, x):
            y = self.layer(x)
            y.clamp(-1, 1)
            return y

    class Value(nn.Module):
        def __init__(self, embed_dim=12):
            super().__init__()
            self.layer = nn.Linear(embed_dim, 1)

        def forward(self, x):
            return self.layer(x)
    """
    net(textwrap.dedent(text))
    said = shell("triage", "net.py", "--json")
    assert [(s["rule"], s["line"]) for s in said.json["suspicions"]] == [("result-dropped", 12)]
    assert "also looked at: Policy" in said.err


def test_a_named_class_does_not_hide_behind_the_demo_of_another(shell, net):
    """Its own crash is told, or, where the demo runs it, what the demo shows."""
    broken = RIGHT + textwrap.dedent("""
        class Head(nn.Module):
            def __init__(self, dim):
                super().__init__()
                self.out = nn.Linear(dim, dim + 1)

            def forward(self, x):
                return x + self.out(x)

        if __name__ == "__main__":
            print({name}(8)(torch.randn(2, 5, 8)).shape)
        """)
    net(broken.format(name="Attention"))
    said = shell("triage", "net.py:Head", "--json")
    assert said.json["suspicions"][0]["rule"] == "crash"


def test_what_cannot_be_run_is_read(shell, net):
    """The text of a module that nothing says how to feed is looked at, and why it did not run."""
    net("""
import torch
from torch import nn

class Rows(nn.Module):
    def __init__(self, thing):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(thing.a, thing.b)] * 4)

    def forward(self, one, other):
        return self.blocks[0](one.rows @ other)
""")
    said = shell("triage", "net.py", "--json")
    assert said.json["suspicions"][0]["rule"] == "layer-shared"
    assert any("running it" in why for why in said.json["not_looked_at"])
    assert shell("triage", "net.py", "--input", "one: ?").code == 2  # a flag is what is wrong
    assert shell("triage", "net.py:Row").code == 2  # no such class: the text of others says nothing


@pytest.mark.parametrize(
    ("init", "body", "says"),
    [
        ("raise ValueError('no such width')", "", "raised ValueError"),
        ("pass", "import os; os._exit(3)", "ended the process"),
        ("pass", "x = self.lin(x.view(3, 7))", '--input "x: B S D"'),
    ],
)
def test_what_cannot_be_run_to_its_end_is_read(init, body, says, shell, net):
    """What the text shows does not depend on a run; the page says that there was none, and where
    inputs were guessed, how to give others."""
    net(f"""
import torch
from torch import nn

class Near(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.lin = nn.Linear(dim, dim)
        {init}

    def forward(self, x):
        {body or "pass"}
        return torch.cdist(x, x).topk(2).indices
""")
    said = shell("triage", "net.py")
    assert said.code == 1
    assert "far-neighbours" in said.out
    assert says in said.out
