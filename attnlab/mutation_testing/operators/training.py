"""Training: the loss, the optimizer, and the order of a step."""

import ast

from attnlab.mutation_testing.operators.base import Edits, Source, called_name, is_method, subject
from attnlab.mutation_testing.training_code import loop_around, move_to_other_loops, training_steps

OPTIMIZERS = ("AdamW", "Adam", "SGD", "NAdam")
OPTIONS = ("maximize=True", "betas=(0.9, 0.99)", "betas=(0.5, 0.999)", "eps=1e-3", "amsgrad=True")
LOSSES = ("cross_entropy", "nll_loss", "mse_loss", "binary_cross_entropy_with_logits")
MODES = {"train": "eval", "eval": "train"}
USUAL = {"betas": "(0.9, 0.999)", "lr": "1e-3", "weight_decay": "0.01", "eps": "1e-8"}


def another_ignored_target(source: Source) -> Edits:
    """Another target is ignored than the one that marks padding."""
    for call in source.calls():
        for keyword in call.keywords:
            if keyword.arg == "ignore_index":
                yield from source.put_each(keyword.value, ("0", "1", "-1", "-100"))


def another_optimizer(source: Source) -> Edits:
    """Another optimizer, or one that climbs."""
    for call in source.calls(*OPTIMIZERS):
        for name in OPTIMIZERS[:3]:
            if name != called_name(call):
                yield source.rename(call.func, name)
        given = {keyword.arg for keyword in call.keywords}
        for option in OPTIONS:
            if option.partition("=")[0] not in given and (call.args or call.keywords):
                last = [*call.args, *call.keywords][-1]
                yield source.put(last, f"{source.text_of(last)}, {option}")


def backward_twice(source: Source) -> Edits:
    """The backward pass runs twice, so that every gradient is doubled."""
    for step in training_steps(source):
        text = source.text_of(step.backward)
        if text.endswith(".backward()"):
            yield source.insert(step.backward, f"{text[:-1]}retain_graph=True)")


def clipped_in_another_way(source: Source) -> Edits:
    """Each gradient is clipped alone, by its values or its norm, and no longer all together."""
    for call in source.calls("clip_grad_norm_"):
        yield source.rename(call.func, "clip_grad_value_")
        if len(call.args) > 1:
            function, parameters = source.text_of(call.func), source.text_of(call.args[0])
            rest = ", ".join(source.text_of(a) for a in (*call.args[1:], *call.keywords))
            if isinstance(source.parents[call], ast.Expr):
                yield source.put(call, f"[{function}(p, {rest}) for p in {parameters}]")


def clipping_out_of_place(source: Source) -> Edits:
    """Gradients are clipped before they are there, after their use, or for every micro-batch."""
    for step in training_steps(source):
        if step.clip is None:
            continue
        yield source.move(step.clip, step.backward)
        if step.update is not None:
            yield source.move(step.clip, step.update, after=True)
        if loop_around(source, step.clip) is not loop_around(source, step.backward):
            yield source.move(step.clip, step.backward, after=True)


def gradients_cleared_in_another_loop(source: Source) -> Edits:
    """Gradients are cleared once before the loop, or for every micro-batch."""
    for step in training_steps(source):
        if step.clear is None:
            continue
        outer, inner = loop_around(source, step.clear), loop_around(source, step.backward)
        if outer is not None:
            yield source.move(step.clear, outer)
        if inner is not outer:
            yield source.move(step.clear, step.backward)


def gradients_cleared_too_late(source: Source) -> Edits:
    """Gradients are cleared between the backward pass and the update, which then has none."""
    for step in training_steps(source):
        if step.clear is not None:
            yield source.move(step.clear, step.backward, after=True)
            if step.update is not None:
                yield source.move(step.clear, step.update)


def logits_across_axes(source: Source) -> Edits:
    """Logits are laid out across their axes for the loss: rows mix classes and positions."""
    for call in source.calls("cross_entropy"):
        for value in call.args[:2]:
            if isinstance(value, ast.Call) and called_name(value) in ("reshape", "view", "flatten"):
                inner = subject(value)
                if inner is not None:
                    for text in (f"{source.atom(inner)}.mT", f"{source.atom(inner)}.flip(0)"):
                        yield source.put(inner, text)


def loss_reduction(source: Source) -> Edits:
    """The loss is a sum in place of a mean, or the reverse; or its targets are smoothed."""
    for call in source.calls(*LOSSES):
        given = {keyword.arg: keyword.value for keyword in call.keywords}
        for name, values in (("reduction", ("sum", "mean")), ("label_smoothing", (0.1,))):
            if name in given:
                yield from source.put_each(given[name], map(repr, values))
            else:
                arguments = ", ".join(map(source.text_of, (*call.args, *call.keywords)))
                yield source.put(
                    call, f"{source.text_of(call.func)}({arguments}, {name}={values[0]!r})"
                )


def mode_exchanged(source: Source) -> Edits:
    """Train mode in place of eval mode, or the reverse."""
    for call in source.calls(*MODES):
        if isinstance(call.func, ast.Attribute) and is_method(call) and not call.args:
            yield source.rename(call.func, MODES[call.func.attr])


def mode_set_once(source: Source) -> Edits:
    """Train mode is set once before the loop, and an evaluation inside it switches it off."""
    for call in source.calls("train", "eval"):
        statement = source.parents[call]
        loop = loop_around(source, statement)
        if isinstance(statement, ast.Expr) and loop is not None:
            yield source.move(statement, loop)
            yield source.move(statement, loop, after=True)


def options_by_default(source: Source) -> Edits:
    """An option of the optimizer has the value that most people use."""
    for call in source.calls("AdamW", "Adam", "SGD"):
        for keyword in call.keywords:
            if keyword.arg in USUAL:
                yield source.put(keyword.value, USUAL[keyword.arg])


def parameter_groups(source: Source) -> Edits:
    """Groups of parameters exchange their options, or a group is left out of the optimizer."""
    for groups in source.of_type(ast.List):
        options = [_options(group) for group in groups.elts]
        if len(options) < 2 or not all("params" in option for option in options):
            continue
        one, other = options[:2]
        for name in one.keys() & other.keys():
            yield source.swap(one[name], other[name])
            yield source.put(one[name], source.text_of(other[name]))
            yield source.put(other[name], source.text_of(one[name]))
        for gone in groups.elts:
            rest = ", ".join(source.text_of(group) for group in groups.elts if group is not gone)
            yield source.put(groups, f"[{rest}]")


def _options(group: ast.expr) -> dict[str, ast.expr]:
    if not isinstance(group, ast.Dict):
        return {}
    pairs = zip(group.keys, group.values, strict=True)
    return {str(key.value): value for key, value in pairs if isinstance(key, ast.Constant)}


def probabilities_before_the_loss(source: Source) -> Edits:
    """The loss gets probabilities or their logarithms in place of logits."""
    for _, logits in source.calls_on("cross_entropy"):
        for function in ("softmax(-1)", "log_softmax(-1)", "softmax(0)", "argmax(-1).float()"):
            yield source.put(logits, f"({source.text_of(logits)}).{function}")


def rate_scaled(source: Source) -> Edits:
    """The learning rate is ten times too large or too small."""
    for call in source.calls():
        for keyword in call.keywords:
            if keyword.arg in ("lr", "max_lr", "learning_rate"):
                text = source.atom(keyword.value)
                yield from source.put_each(keyword.value, (f"{text} * 10", f"{text} / 10"))


def schedule_out_of_place(source: Source) -> Edits:
    """The rate is scheduled before the update, for every micro-batch, or once after the loop."""
    for step in training_steps(source):
        if step.schedule is None:
            continue
        if step.update is not None:
            yield source.move(step.schedule, step.update)
        yield from move_to_other_loops(source, step, step.schedule)


def update_out_of_place(source: Source) -> Edits:
    """The optimizer steps before the backward pass, for each micro-batch, or after the loop."""
    for step in training_steps(source):
        if step.update is None:
            continue
        yield source.move(step.update, step.backward)
        yield from move_to_other_loops(source, step, step.update)
