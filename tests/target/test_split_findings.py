"""What the text of a file does with its parts of data, each wrong line beside its right twin."""

import pytest

from attnlab.target.source_findings import source_findings

CLASSES = """
class Clips(Dataset):
    def __init__(self, rows{more}):
        names = {names}
        self.index = {{name: i for i, name in enumerate(names)}}

train_set = Clips(rows[:80]{given})
val_set = Clips(rows[80:]{given})
"""
WORDS = """
def numbers_of(texts):
    return {{w: i for i, w in enumerate(sorted({{w for t in texts for w in t}}))}}

train_numbers = numbers_of(train_texts)
{second}
"""
BALANCE = """
def balance(x, y):
    chosen = rng.choice(len(y), size=99, replace=True)
    order = rng.permutation(chosen)
    return x[order], y[order]

def split(x, y):
    cut = len(x) // 5
    return x[cut:], y[cut:], x[:cut], y[:cut]

{before}
x_train, y_train, x_val, y_val = split(x, y)
{after}
"""
FRAMES = """
def record(n):
    return {{{name}: image(i) for i in range(n)}}

def load(folder):
    return [folder[name] for name in {order}]
"""
PHASES = """
for phase in ["train", "val"]:
    for x, y in loaders[phase]:
        loss = criterion(model(x), y)
        {learns}
"""


def rules(text):
    return [(f.rule, f.line) for f in source_findings(text, "net.py")]


@pytest.mark.parametrize(
    ("names", "more", "given", "expected"),
    [
        ("sorted({r.name for r in rows})", "", "", [("numbered-apart", 4)]),
        ("NAMES", "", "", []),
        ("sorted({r.name for r in rows})", ", classes=None", ", classes=classes", []),
    ],
)
def test_classes_are_numbered_once(names, more, given, expected):
    """In a part that lacks a class, all later ones have another number."""
    assert rules(CLASSES.format(names=names, more=more, given=given)) == expected


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("val_numbers = numbers_of(val_texts)", [("numbered-apart", 3)]),
        ("val_ids = [train_numbers[w] for w in val_texts]", []),
        ("device_numbers = numbers_of(devices)", []),
    ],
)
def test_words_of_what_is_held_out_have_the_numbers_of_training(second, expected):
    """Also where a function makes them."""
    assert rules(WORDS.format(second=second)) == expected


@pytest.mark.parametrize(("data", "expected"), [("x_test", [("numbered-apart", 2)]), ("z", [])])
def test_an_encoder_is_fitted_once(data, expected):
    """On what is held out it only transforms."""
    assert rules(f"a = scaler.fit_transform(x_train)\nb = scaler.fit_transform({data})") == expected


def test_rows_are_repeated_after_the_split():
    """Before it, copies of one row land on both sides."""
    before = BALANCE.format(before="x, y = balance(x, y)", after="")
    after = BALANCE.format(before="", after="x_train, y_train = balance(x_train, y_train)")
    assert rules(before) == [("rows-shared", 11)]
    assert rules(after) == []


@pytest.mark.parametrize(
    ("name", "order", "expected"),
    [
        ('f"cam_{i}.png"', "sorted(folder)", [("orders-differ", 6)]),
        ('f"cam_{i:05d}.png"', "sorted(folder)", []),
        ('f"cam_{i}.png"', "sorted(folder, key=number)", []),
        ('f"cam_{i}.png"', "sorted(scores)", []),
    ],
)
def test_numbers_in_names_are_sorted_as_numbers(name, order, expected):
    """In the order of letters 10 comes before 2."""
    assert rules(FRAMES.format(name=name, order=order)) == expected


@pytest.mark.parametrize(
    ("learns", "expected"),
    [
        ("loss.backward(); optimizer.step()", [("evaluation-learns", 5)]),
        ('if phase == "train":\n            optimizer.step()', []),
        ('if phase != "train":\n            continue\n        optimizer.step()', []),
    ],
)
def test_only_the_phase_of_training_learns(learns, expected):
    """Steps that no `if` guards run in validation, too."""
    assert rules(PHASES.format(learns=learns)) == expected


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("(b - a).astype(np.float32)", True),
        ("b.astype(np.float32) - a.astype(np.float32)", False),
        ("(b.astype(np.int16) - a).astype(np.float32)", False),
    ],
)
def test_pictures_are_floats_before_they_are_subtracted(made, found):
    """Of uint8, 3 - 5 is 254."""
    text = f"a, b = load(np.uint8)\nx = {made}\n"
    assert rules(text) == [("unsigned-difference", 2)] * found


@pytest.mark.parametrize(
    ("quiet", "added", "found"),
    [("", "loss_fn(model(x), y)", True), ("@torch.no_grad()", "loss_fn(model(x), y)", False),
     ("", "loss_fn(model(x), y).item()", False)],
)  # fmt: skip
def test_validation_keeps_no_graphs(quiet, added, found):
    """A sum of losses that have gradients holds the graphs of all batches."""
    text = f"""
{quiet}
def validate(model, loader):
    model.eval()
    total = 0
    for x, y in loader:
        total += {added}
    return total
"""
    assert rules(text) == [("graph-kept", 7)] * found


@pytest.mark.parametrize(
    ("labels", "found"),
    [("torch.tensor(labels)", True), ("torch.tensor(labels)[order]", False)],
)
def test_labels_follow_the_order_of_lengths(labels, found):
    """What is sorted for packing is sorted together."""
    text = f"""
def collate(rows):
    tokens, labels, lengths = unpack(rows)
    lengths, order = lengths.sort(descending=True)
    return tokens[order], lengths, {labels}
"""
    assert rules(text) == [("orders-differ", 5)] * found
