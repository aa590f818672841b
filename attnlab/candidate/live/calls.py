"""Properties of calls: finite, equal, without a trace of the call before, alike in both modes."""

import inspect
import re

import torch
from torch import Tensor, nn

from attnlab.candidate.live.batch import CannotTry
from attnlab.candidate.live.bench import Bench, Broken, NotApplicable, differs, largest_gap, like
from attnlab.candidate.live.kept_state import find_kept

STATE = re.compile(
    r"cache|past|state|step|memory|running|count|ema|avg|buffer|queue|bank|ptr|pointer|centroid|"
    r"codebook|cluster|usage"
)
# Operations that draw random numbers; what drops in eval mode is none of them.
DRAWS = {
    *("rand", "randn", "rand_like", "randn_like", "randint", "randperm", "normal", "normal_"),
    *("uniform_", "bernoulli", "bernoulli_", "multinomial", "exponential_", "gumbel_softmax"),
}

DROPS = {"dropout", "alpha_dropout", "scaled_dot_product_attention"}  # nothing in eval mode


def finite(bench: Bench) -> None:
    for name, out in bench.before.tensors.items():
        bad = ~out.isfinite()
        masked = bool(out[bad].isinf().all()) and bool((out[bad] < 0).all())  # logits that are out
        if bad.any() and not masked:
            where = bad.nonzero()[0].tolist()
            raise Broken(
                f"{int(bad.sum())} of {out.numel()} values of {name} are NaN or infinite, "
                f"first at {where}"
            )


def deterministic(bench: Bench) -> None:
    torch.manual_seed(1)
    one, other = (bench.live.call({}, seed=None) for _ in range(2))
    for name, out in one.tensors.items():
        if not bench.moved(out, like(out, other.tensors.get(name))).any():
            continue
        first = next(
            (p for p in bench.compare({}, None) if bench.moved(p.before, p.after).any()), None
        )
        bench.random = True
        drops = first is not None and first.op in DROPS
        if first is None or first.op in DRAWS or (not drops and _draws_itself(bench.live.model)):
            raise NotApplicable(f"it draws random numbers on purpose ({first and first.place})")
        gap = largest_gap(out, other.tensors.get(name))
        raise Broken(
            f"two equal calls in eval mode gave {name} that differ by up to {gap:.2g}", first.place
        )


def _draws_itself(model: nn.Module) -> bool:
    """Whether the source of a class draws numbers, by Python's own dice or a distribution."""
    for kind in {type(module) for module in model.modules()}:
        try:
            text = inspect.getsource(kind)
        except (OSError, TypeError):
            continue
        own = not kind.__module__.startswith("torch.")
        if own and re.search(r"\brandom\.|\.sample\(|distributions|\.rand(n|int|perm)?\(", text):
            return True
    return False


def second_call(bench: Bench) -> None:
    """A call gives the same after one with other inputs as it gives at first."""
    layout, live = bench.layout, bench.live
    if not layout.data:
        raise NotApplicable("no input has samples that could be changed")
    others = layout.change_samples(*range(layout.samples))
    live.forget()
    first = live.call(others)
    live.forget()
    state = {n: b.clone() for n, b in live.model.named_buffers()}
    live.call({})
    after = live.call(others)
    kept = [n for n, b in live.model.named_buffers() if differs(state.get(n), b)]
    live.forget()
    for name, out in first.tensors.items():
        gap = largest_gap(out, after.tensors.get(name))
        if not gap <= live.tolerance(out):
            if any(STATE.search(n) for n in kept):
                raise NotApplicable(f"it keeps state from call to call: {', '.join(kept[:2])}")
            told = f"{name} differs by up to {gap:.2g} once a call with other inputs came before"
            found = find_kept(bench, others, first)
            live.forget()
            if found is None:
                raise Broken(told)
            attribute, place = found
            raise Broken(
                f"{told}: this line keeps {attribute}, and with that put back they are equal",
                place,
            )


def inputs_unchanged(bench: Bench) -> None:
    live = bench.live
    given: list[tuple[Tensor, Tensor]] = []

    def note(_: nn.Module, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        held = [t for t in (*args, *kwargs.values()) if isinstance(t, Tensor)]
        given.extend((t, t.clone()) for t in held)

    hook = live.model.register_forward_pre_hook(note, with_kwargs=True)
    try:
        live.call({})
    finally:
        hook.remove()
    for now, was in given:
        if not torch.equal(torch.nan_to_num(now), torch.nan_to_num(was)):
            raise Broken(f"forward wrote into an argument of shape {tuple(was.shape)}")


def train_mode(bench: Bench) -> None:
    live = bench.live
    before = {n: b.clone() for n, b in live.model.named_buffers()}
    one, other = (live.call({}, train=True, seed=seed) for seed in (1, 2))
    changed = [n for n, b in live.model.named_buffers() if differs(before.get(n), b)]
    with torch.no_grad():
        for name, buffer in live.model.named_buffers():
            if name in changed:
                buffer.copy_(before[name])
    live.model.eval()
    name, out = next(iter(bench.before.tensors.items()), ("", Tensor()))
    mine = one.tensors.get(name)
    if mine is None or mine.shape != out.shape:
        raise CannotTry("in train mode it returns something else")
    norms = [m for m in live.model.modules() if isinstance(m, nn.modules.batchnorm._NormBase)]
    random = bench.moved(mine, like(mine, other.tensors.get(name))).any()
    if not random and not changed and not norms and bench.moved(out, mine).any():
        gap = largest_gap(out, mine)
        raise Broken(
            f"train and eval mode differ by up to {gap:.2g}, and neither dropout nor "
            "batch norm explains it"
        )
