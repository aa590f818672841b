"""Names for the axes of inputs: what the user says, else what names and ranks suggest."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from attnlab.errors import Refused
from attnlab.records.job import Input
from attnlab.target.conventions import FEEDS

Axes = tuple[str, ...]
LENGTHS = ("S", "T", "L", "K", "P")  # for sequences of different lengths, in this order
PICTURES = ("pixel_values", "image", "images", "img", "imgs", "pixels")
COLOURS = 3
WIDTHS = ("in_features", "input_size", "in_channels")  # of layers, by what PyTorch calls them
HEADS = ("q", "k", "v", "query", "key", "value", "queries", "keys", "values", "past")


def parse_dims(dims: str | Mapping[str, str | Sequence[str]]) -> dict[str, Axes]:
    """`"x: B S D, mask: B S S"`, also one on each line or as a dict; raises `Refused`."""
    if not dims:
        return {}
    from attnlab.catalogue.inputs import parse_input  # with it comes all that reads files

    if isinstance(dims, str):
        texts = [t.strip() for t in dims.replace(";", ",").replace("\n", ",").split(",")]
    elif isinstance(dims, Mapping):
        texts = [f"{n}: {a if isinstance(a, str) else ' '.join(a)}" for n, a in dims.items()]
    else:
        raise Refused(f"dims is {dims!r}", 'say it as in dims="x: B S D, mask: B S S"')
    found = [_entry(text, parse_input) for text in texts if text]
    return {entry.name: entry.axes for entry in found}


def _entry(text: str, read: Callable[[str], Input]) -> Input:
    if ":" not in text:
        name = text.split(maxsplit=1)[0]
        raise Refused(f'dims: "{text}" has no colon', f'say it as in "{name}: B S D"')
    return read(text)


def sizes_of(tensors: Mapping[str, Tensor], named: Mapping[str, Axes]) -> dict[str, int]:
    """The size of every symbol; raises `Refused` where a tensor has other axes than its names."""
    found: dict[str, int] = {}
    for name, axes in named.items():
        shape = tuple(tensors[name].shape)
        if len(axes) != len(shape):
            raise Refused(
                f"{name} has {len(shape)} axes, {shape}, and is called ({', '.join(axes)})",
                "give one name for each axis",
            )
        for axis, n in zip(axes, shape, strict=True):
            if axis.isdigit() and int(axis) != n:
                raise Refused(
                    f"{name} has {n} where {axis} is said: {shape}", "give the size as it is"
                )
            if axis.isidentifier() and found.setdefault(axis, n) != n:
                raise Refused(
                    f"{axis} is {found[axis]} in one input and {n} in {name}: {shape}",
                    "give axes of different sizes different names",
                )
    return found


def guess_axes(
    tensors: Mapping[str, Tensor],
    known: Mapping[str, int],
    root: nn.Module | None,
    time_first: bool = False,
) -> dict[str, Axes]:
    """Names for the inputs that nobody named, as well as they can be told.

    With `time_first`, sequences are (S, B, ...), as PyTorch's own modules take them by default.
    """
    sizes = dict(known)
    found: dict[str, Axes] = {}
    time_first = time_first or _share_the_second_axis(tensors.values())
    wide = [t.shape[:2] for t in tensors.values() if t.dim() > 1]
    entries = {pair[time_first] for pair in wide} - {pair[not time_first] for pair in wide}
    for name, tensor in tensors.items():
        axes = list(_usual(name.rpartition(".")[2], tensor, sizes, entries))
        axes = axes or _by_first_layer(tensor, root)
        ids = len(axes) == 2 and time_first and tensor.dtype is not torch.bool
        turned = len(axes) == 3 and (time_first or _sequence_first(root))
        if axes[:2] == ["B", "S"] and (turned or (ids and "mask" not in name)):
            axes[:2] = ["S", "B"]
        found[name] = _fit_names(axes, tuple(tensor.shape), sizes)
    return found


def _share_the_second_axis(tensors: Iterable[Tensor]) -> bool:
    """Sequences of several lengths in one batch, which stands second: a source, a target, a
    memory."""
    seen = [t.shape[:2] for t in tensors if t.dim() in (2, 3) and t.dtype is not torch.bool]
    first, second = {n for n, _ in seen}, {n for _, n in seen}
    return len(seen) > 1 and len(second) == 1 and len(first) == len(seen) and 1 not in second


def _usual(name: str, tensor: Tensor, sizes: Mapping[str, int], entries: set[int]) -> Sequence[str]:
    """By the argument's name where it is a usual one and has that rank, else by the rank.

    What could as well be something else is left without names: a finding that rests on a wrong
    guess costs more trust than a name is worth.
    """
    said = [w for w in FEEDS.get(name, "").split() if w[0].isupper()]
    rank, last = tensor.dim(), tensor.shape[-1:]
    if said and len(said) == rank and tensor.is_floating_point() == ("D" in said):
        return said
    if "mask" in name or not tensor.is_floating_point():
        if rank == 4 and ("mask" in name or tensor.dtype is torch.bool):
            return ("B", "H", "S", "S")
        alone = ("B",) if entries.issuperset(last) else ("S",)  # lengths, labels
        return {1: alone, 2: ("B", "S"), 3: ("B", "S", "S")}.get(rank, ())
    if rank == 4 and name in HEADS:
        return ("B", "H", "S", "hd")
    if rank == 4 and (name in PICTURES or tensor.shape[1] == COLOURS):
        return ("B", "C", "h", "w")
    wide = last == (sizes.get("D"),)
    return {2: ("N", "D"), 3: ("B", "S", "D")}.get(rank, ()) if wide else ()


def _by_first_layer(tensor: Tensor, root: nn.Module | None) -> list[str]:
    """Of an input that nothing else tells about, and that the first layer with a width takes."""
    layers = root.modules() if root is not None else ()
    widths = ((w, vars(layer)[w]) for layer in layers for w in WIDTHS if w in vars(layer))
    kind, width = next(widths, ("", 0))
    rank, shape = tensor.dim(), tensor.shape
    if kind == "in_channels" and rank == 4 and shape[1] == width:
        return ["B", "C", "h", "w"]
    if kind and kind != "in_channels" and rank in (2, 3) and shape[-1] == width:
        return [*(["B", "S"] if rank == 3 else ["N"]), str(width)]
    return []


def _fit_names(axes: Sequence[str], shape: tuple[int, ...], sizes: dict[str, int]) -> Axes:
    """The names with their sizes; a second length gets another name, what does not fit a number."""
    found = []
    for axis, n in zip(axes, shape, strict=False):
        names = (axis, *LENGTHS) if axis in LENGTHS else (axis,)
        fit = next((s for s in names if sizes.get(s, n) == n), str(n))
        if not fit.isdigit() and n != 1:
            sizes[fit] = n
        found.append(fit)
    return tuple(found) if len(found) == len(shape) else tuple(map(str, shape))


def _sequence_first(root: nn.Module | None) -> bool:
    """PyTorch's own modules take (S, B, D) unless they are told otherwise."""
    if root is None:
        return False
    flags = [vars(m)["batch_first"] for m in root.modules() if "batch_first" in vars(m)]
    own = not hasattr(root, "forward") or type(root).__module__.startswith("torch.nn")
    return own and bool(flags) and not any(flags)
