"""The line at which a finding is told: where a reader would mend it, not where it shows."""

from __future__ import annotations

import ast
import re
from dataclasses import replace

from attnlab.records import Finding, Job, Report, Trace, TrainingReport
from attnlab.target.source import parse
from attnlab.target.source_findings import STATISTICS, source_findings
from attnlab.target.source_walk import called, line_of


def add_source_findings(report: Report, job: Job) -> Report:
    """The report with what the text of the target's file shows."""
    told = source_findings(job.candidate.text, job.candidate.file)
    fresh = tuple(f for f in told if f.rule != "norm-axis" or _over_positions(f, report))
    if fresh and report.trace is None and report.training is None:  # nothing ran
        if "training" in job.stages:
            report = replace(report, training=TrainingReport(steps=0))
        else:
            report = replace(report, trace=Trace())
    if report.trace is not None:
        findings = tuple(_where_given(_where_made(f, job), job) for f in report.trace.findings)
        report = replace(report, trace=_with_merges(replace(report.trace, findings=findings)))
    report = _with_meant_dropout(report, job.candidate.text)
    if report.training is not None:
        found = (_where_squashed(_where_criterion(f, job), job) for f in report.training.findings)
        found = (_where_replaced(_where_cut(f, job), job) for f in found)
        found = (_where_called(f, job) for f in found)
        watched = tuple(_where_switched(f, job) for f in found)
        if any(f.rule == "evaluation-learns" for f in fresh):  # of which that is a trace
            watched = tuple(f for f in watched if f.rule != "eval-while-training")
        seen = {f.rule for f in watched if f.file == job.candidate.file}
        more = [f for f in fresh if f.rule not in seen]  # one bug, and the watch has its numbers
        trace = report.training.trace and _with_merges(report.training.trace)
        trained = replace(report.training, trace=trace, findings=(*watched, *more))
        return replace(report, training=trained)
    if fresh and report.trace is not None:
        known = {(f.rule, f.line) for f in report.trace.findings}
        more = [f for f in fresh if (f.rule, f.line) not in known]
        return replace(
            report, trace=replace(report.trace, findings=(*report.trace.findings, *more))
        )
    return report


MEANT = re.compile(  # dropout that is not switched off
    r"monte.?carlo.{0,9}drop|\bmc.?drop|always.?drop|drop\w* (here )?(stays?|is kept|keeps?) on\b"
    r"(?!.{0,20}train)|"
    r"stays? on at (prediction|inference|test|synthesis|generation)|Gal (&|and) Ghahramani",
    re.IGNORECASE,
)


def _with_meant_dropout(report: Report, text: str) -> Report:
    """The report without dropout in eval mode, where the text says that it is meant."""
    if report.trace is None or not MEANT.search(text):
        return report
    meant = ("dropout-in-evaluation",)
    findings = tuple(f for f in report.trace.findings if f.rule not in meant)
    why = "dropout stays on in eval mode, as the text says"
    checks = tuple(
        replace(c, outcome="skipped", message=why) if c.id == "deterministic-eval" else c
        for c in report.checks
    )
    return replace(report, trace=replace(report.trace, findings=findings), checks=checks)


def _over_positions(finding: Finding, report: Report) -> bool:
    """Whether the statistics at the line of a finding leave the width of (B, S, D) as it is."""
    traces = (report.trace, report.training.trace if report.training else None)
    ops = [op for trace in traces if trace for op in trace.ops if op.line == finding.line]
    kept = [op.shape for op in ops if op.op in STATISTICS]
    return any(len(shape) == 3 and shape[1] == 1 < shape[2] for shape in kept)


def _where_made(finding: Finding, job: Job) -> Finding:
    """A finding about a factor at the line that assigns it, where its own line has `* self.X`."""
    lines = job.candidate.text.splitlines()
    if finding.rule != "scale" or finding.file != job.candidate.file:
        return finding
    names = set(re.findall(r"[*/]=? *self\.(\w+)", lines[finding.line - 1]))
    found = [i for i, line in enumerate(lines, 1) for n in names if f"self.{n} = " in line]
    return replace(finding, line=found[0]) if len(found) == 1 else finding


def _with_merges(trace: Trace) -> Trace:
    return replace(trace, findings=tuple(_where_merged(f, trace) for f in trace.findings))


def _where_merged(finding: Finding, trace: Trace) -> Finding:
    """That merged axes meet in another order, at the one line before that merges both."""
    axes = re.search(r"axis (\S+) with axis (\S+):", finding.message)
    if finding.rule != "axes-order" or finding.index is None or axes is None:
        return finding
    todo, before = [finding.index], set[int]()
    while todo:
        before.add(row := todo.pop())
        todo += [p for p in trace.ops[row].parents if p >= 0 and p not in before]
    having = [{i for i in before if axis in trace.ops[i].axes} for axis in axes.groups()]
    fresh = [[i for i in rows if rows.isdisjoint(trace.ops[i].parents)] for rows in having]
    one, other = (trace.ops[max(rows, default=finding.index)] for rows in fresh)
    if (one.file, one.line) != (other.file, other.line) or one.line == finding.line:
        return finding
    says = f"{finding.message} (they meet at line {finding.line}, and are both merged here)"
    return replace(finding, file=one.file, line=one.line, op=one.op, index=one.index, message=says)


def _where_criterion(finding: Finding, job: Job) -> Finding:
    """That padding counts, at the one line that makes the loss: there it is told what to ignore."""
    if finding.rule != "padding-counted" or finding.file != job.candidate.file:
        return finding
    lines = job.candidate.text.splitlines()
    made_by = r"(CrossEntropy|NLL)Loss\("
    if "target_lengths" in finding.message:
        made_by = r"\w*len\w* *= *(torch\.full|\w+\.new_full)"
    made = [i for i, line in enumerate(lines, 1) if re.search(made_by, line)]
    called = re.search(r"cross_entropy\(|nll_loss\(", lines[finding.line - 1])
    if len(made) != 1 or called or made[0] == finding.line:
        return finding
    says = f"{finding.message} (it is computed at line {finding.line}, and made here)"
    return replace(finding, line=made[0], message=says)


def _where_squashed(finding: Finding, job: Job) -> Finding:
    """That probabilities go into a loss, at the one line of the file that makes them."""
    if finding.rule != "probabilities-into-loss" or finding.file != job.candidate.file:
        return finding
    sigmoid = "sigmoid" in finding.message
    made = r"(?<!log_)(?<!log)sigmoid\(" if sigmoid else r"(?<!log_)(?<!log)softmax\("
    lines = enumerate(job.candidate.text.splitlines(), 1)
    found = [i for i, line in lines if re.search(made, line.partition("#")[0], re.IGNORECASE)]
    if len(found) != 1 or found[0] == finding.line:
        return finding
    says = f"{finding.message} (the loss is at line {finding.line}; they are made here)"
    return replace(finding, line=found[0], message=says)


def _where_cut(finding: Finding, job: Job) -> Finding:
    """That parameters get no gradient, at the method without gradients that calls their part, or
    at a checkpoint that cuts the graph where its inputs need none."""
    if finding.rule != "no-gradient" or finding.file != job.candidate.file:
        return finding
    lines = job.candidate.text.splitlines()
    parts = set(re.findall(r"\b([a-zA-Z_]\w*)\.\w", finding.message.partition(":")[0]))
    marks = [i for i, line in enumerate(lines, 1) if re.match(r"\s*@(torch\.)?no_grad\(\)", line)]
    for mark in marks:
        body = "\n".join(lines[mark : mark + 6])
        if any(f"self.{part}(" in body for part in parts) and "return" in body:
            says = f"{finding.message} (this method, which training calls, records no gradients)"
            return replace(finding, line=mark, message=says)
    reentrant = [i for i, line in enumerate(lines, 1) if "use_reentrant=True" in line]
    if reentrant and "requires_grad" in job.candidate.text:
        says = (
            f"{finding.message} (a reentrant checkpoint gives its blocks gradients only where an "
            "input needs one: use_reentrant=False)"
        )
        return replace(finding, rule="gradient-cut", line=reentrant[0], message=says)
    return finding


def _where_replaced(finding: Finding, job: Job) -> Finding:
    """That a layer is in no optimizer, at the one line that puts it in another's place."""
    if finding.rule != "not-in-optimizer" or finding.file != job.candidate.file:
        return finding
    names = {w.strip().partition(".")[0] for w in finding.message.partition(":")[0].split(",")}
    tree = parse(job.candidate.text, job.candidate.file)
    found = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(target := node.targets[0], ast.Attribute)
        and target.attr in names
        and ast.unparse(target.value) != "self"
    ]
    same = bool(found) and _around(tree, found[0])[-1:] == _around(tree, finding.line)[-1:]
    if same and found[0] < finding.line:
        return finding
    if len(found) == 1 and not same:  # in a function: where that is called
        makers = [f.name for f in _around(tree, found[0])]
        calls = [n for n in ast.walk(tree) if makers and called(n) == makers[-1]]
        found = [line_of(calls[0])] if len(calls) == 1 else found
    if len(found) != 1 or found[0] == finding.line:
        return finding
    says = (
        f"{finding.message} (this line makes it, when the optimizer of line {finding.line} is "
        "already there: build the optimizer after it)"
    )
    return replace(finding, line=found[0], message=says)


def _around(tree: ast.Module, line: int) -> list[ast.FunctionDef]:
    """The functions that a line belongs to, the innermost last."""
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    return [f for f in functions if f.lineno <= line <= (f.end_lineno or 0)]


def _where_called(finding: Finding, job: Job) -> Finding:
    """That an optimizer is made again, at the one loop that calls the function which makes it."""
    if finding.rule != "optimizer-made-again" or finding.file != job.candidate.file:
        return finding
    tree = parse(job.candidate.text, job.candidate.file)
    makers = _around(tree, finding.line)
    loops = [n for n in ast.walk(tree) if isinstance(n, ast.For | ast.While)]
    if not makers or any(loop.lineno <= finding.line <= (loop.end_lineno or 0) for loop in loops):
        return finding
    name = makers[-1].name
    calls = {
        node.lineno
        for loop in loops
        for node in ast.walk(loop)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
    }
    if len(calls) != 1:
        return finding
    says = f"{finding.message} (line {finding.line} makes it, and this loop calls that)"
    return replace(finding, line=calls.pop(), message=says)


def _where_given(finding: Finding, job: Job) -> Finding:
    """A dropout in eval mode at the line of the argument, where a call has several lines."""
    if finding.rule != "dropout-in-evaluation" or finding.file != job.candidate.file:
        return finding
    lines = job.candidate.text.splitlines()
    for number in range(finding.line, min(finding.line + 9, len(lines)) + 1):
        line = lines[number - 1]
        if number > finding.line and re.match(r"\s*(dropout_p|training|p)=", line):
            return replace(finding, line=number)
        if line.rstrip().endswith(")") and line.count("(") < line.count(")"):
            break
    return finding


def _where_switched(finding: Finding, job: Job) -> Finding:
    """That a model learns in eval mode, at the one line of the file that switches it there."""
    told = finding.rule == "eval-while-training" and " learned " in finding.message
    if not told or finding.file != job.candidate.file:  # an evaluation is told at its function
        return finding
    lines = job.candidate.text.splitlines()
    found, back = (
        [n for n, line in enumerate(lines, 1) if mode in line.partition("#")[0]]
        for mode in (".eval()", ".train()")
    )
    if len(found) != 1 or found[0] == finding.line:
        return finding
    if len(back) == 1 and _loops_between(lines, back[0], finding.line):
        tree = parse(job.candidate.text, job.candidate.file)
        away = _around(tree, found[0])[-1:]
        if away and away != _around(tree, back[0])[-1:]:  # a function of its own, as an evaluation
            says = f"{away[0].name} goes to eval mode here and not back, and train() at line"
            says = f"{finding.message} ({says} {back[0]} stands before the loop)"
            return replace(finding, line=found[0], message=says)
        says = f"line {found[0]} goes to eval mode, and train() stands here, before the loop"
        return replace(finding, line=back[0], message=f"{finding.message} ({says})")
    says = f"{finding.message} (it learns at line {finding.line}, and is switched here)"
    return replace(finding, line=found[0], message=says)


def _loops_between(lines: list[str], first: int, last: int) -> bool:
    """Whether a loop begins after one line, at its depth, and before the other."""
    depth = len(lines[first - 1]) - len(lines[first - 1].lstrip())
    begins = rf" {{{depth}}}(for|while)\b"
    return any(re.match(begins, line) for line in lines[first : last - 1])
