"""What the text of a file shows, whether those lines ran or not.

Each rule is sure of a pattern that is hardly ever meant; names are asked only where nothing else
tells inputs from labels.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from attnlab.files import PARSING
from attnlab.records.trace import Finding
from attnlab.target.argument_findings import (
    forgotten_arguments,
    kept_fills,
    keys_of_queries,
    open_memories,
    opposite_masks,
    unread_masks,
)
from attnlab.target.block_findings import RULES as BLOCK_RULES
from attnlab.target.bootstrap_findings import RULES as BOOTSTRAP_RULES
from attnlab.target.cache_findings import RULES as CACHE_RULES
from attnlab.target.convolution_findings import RULES as CONVOLUTION_RULES
from attnlab.target.data_findings import overlapping_windows, separate_shuffles
from attnlab.target.decay_findings import RULES as DECAY_RULES
from attnlab.target.forecast_findings import RULES as FORECAST_RULES
from attnlab.target.formula_findings import RULES as FORMULA_RULES
from attnlab.target.grid_findings import RULES as GRID_RULES
from attnlab.target.hidden_findings import RULES as HIDDEN_RULES
from attnlab.target.index_findings import RULES as INDEX_RULES
from attnlab.target.label_findings import RULES as LABEL_RULES
from attnlab.target.loss_findings import (
    blurred_labels,
    frozen_statistics,
    last_steps_of_two_ways,
    masked_labels,
    probability_arguments,
    turned_averages,
    turned_deviations,
    uneven_elbos,
)
from attnlab.target.lost_axis_findings import RULES as LOST_AXIS_RULES
from attnlab.target.merge_findings import RULES as MERGE_RULES
from attnlab.target.noise_findings import RULES as NOISE_RULES
from attnlab.target.normalisation_findings import RULES as NORMALISATION_RULES
from attnlab.target.objective_findings import RULES as OBJECTIVE_RULES
from attnlab.target.padding_findings import ends_of_left_padding, rows_before_left_padding
from attnlab.target.pair_findings import RULES as PAIR_RULES
from attnlab.target.polarity_findings import RULES as POLARITY_RULES
from attnlab.target.rate_findings import RULES as RATE_RULES
from attnlab.target.repetition_findings import RULES as REPETITION_RULES
from attnlab.target.return_findings import RULES as RETURN_RULES
from attnlab.target.role_findings import RULES as ROLE_RULES
from attnlab.target.rotary_findings import RULES as ROTARY_RULES
from attnlab.target.sampling_findings import RULES as SAMPLING_RULES
from attnlab.target.source_walk import Function, Told, called, line_of, scopes
from attnlab.target.split_findings import RULES as SPLIT_RULES
from attnlab.target.state_findings import RULES as STATE_RULES
from attnlab.target.streaming_findings import RULES as STREAMING_RULES
from attnlab.target.sum_findings import RULES as SUM_RULES
from attnlab.target.temperature_findings import RULES as TEMPERATURE_RULES
from attnlab.target.token_findings import ids_of_zero, ignored_ends, lost_ties, pooled_tokens
from attnlab.target.view_findings import RULES as VIEW_RULES
from attnlab.target.zero_findings import RULES as ZERO_RULES


def source_findings(text: str, file: str) -> Iterator[Finding]:
    """What all rules say of a source text."""
    try:
        with PARSING:
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return
    rules = (
        *LABEL_RULES,
        _splits,
        *SAMPLING_RULES,
        *FORMULA_RULES,
        probability_arguments,
        masked_labels,
        frozen_statistics,
        *(*VIEW_RULES, *MERGE_RULES, *GRID_RULES),
        uneven_elbos,
        turned_averages,
        turned_deviations,
        blurred_labels,
        last_steps_of_two_ways,
        ends_of_left_padding,
        rows_before_left_padding,
        _scalers,
        _modes,
        *CACHE_RULES,
        *CONVOLUTION_RULES,
        lost_ties,
        ids_of_zero,
        ignored_ends,
        pooled_tokens,
        forgotten_arguments,
        opposite_masks,
        kept_fills,
        unread_masks,
        open_memories,
        keys_of_queries,
        *REPETITION_RULES,
        position_norms,
        overlapping_windows,
        separate_shuffles,
        *BLOCK_RULES,
        *INDEX_RULES,
        *POLARITY_RULES,
        *RATE_RULES,
        *RETURN_RULES,
        *BOOTSTRAP_RULES,
        *DECAY_RULES,
        *STREAMING_RULES,
        *(*ROTARY_RULES, *ROLE_RULES, *LOST_AXIS_RULES),
        *SUM_RULES,
        *PAIR_RULES,
        *SPLIT_RULES,
        *ZERO_RULES,
        *FORECAST_RULES,
        *STATE_RULES,
        *HIDDEN_RULES,
        *NOISE_RULES,
        *NORMALISATION_RULES,
        *OBJECTIVE_RULES,
        *TEMPERATURE_RULES,
    )
    known: set[tuple[str, int]] = set()
    lines = text.splitlines()
    for rule in rules:
        for told in rule(tree):
            if (told.rule, told.line) in known or _is_meant(told, lines):
                continue
            known.add((told.rule, told.line))
            yield Finding(
                rule=told.rule,
                file=file,
                line=told.line,
                op="",
                severity="warning",
                message=told.message,
            )


SHARED = re.compile(r"#.*(shar|same (object|layer|weights|module)|tied|without (more|extra) param)")


def _is_meant(told: Told, lines: list[str]) -> bool:
    """Whether a comment beside it says that layers share their weights."""
    near = lines[max(told.line - 3, 0) : told.line + 1]
    return told.rule == "layer-shared" and any(map(SHARED.search, near))


def _splits(tree: ast.Module) -> Iterator[Told]:
    """Held-out data that is cut from what is trained on."""
    for _, nodes in scopes(tree):
        cuts: dict[str, tuple[str, str, int]] = {}  # name: whole, slice, line
        for node in nodes:
            if not isinstance(node, ast.Assign) or len(node.targets) != 1:
                continue
            target = node.targets[0]
            if not isinstance(target, ast.Name):
                continue
            value = node.value
            if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
                cuts[target.id] = (ast.unparse(value.value), ast.unparse(value.slice), node.lineno)
            elif isinstance(value, ast.Name):
                cuts[target.id] = (value.id, ":", node.lineno)
        held = {n: c for n, c in cuts.items() if re.search(r"val|test|held|dev", n, re.IGNORECASE)}
        train = {
            n: c for n, c in cuts.items() if re.search(r"train", n, re.IGNORECASE) and n not in held
        }
        for name, (whole, part, line) in held.items():
            for other, (their_whole, their_part, _) in train.items():
                same_end = part[:1] == ":" and their_part[:1] == ":"
                if whole == their_whole and (same_end or ":" in (part, their_part)):
                    yield Told(
                        line,
                        "rows-shared",
                        f"{name} = {whole}[{part}] and {other} = {whole}[{their_part}] overlap: "
                        "what is validated on was trained on",
                    )


def _scalers(tree: ast.Module) -> Iterator[Told]:
    """Clipping of gradients that are still scaled."""
    for _, nodes in scopes(tree):
        calls = [(n.lineno, called(n), ast.unparse(n)) for n in nodes if isinstance(n, ast.Call)]
        names = [name for _, name, _ in calls]
        scales = any(re.search(r"scaler\.scale\(", text) for _, _, text in calls)
        clips = [line for line, name, _ in calls if name.startswith("clip_grad")]
        if scales and clips and "unscale_" not in names:
            yield Told(
                clips[0],
                "clip-scaled",
                "gradients are clipped while they are scaled by the GradScaler: call "
                "scaler.unscale_(optimizer) first",
            )
        steps = [line for line, _, text in calls if re.match(r"scaler\.step\(", text)]
        if steps and "update" not in names:
            yield Told(
                steps[0],
                "clip-scaled",
                "scaler.step() without scaler.update(): the scale never adapts",
            )


def _modes(tree: ast.Module) -> Iterator[Told]:
    """A model with dropout that is evaluated, in a script that never calls eval()."""
    calls = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    names = {called(n) for n in calls}
    drops = any(
        called(n) in ("Dropout", "BatchNorm1d", "BatchNorm2d", "dropout") and _rate(n) > 0
        for n in calls
    )
    if not drops or "eval" in names:
        return
    for node in calls:
        if called(node) == "train" and node.args:
            return  # model.train(False)
    for scope, nodes in scopes(tree):
        if not isinstance(scope, Function) or "no_grad" not in ast.dump(scope):
            continue
        if "backward" not in names and [a.arg for a in scope.args.args[:1]] == ["self"]:
            continue  # of a model that others train and evaluate
        first = next((n for n in nodes if isinstance(n, ast.Call)), scope)
        if called(first) == "train":  # as Monte Carlo dropout asks for it
            continue
        if re.match(r"eval|valid|test|generate|sample|predict|accuracy", scope.name):
            yield Told(
                scope.lineno,
                "train-while-evaluating",
                f"{scope.name} runs the model in train mode, as nothing calls model.eval(): "
                "dropout and batch statistics stay on while it is evaluated",
            )
            return


def _rate(node: ast.Call) -> float:
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "p")]
    numbers = [a.value for a in given if isinstance(a, ast.Constant)]
    first = numbers[0] if numbers else 0.5
    return float(first) if isinstance(first, (int, float)) else 0.5


STATISTICS = {"mean", "var", "std", "var_mean"}


def position_norms(tree: ast.Module) -> Iterator[Told]:
    """A layer norm of one's own whose mean runs over another axis than the features: whether those
    are positions, a trace says."""
    for scope, nodes in scopes(tree):
        name = getattr(scope, "name", "")
        if not re.fullmatch(
            r"_?(layer_?norm\w*|rms_?norm\w*|ln\w*|normali[sz]e|norm)", name, re.IGNORECASE
        ):
            continue
        asked = [a.arg for a in scope.args.args] if isinstance(scope, Function) else []
        learned = re.search(
            r"\* \(?(1(\.0)? \+ )?(g|gamma|w|weight|gain|scale)\b", ast.unparse(scope)
        )
        for node in nodes if learned and len(asked) > 1 else ():
            axes = [k.value for k in getattr(node, "keywords", ()) if k.arg == "dim"]
            axes += getattr(node, "args", [])[:1]
            if called(node) in STATISTICS and axes and ast.unparse(axes[0]) in ("0", "1", "-2"):
                yield Told(
                    line_of(node),
                    "norm-axis",
                    f"{name} takes {ast.unparse(node)} over the positions: each then depends on "
                    "all others, later ones as well, and features keep their spread. A layer norm "
                    "runs over the last axis, dim=-1",
                )
                break
