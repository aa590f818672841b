"""Windows and pairs, as the text of a file cuts and shuffles them."""

from textwrap import dedent

import pytest

from attnlab.target.source_findings import source_findings

WINDOWS = """
class Windows(Dataset):
    def __getitem__(self, i):
        return self.series[{first} : {first} + self.width]

data = Windows(series, 32)
{split}
"""
LOADERS = """
texts = DataLoader(TensorDataset(a), shuffle={shuffle})
images = DataLoader(TensorDataset(b), shuffle=True)
for (t,), (i,) in zip(texts, images):
    loss = F.cross_entropy(f(t) @ g(i).T, {labels})
"""


def rules(text):
    return [(f.rule, f.line) for f in source_findings(dedent(text), "a.py")]


@pytest.mark.parametrize(
    ("first", "split", "expected"),
    [
        ("i", "train, val = random_split(data, [80, 20])", [("rows-shared", 7)]),
        ("i", "order = torch.randperm(100)\nval = Subset(data, order[:20])", [("rows-shared", 8)]),
        ("i", "val = Subset(data, range(80, 100))", []),
        ("i", "val = Subset(data, [1, 2]) or Subset(dataset=data, indices=[1])", []),
        ("i * self.width", "train, val = random_split(data, [80, 20])", []),
    ],
)
def test_windows_that_overlap_are_not_split_at_random(first, split, expected):
    """A window for each place shares all but one value with the next; those apart share none."""
    assert rules(WINDOWS.format(first=first, split=split)) == expected


@pytest.mark.parametrize(
    ("shuffle", "labels", "expected"),
    [
        (True, "torch.arange(len(t))", [("orders-differ", 2)]),
        (False, "torch.arange(len(t))", []),
        (True, "domain", []),
    ],
)
def test_loaders_of_pairs_do_not_shuffle_one_by_one(shuffle, labels, expected):
    """Rows that are taken for pairs must be; two domains side by side need not."""
    assert rules(LOADERS.format(shuffle=shuffle, labels=labels)) == expected


def test_images_and_labels_do_not_shuffle_one_by_one():
    """What meets in one loss must be of one sample."""
    text = """
    images = DataLoader(x, shuffle=True)
    labels = DataLoader(y, shuffle=True)
    for image, label in zip(images, labels):
        loss = criterion(net(image), label)
    """
    assert rules(text) == [("orders-differ", 2)]
    kept = "made = net(image)\n        loss = criterion(made, mask)"
    text = text.replace("label in", "mask in").replace("loss = criterion(net(image), label)", kept)
    assert rules(text) == [("orders-differ", 2)]
    assert rules(text.replace("made, mask", "made, net(mask)")) == []
