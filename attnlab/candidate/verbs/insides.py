"""Verbs that tell what a module is made of, what happens inside it and what it leaves behind."""

import random
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor, nn

from attnlab.candidate.attention_internals import record_internals
from attnlab.candidate.input_copies import alias
from attnlab.candidate.process_state import SEED, set_seed
from attnlab.candidate.registry import verb
from attnlab.candidate.session import Session
from attnlab.tracer.cast import Given, fresh


@verb
def module_facts(session: Session) -> Any:
    """Names: what is trained, what is one and the same, what is saved, what is inside."""
    if not isinstance(session.target, nn.Module):
        kinds = "trained", "tied", "copies", "held", "buffers", "learning", "saved", "modules"
        return {kind: [] for kind in kinds}
    one: dict[int, list[str]] = defaultdict(list)
    shared: dict[int, list[str]] = defaultdict(list)
    for name, weight in session.target.named_parameters(remove_duplicate=False):
        one[id(weight)].append(name)
        if weight.numel() and name == one[id(weight)][0]:
            shared[weight.data_ptr()].append(name)
    learning = [n for n, b in session.target.named_buffers() if b.requires_grad]
    inside = {
        type(m).__name__
        for m in session.target.modules()
        if type(m).__module__.startswith("torch.nn.modules")
    }
    return {
        "trained": [n for n, w in session.target.named_parameters() if w.requires_grad],
        "tied": [names for names in one.values() if len(names) > 1],
        "copies": [names for names in shared.values() if len(names) > 1],
        "held": [n for n, _ in session.target.named_parameters(remove_duplicate=False)],
        "buffers": [n for n, _ in session.target.named_buffers(remove_duplicate=False)],
        "learning": learning,
        "saved": list(session.target.state_dict()),
        "modules": sorted(f"nn.{name}" for name in inside),
    }


@verb
def attention_internals(session: Session, inputs: Given) -> Any:
    """What softmax was given and what the values were mixed by."""
    session.set_mode(train=False)
    return record_internals(lambda: session.invoke(fresh(inputs)))


@verb
def inputs_after_call(session: Session, inputs: Given) -> Any:
    """The inputs as the module left them, the one its output lies in, whether that stays."""
    given = fresh(inputs)
    session.set_mode(train=False)
    with torch.no_grad():
        out = session.invoke(given)
        left = {n: t for n, t in given if t is not None}
        learns = next((n for n, t in left.items() if t.requires_grad), "")
        answer = {"tensors": left, "alias": alias(out, given), "learns": learns}
        return answer | {"overwritten": _overwritten(session, out, inputs)}


def _overwritten(session: Session, out: Any, inputs: Given) -> bool:
    """Whether a call with other inputs changes what this one returned."""
    if not isinstance(out, Tensor) or session.cache is not None:
        return False
    before = out.clone()
    other = [(n, t + 1 if t is not None and t.is_floating_point() else t) for n, t in inputs]
    session.invoke(fresh(other))
    return not torch.equal(before.nan_to_num(), out.nan_to_num())


@verb
def side_effects(session: Session, inputs: Given, seed: int, **recipe: Any) -> Any:
    """What loading, building and calling changed of what belongs to everybody."""
    grad, plain = torch.is_grad_enabled(), random.getstate()
    target = session.target
    random.seed(SEED)
    marked = random.getstate()
    try:
        session.build(seed=seed, **recipe)
        reseeded = ["the random seed was set while building"]
        found = reseeded if torch.initial_seed() != seed else []
        given = fresh(inputs)
        set_seed(SEED)
        before = torch.get_rng_state()
        session.invoke(given)  # bare: a no_grad around it would put the grad mode back
        drew = not torch.equal(torch.get_rng_state(), before)
        session.set_mode(train=True)
        session.invoke(fresh(inputs))
        found += ["Python's random numbers were changed"] * (random.getstate() != marked)
        found += [f"{n} requires a gradient now" for n, t in given if t is not None
                  and t.requires_grad]  # fmt: skip
        changes = session.surroundings.changes(session.reachable_names)
    finally:
        session.target = target
        torch.set_grad_enabled(grad)
        random.setstate(plain)
    if torch.initial_seed() != SEED:
        found = [*found, "the random seed was set by a call"]
    elif drew:
        found = [*found, "a call in eval mode drew random numbers"]
    return {"changes": [*found, *changes]}
