"""What the text of a file picks by an index that belongs elsewhere."""

import pytest

from attnlab.target.source_findings import source_findings


def lines_of(text, rule):
    return [f.line for f in source_findings(text, "net.py") if f.rule == rule]


EXPERTS = """
def forward(self, x):
    gates, chosen = self.router(x).softmax(-1).topk({k}, dim=-1)
    for e, expert in enumerate(self.experts):
        {rows}
        y.index_add_(0, tok, expert(x[tok]) * {gate})
    return y
"""
WHERE = "tok, slot = torch.where(chosen == e)"


@pytest.mark.parametrize(
    ("k", "rows", "gate", "found"),
    [
        ("self.k", WHERE, "gates[tok, 0].unsqueeze(-1)", True),
        ("2", "tok, _ = (chosen == e).nonzero(as_tuple=True)", "gates[tok, :1]", True),
        ("2", "tok = (chosen == e).any(dim=-1)", "gates[tok][:, 0, None]", True),
        ("self.k", WHERE, "gates[tok, slot].unsqueeze(-1)", False),
        ("self.k", WHERE, "gates[tok, slot, None]", False),
        ("2", "tok = torch.where(chosen[:, 0] == e)[0]", "gates[tok, 0, None]", False),
        ("1", WHERE, "gates[tok, 0, None]", False),
    ],
)
def test_each_expert_has_the_gate_of_its_slot(k, rows, gate, found):
    """With one expert for each token there is one slot only."""
    text = EXPERTS.format(k=k, rows=rows, gate=gate)
    assert lines_of(text, "gate-of-first-slot") == [6] * found


EDGES = """
def forward(self, x, edge_index):
    {ends}
    {made}
    return x.new_zeros(n, d).index_add(0, {at}, x[src] * alpha[:, None])
"""
ENDS = "src, dst = edge_index"
BY_HAND = "ex = score.exp(); total = x.new_zeros(n).index_add(0, {0}, ex); alpha = ex / total[{0}]"


@pytest.mark.parametrize(
    ("ends", "made", "at", "found"),
    [
        (ENDS, "alpha = segment_softmax(score, src, n)", "dst", True),
        (ENDS, "alpha = F.dropout(softmax(score, index=src), 0.1)", "dst", True),
        ("src, dst = edge_index[0], edge_index[1]", "alpha = softmax(score, src)", "dst", True),
        (ENDS, BY_HAND.format("src"), "dst", True),
        (ENDS, BY_HAND.format("dst"), "dst", False),
        (ENDS, "alpha = segment_softmax(score, dst, n)", "dst", False),
        (ENDS, "alpha = segment_softmax(score, src, n)", "src", False),
        (ENDS, "alpha = 1 / degree[src]", "dst", False),
        (ENDS, "alpha = score.softmax(-1)", "dst", False),
    ],
)
def test_weights_are_normalised_where_they_are_summed(ends, made, at, found):
    """Degrees are no softmax, and may be those of either end."""
    text = EDGES.format(ends=ends, made=made.replace("; ", "\n    "), at=at)
    assert bool(lines_of(text, "weights-of-other-end")) == found


BEAMS = """
def search(self, memory):
    for _ in range(n):
        lp, state = self.step(seqs[:, -1], {state}, memory)
        scores, flat = (scores + lp).view(b, -1).topk(beam, dim=-1)
        parent = {parent}
        rows = (parent + offset).view(-1)
        seqs = seqs[rows]
        {then}
    return seqs
"""


@pytest.mark.parametrize(
    ("parent", "state", "then", "found"),
    [
        ("flat // vocab", "state", "pass", True),
        ("torch.div(flat, vocab, rounding_mode='floor')", "state", "pass", True),
        ("flat // vocab", "state[rows]", "pass", False),
        ("flat // vocab", "state", "state = tuple(s.index_select(1, rows) for s in state)", False),
        ("flat // vocab", "state", "self.reorder(state, parent)", False),
        ("flat // vocab", "memory", "pass", False),
    ],
)
def test_a_state_follows_its_beam(parent, state, then, found):
    """A state is put into the order of the parents, at the end of a step or at the next one."""
    text = BEAMS.format(parent=parent, state=state, then=then)
    assert lines_of(text, "state-not-reordered") == [4] * found


def test_a_first_score_that_is_set_is_no_choice():
    """Beams begin with one score of 0, and the others hidden."""
    text = (
        "def search(self):\n    scores[:, 0] = 0.0\n    for _ in range(9):\n        scores.topk(2)"
    )
    assert lines_of(text, "sampling") == []
    assert lines_of(text.replace("scores.topk", "scores[:, 0].topk"), "sampling") == [4]


LOOP = "for h in range(self.n_heads):"


@pytest.mark.parametrize(
    ("before", "picked", "found"),
    [
        (LOOP, "kv = h // self.n_kv_heads; s = q[h] @ k[kv].mT", True),
        (LOOP, "s = q[h] @ k[:, h // self.n_kv_heads].mT", True),
        (LOOP, "j = h // n_kv; s = q[h] @ keys[:, j].mT", True),
        (LOOP, "kv_head = h // n_kv % n_kv", True),
        ("if True:", "idx = torch.arange(num_heads) // n_kv; k = k[:, idx]", True),
        ("if True:", "idx = torch.arange(num_heads) // n_kv; k = k.index_select(1, idx)", True),
        ("if True:", "kv = [h // num_kv_heads for h in range(num_heads)]", True),
        ("if True:", "off_kv = off_h // NUM_KV_HEADS", True),
        (LOOP, "kv = h // (self.n_heads // self.n_kv_heads); s = q[h] @ k[kv].mT", False),
        (LOOP, "kv = h // self.num_key_value_groups; s = q[h] @ k[kv].mT", False),
        (LOOP, "group, kv = h // n_kv, h % n_kv; s = q[group] @ k[kv].mT", False),
        ("for bh in range(b * n_kv):", "i = bh // n_kv; s = q[i] @ k[i].mT", False),
        (LOOP, "row = h // n_kv; s = out[row]", False),
    ],
)
def test_key_heads_are_found_by_the_size_of_a_group(before, picked, found):
    """A head's number is divided by how many share a key head, in loops and in tables of them;
    what counts something else, or heads that lie the other way round, is right."""
    text = f"def forward(self, q, k):\n    {before}\n        {picked}\n"
    assert bool(lines_of(text, "head-order")) == found
