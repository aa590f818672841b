"""What a contract says of a module: the facts that checks need, and which axis is which.

Each fact and each promise is declared once, in `FACTS`. `[contract] promises` is validated by it,
`attnlab grade` takes from it why a check was skipped, and docs/make.py the table of promises.

A query axis is `S`, or `Sq` where keys have a length of their own; that length is `Sk`.
"""

from collections.abc import Callable
from typing import NamedTuple

from attnlab.records import Contract, Input, Position


class ContractFact(NamedTuple):
    """A fact that a check can need. A promise holds where the contract lists it."""

    name: str
    missing: str = ""  # why a check that needs it is skipped; "": no check needs it
    holds: Callable[[Contract], bool] | None = None  # where the contract does not list it
    promise: str = ""  # what listing it promises, in Markdown; "": it cannot be listed
    requires: str = ""  # the promise that must be listed with it


def known_facts(contract: Contract) -> set[str]:
    """The names of the facts that hold for a contract."""
    found = (fact.name for fact in FACTS.values() if fact.holds and fact.holds(contract))
    return {*contract.promises, *found}


# ---------------------------------------------------------------- inputs and axes


def has_query_axis(spec: Input) -> bool:
    """Whether a mask has an axis of queries before that of the keys, so that it can be causal."""
    return spec.role == "mask" and len(spec.axes) > 1 and spec.axes[-2] not in ("B", "H", "1")


def data_inputs(contract: Contract, axis: str) -> list[Input]:
    """The inputs that carry data along `axis`."""
    return [i for i in contract.inputs if i.role == "data" and axis in i.axes]


def mask_input(contract: Contract) -> Input:
    """The input that is the attention mask."""
    return next(i for i in contract.inputs if i.role == "mask")


def query_axis(contract: Contract) -> str:
    """The axis of the queries."""
    return "Sq" if "Sq" in contract.output else "S"


def key_axis(contract: Contract) -> str:
    """The axis of the inputs that keys come from: a context's, or the queries' own."""
    return "Sk" if data_inputs(contract, "Sk") else query_axis(contract)


# ---------------------------------------------------------------- when a fact holds


def _has_role(contract: Contract, role: str) -> bool:
    return any(i.role == role for i in contract.inputs)


def _keeps_axis(contract: Contract, axis: str) -> bool:
    """Whether an input and the output have this axis."""
    return axis in contract.output and bool(data_inputs(contract, axis))


def _attends(contract: Contract) -> bool:
    promised = not {"causal", "averaging"}.isdisjoint(contract.promises)
    one_sequence = query_axis(contract) in contract.output and not _has_role(contract, "segments")
    return (_has_role(contract, "mask") or promised) and one_sequence


def _can_reorder_cache(contract: Contract) -> bool:
    cache = contract.cache
    return cache is not None and (cache.form == "returned" or bool(cache.reorder))


def _position(
    kinds: tuple[str, ...] = (), forms: tuple[str, ...] = (), grid: bool = True
) -> Callable[[Contract], bool]:
    """Holds for positions of these kinds and forms; `grid=False` leaves out those of a grid."""

    def holds(contract: Contract) -> bool:
        position: Position | None = contract.position
        return (
            position is not None
            and (not kinds or position.kind in kinds)
            and (not forms or position.form in forms)
            and (grid or not position.grid)
        )

    return holds


_LONG = _position(("sinusoidal", "rotary"))
FACTS = {
    fact.name: fact
    for fact in (
        # ------------------------------------------------------------ promises
        ContractFact(
            name="causal",
            promise="the output at position t does not depend on inputs after t (a module that "
            "takes a mask promises this for a causal mask, without listing it)",
            missing="the module neither takes a mask nor promises to be causal",
            holds=lambda c: any(map(has_query_axis, c.inputs)),
        ),
        ContractFact(
            name="averaging",
            promise="each output is an average of values with weights that sum to 1, and "
            "positions are not known: inputs that are equal at all positions give outputs that "
            "are equal at all positions, and permuted inputs (with the rows and columns of the "
            "mask) give permuted outputs, unless the module also promises `causal`",
            missing="the module does not promise to average values without positions",
        ),
        ContractFact(
            name="dropout",
            promise="train mode is random on purpose; without this promise, train mode and eval "
            "mode must agree",
            missing="the module does not promise dropout",
        ),
        ContractFact(
            name="local",
            promise="a query need not look at every key that it may attend to: windows, top-k",
        ),
        ContractFact(
            name="scaled",
            promise="queries and keys of unit variance give scores of unit variance",
            missing="the module does not promise scores of unit variance",
        ),
        ContractFact(
            name="float32-output",
            promise="the output is float32, whatever the dtype of the inputs: only their shape "
            "matters",
        ),
        ContractFact(
            name="signature",
            promise="arguments of the constructor and of forward have the order of `[init]` and "
            "`[inputs]`, and an optional last input can be left out",
            missing="the contract does not fix the order of arguments",
        ),
        ContractFact(
            name="nan-safe",
            promise="NaN and infinity at masked keys reach no output (in ordinary attention they "
            "do: 0 times NaN is NaN)",
            missing="the module does not promise to ignore NaN at masked keys",
        ),
        ContractFact(
            name="empty-rows",
            promise="a query that may attend to no key gets a context of zeros, and gradients "
            "stay finite",
            missing="fully masked rows are not part of its contract",
        ),
        ContractFact(
            name="ordered",
            promise="the order of positions matters: swapping two positions changes the output of "
            "later ones (`[contract.position]` implies it)",
            missing="the module does not promise that its output depends on the order of positions",
            holds=_position(),
        ),
        ContractFact(
            name="relative",
            promise="only distances matter: masked positions put in front change nothing (the "
            "kinds `rotary`, `alibi` and `t5` imply it)",
            missing="the module does not promise that only distances matter",
            holds=_position(("rotary", "alibi", "t5")),
        ),
        ContractFact(
            name="any-device",
            promise="inputs on a GPU give an output there, equal to the CPU's (checked where "
            "there is a GPU)",
            missing="the module does not promise to run on any device",
        ),
        ContractFact(
            name="same-dropout",
            requires="dropout",
            promise="besides `dropout`: it drops what the reference drops, at the same place, "
            "with the same probability, each value independently",
            missing="the module does not promise to drop the same values as the reference",
        ),
        ContractFact(
            name="unbiased-dropout",
            requires="dropout",
            promise="besides `dropout`: the mean of outputs in train mode is the output in eval "
            "mode, so only sums and products follow the dropout",
        ),
        # ------------------------------------------------------------ inputs, output, reference
        ContractFact(
            # known of the job, not of the contract
            name="reference",
            missing="there is no reference for this module",
        ),
        ContractFact("output", "the shape of the output is not known", lambda c: bool(c.output)),
        ContractFact(
            "batch",
            "input and output have no batch axis B in common",
            lambda c: _keeps_axis(c, "B"),
        ),
        ContractFact(
            "sequence",
            "input and output have no sequence axis S in common",
            lambda c: _keeps_axis(c, "S"),
        ),
        ContractFact(
            "positions",
            "input and output have no axis of positions in common",
            lambda c: _keeps_axis(c, query_axis(c)),
        ),
        ContractFact(
            "floats",
            "the module takes no floating-point input to differentiate",
            lambda c: any(i.role == "data" and i.dtype == "float" for i in c.inputs),
        ),
        ContractFact(
            "refusals",
            "the contract lists no input that must be refused",
            lambda c: bool(c.refusals),
        ),
        # ------------------------------------------------------------ attention
        ContractFact("mask", "the module takes no attention mask", lambda c: _has_role(c, "mask")),
        ContractFact(
            "keys",
            "no input has the axis of the mask's keys",
            lambda c: _has_role(c, "mask") and bool(data_inputs(c, key_axis(c))),
        ),
        ContractFact(
            "additive",
            "the contract does not say that the mask may be additive",
            lambda c: any(i.role == "mask" and i.additive for i in c.inputs),
        ),
        ContractFact(
            "attention",
            "the module takes no mask and promises neither causality nor averaging",
            _attends,
        ),
        ContractFact(
            "all-keys",
            "a query of this module need not look at every key that it may attend to",
            lambda c: "local" not in c.promises,
        ),
        ContractFact("heads", "the module has no heads H", lambda c: "H" in c.sizes),
        ContractFact(
            "groups",
            "the constructor takes no number of key heads Hkv",
            lambda c: "Hkv" in c.sizes and "Hkv" in c.init.values(),
        ),
        ContractFact(
            "context",
            "the module takes no context with a length Sk of its own",
            lambda c: key_axis(c) == "Sk" and query_axis(c) in c.output,
        ),
        ContractFact(
            "packing",
            "several sequences in one row are not part of its contract",
            lambda c: _has_role(c, "segments"),
        ),
        ContractFact(
            "cache",
            "the module keeps no keys and values from one call to the next",
            lambda c: c.cache is not None and "S" in c.output,
        ),
        ContractFact(
            "beams", "the contract does not say how its cache is reordered", _can_reorder_cache
        ),
        # ------------------------------------------------------------ positions
        ContractFact(
            "position",
            "the module does not promise a positional encoding formula",
            _position(("sinusoidal", "rotary", "alibi"), grid=False),
        ),
        ContractFact(
            "table",
            "the module neither returns nor adds a row per position",
            _position(forms=("returned", "added")),
        ),
        ContractFact(
            "rotated",
            "the module does not rotate vectors by their positions",
            _position(forms=("rotated",)),
        ),
        ContractFact(
            "places",
            "the module gives positions neither rows nor angles of their own",
            _position(forms=("returned", "added", "rotated")),
        ),
        ContractFact(
            "bias", "the module does not add a bias to scores", _position(forms=("bias",))
        ),
        ContractFact(
            "monotone",
            "the module does not promise a bias that falls with distance",
            _position(("alibi",)),
        ),
        ContractFact(
            "bucketed", "the module does not put distances into buckets", _position(("t5",))
        ),
        ContractFact(
            "grid",
            "the positions of this module form no grid",
            lambda c: bool(c.position and c.position.grid),
        ),
        ContractFact(
            "long",
            "the module has no formula that holds for any number of positions",
            lambda c: _LONG(c) and "S" in c.vary,
        ),
        ContractFact(
            "beyond",
            "the contract does not say what happens beyond the longest sequence",
            lambda c: bool(c.position and c.position.beyond),
        ),
        # ------------------------------------------------------------ the module itself
        ContractFact(
            "dtypes", "the contract names no dtype besides float32", lambda c: bool(c.dtypes)
        ),
        ContractFact(
            "padding", "the contract names no padding token", lambda c: c.padding_idx is not None
        ),
        ContractFact("tied", "the contract names no tied parameters", lambda c: bool(c.tied)),
        ContractFact("forbidden", "the contract forbids no operation", lambda c: bool(c.forbidden)),
        ContractFact("buffers", "the contract names no buffers", lambda c: bool(c.buffers)),
    )
}
PROMISES = {name: fact for name, fact in FACTS.items() if fact.promise}
