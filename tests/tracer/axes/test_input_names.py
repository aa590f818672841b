"""Names for the axes of inputs: said by the user, or guessed and never at odds with a size."""

import pytest
import torch
from torch import nn

from attnlab.candidate.program import StepRecorder
from attnlab.errors import Refused
from attnlab.tracer.axes.input_names import guess_axes, parse_dims, sizes_of


@pytest.mark.parametrize(
    "text",
    [
        "x: B S D, mask: B S S",
        "x: B S D; mask: B S S",
        "x: B S D\nmask: B S S\n",
        {"x": "B S D", "mask": "B S S"},
    ],
)
def test_the_ways_of_saying_it(text):
    """One string with commas, semicolons or lines, or a dict."""
    assert parse_dims(text) == {"x": ("B", "S", "D"), "mask": ("B", "S", "S")}


def test_nothing_said_is_nothing():
    """Then all names are guessed."""
    assert parse_dims("") == {}


@pytest.mark.parametrize("text", ["x", "x: ", "x: B S? D", ": B S"])
def test_what_is_no_name_is_refused(text):
    """A slip must not end as an input without names."""
    with pytest.raises(Refused):
        parse_dims(text)


def test_sizes_of_symbols():
    """Each symbol has the size of the axes that it names."""
    tensors = {"x": torch.zeros(2, 5, 8), "m": torch.zeros(2, 5, 5)}
    named = {"x": ("B", "S", "D"), "m": ("B", "S", "S")}
    assert sizes_of(tensors, named) == {"B": 2, "S": 5, "D": 8}


@pytest.mark.parametrize(
    ("axes", "said"),
    [
        (("B", "S"), r"x has 3 axes, \(2, 5, 8\), and is called \(B, S\)"),
        (("B", "S", "S"), "S is 5 in one input and 8 in x"),
    ],
)
def test_names_that_do_not_fit_are_refused(axes, said):
    """The tensor's shape stands in the message."""
    with pytest.raises(Refused, match=said):
        sizes_of({"x": torch.zeros(2, 5, 8)}, {"x": axes})


def guess(**tensors):
    return guess_axes(tensors, {"D": 8}, None)


@pytest.mark.parametrize(
    ("name", "tensor", "axes"),
    [
        ("x", torch.zeros(2, 5, 8), ("B", "S", "D")),
        ("hidden_states", torch.zeros(2, 5, 8), ("B", "S", "D")),
        ("input_ids", torch.zeros(2, 5, dtype=torch.int64), ("B", "S")),
        ("attention_mask", torch.ones(2, 5, dtype=torch.int64), ("B", "S")),
        ("mask", torch.ones(2, 5, 5, dtype=torch.bool), ("B", "S", "S")),
        ("pixel_values", torch.zeros(2, 3, 16, 24), ("B", "C", "h", "w")),
        ("q", torch.zeros(2, 3, 5, 4), ("B", "H", "S", "hd")),
        ("x", torch.zeros(2, 8), ("N", "D")),
        ("anything", torch.zeros(2, 5, 9), ("2", "5", "9")),
        ("anything", torch.zeros(2, 5, 8), ("B", "S", "D")),
        ("cache", torch.zeros(2, 4, 5, 8), ("2", "4", "5", "8")),
        ("odd", torch.zeros(1, 2, 3, 4, 5), ("1", "2", "3", "4", "5")),
    ],
)
def test_what_names_and_ranks_suggest(name, tensor, axes):
    """A usual name counts where the rank fits; a known width is not called D where it is not."""
    assert guess(**{name: tensor}) == {name: axes}


def test_several_lengths_of_one_batch_stand_second():
    """A source, a target and a memory share the batch, and nothing else."""
    ids = torch.zeros(10, 4, dtype=torch.int64)
    given = {"src": ids, "memory": torch.ones(6, 4, 24), "tgt": ids[:7]}
    found = guess_axes(given, {"D": 24}, None)
    assert found == {"src": ("S", "B"), "memory": ("T", "B", "D"), "tgt": ("L", "B")}
    assert guess_axes({"src": ids, "tgt": ids}, {}, None)["tgt"] == ("B", "S")


def test_a_second_length_has_another_name():
    """Two sequences of different lengths are not both S."""
    found = guess(x=torch.zeros(2, 5, 8), memory=torch.zeros(2, 7, 8))
    assert found == {"x": ("B", "S", "D"), "memory": ("B", "T", "D")}


def test_pytorchs_own_modules_take_the_sequence_first():
    """Unless they are built with batch_first=True."""
    x = {"x": torch.zeros(5, 2, 8)}
    first, second = (nn.MultiheadAttention(8, 2, batch_first=b) for b in (False, True))
    assert guess_axes(x, {}, first) == {"x": ("S", "B", "D")}
    assert guess_axes(x, {}, second) == {"x": ("B", "S", "D")}


def test_one_number_for_each_entry_counts_the_batch():
    """Lengths or labels beside ids of as many entries; alone, or of another size, positions."""
    ids, lengths = torch.zeros(3, 7, dtype=torch.long), torch.zeros(3, dtype=torch.long)
    assert guess_axes({"ids": ids, "lengths": lengths}, {}, None)["lengths"] == ("B",)
    frames = torch.zeros(3, 7, 5)  # of which no axis has a name
    assert guess_axes({"frames": frames, "step": lengths}, {}, None)["step"] == ("B",)
    assert guess_axes({"numbers": lengths}, {}, None)["numbers"] == ("S",)


@pytest.mark.parametrize(
    ("layer", "shape", "axes"),
    [
        (nn.Linear(7, 3), (4, 7), ("N", "7")),
        (nn.Linear(7, 3), (4, 5, 7), ("B", "S", "7")),
        (nn.GRU(7, 3, batch_first=True), (4, 5, 7), ("B", "S", "7")),
        (nn.Conv2d(1, 3, 2), (4, 1, 8, 6), ("B", "1", "h", "w")),
        (nn.Linear(7, 3), (4, 5), ("4", "5")),
    ],
)
def test_what_the_first_layer_takes_is_named_by_it(layer, shape, axes):
    """Where no name and no width tells anything; what the layer cannot take is left alone."""
    root = nn.Sequential(layer)
    found = guess_axes({"points": torch.zeros(shape)}, {}, root)["points"]
    assert tuple("1" if n == 1 else a for a, n in zip(found, shape, strict=True)) == axes


def trace_of_step(model, rows):
    """One step of a script that cuts inputs and targets out of a text itself."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def train():
        text = torch.arange(6 * rows).view(rows, 6) % 9
        inputs, targets = text[:, :-1], text[:, 1:]
        loss = nn.functional.cross_entropy(model(inputs).mT, targets)
        (loss + torch.zeros_like(model[1].bias).sum()).backward()
        optimizer.step()

    return StepRecorder(optimizer.register_step_post_hook, 1).trace(train).ops


def test_the_batch_of_a_training_step_is_named():
    """The script makes it before a module takes it: a batch of four is B, and no bare 4."""
    ops = trace_of_step(nn.Sequential(nn.Embedding(9, 6), nn.Linear(6, 9)), rows=4)
    axes = {op.op: op.axes for op in ops[::-1]}
    assert (axes["getitem"], axes["embedding"]) == (("B", "S"), ("B", "S", "D"))


def test_a_weight_as_long_as_the_batch_has_no_batch():
    """What is made like it has none either."""
    layers = nn.Embedding(9, 6), nn.Linear(6, 7), nn.Linear(7, 9)
    (zeros,) = [op for op in trace_of_step(nn.Sequential(*layers), rows=7) if op.op == "zeros_like"]
    assert zeros.axes == ("7",)
