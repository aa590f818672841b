"""Grading whole programs: never by where or how a bug was fixed."""

from dataclasses import replace

import pytest

from attnlab.catalogue.load import shipped_folder
from attnlab.catalogue.patches import apply_edits
from attnlab.catalogue.programs import compose, read_program
from attnlab.grading.program import unit_outcome
from attnlab.records import CheckResult, Limits, Report
from attnlab.records.program import ProgramJob

PROGRAM = read_program(shipped_folder() / "programs" / "char-gpt")
FILES = PROGRAM.files


@pytest.fixture
def grade(worker):
    def run(files=FILES, *stages, bugs=(), seconds=60.0, **more):
        limits = Limits(seconds=seconds)
        job = ProgramJob(
            program=PROGRAM, files=files, label="char-gpt", stages=stages or ("grade",),
            bugs=bugs, limits=limits, **more,
        )  # fmt: skip
        return worker.run_program(job)

    return run


def changed(file, old, new):
    """The right files with one text replaced."""
    assert FILES[file].count(old) == 1, f"{old} stands {FILES[file].count(old)} times"
    return FILES | {file: FILES[file].replace(old, new)}


def wrong(report):
    return {part.id for part in report.parts if part.outcome == "failed"}


def test_the_right_program_passes_and_reaches_its_goals(grade):
    """Every part is right and every goal reached, in the steps that the program takes."""
    report = grade(FILES, "grade", "goals", bugs=PROGRAM.chosen)
    assert report.outcome == "passed", report.message
    assert {part.outcome for part in report.parts} == {"passed"}
    assert [goal.outcome for goal in report.goals] == ["passed"] * len(PROGRAM.goals)
    assert all(bug.fixed for bug in report.bugs)


@pytest.mark.parametrize("bug", PROGRAM.bugs[::4], ids=lambda bug: bug.id)
def test_each_bug_is_seen_by_the_parts_that_it_names(bug, grade):
    """A bug alone is rejected, and by what it claims; `attnlab check` looks at all of them."""
    report = grade(compose(PROGRAM, [bug.id]))
    assert report.outcome in ("failed", "crashed")
    assert set(bug.seen_by) <= wrong(report)


@pytest.mark.parametrize("decoy", PROGRAM.decoys[:1], ids=lambda decoy: decoy.id)
def test_a_decoy_passes(decoy, grade):
    """What looks wrong and is right is right."""
    assert grade(compose(PROGRAM, [decoy.id])).outcome == "passed"


FUSED = """rate = self.drop.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=rate)
        mixed = mixed"""
FIXES = {
    "zeroing after the step": [("train.py", "        optimizer.zero_grad()\n", ""),
                               ("train.py", "        optimizer.step()\n",
                                "        optimizer.step()\n        optimizer.zero_grad()\n")],
    "the shift in the loss": [
        ("train.py", "inputs, targets = ids[:, :-1], ids[:, 1:]\n    return inputs, targets",
         "inputs, targets = ids[:, :-1], ids[:, 1:].clone()\n    return inputs, targets")],
    "scores in float32": [("model.py", "scores.softmax(dim=-1)",
                           "scores.float().softmax(dim=-1).to(scores.dtype)")],
    "the fused attention": [("model.py", "mixed = (weights @ v)", FUSED)],
    "renamed parameters": [
        ("model.py", "self.tokens = nn", "self.wte = nn"),
        ("model.py", "self.tokens(ids)", "self.wte(ids)"),
        ("model.py", "self.up = nn", "self.fc = nn"), ("model.py", "self.up(x)", "self.fc(x)"),
    ],
    "logits in float32": [
        ("model.py", "self.head(self.norm(x))", "self.head(self.norm(x)).float()")],
    "small biases at first": [("model.py", "nn.init.zeros_(module.bias)", "pass")],
    "other first weights of the same size": [
        ("model.py", "nn.init.normal_(module.weight, std=0.02)",
         "nn.init.uniform_(module.weight, -0.0346, 0.0346)")],
    "a class of the loop's own": [
        ("train.py", "def compute_loss(", "class Meter:\n    total = 0.0\n\n\ndef compute_loss(")],
}  # fmt: skip


UNSEEN = {
    "a dropout is missing": ("model.py", "weights = self.drop(scores.softmax(dim=-1))",
                             "weights = scores.softmax(dim=-1)", "loss of step 1"),
    "another rate": ("train.py", "dropout=0.05", "dropout=0.1", "loss of step 1"),
    "dropout of the tokens alone": (
        "model.py", "self.drop(self.tokens(ids) + self.positions(places))",
        "self.drop(self.tokens(ids)) + self.positions(places)", "loss of step 1"),
    "first weights too large": ("model.py", "std=0.02", "std=0.5", "starts with values of size"),
    "biases that start at 1": ("model.py", "nn.init.zeros_(module.bias)",
                               "nn.init.ones_(module.bias)", "starts with values of size"),
    "gradients doubled, then clipped": ("train.py", "loss.backward()",
                                        "loss.backward(retain_graph=True)\n        loss.backward()",
                                        "at the first update the gradient"),
    "a rounded loss": ("train.py", "losses.append(loss.item())",
                       "losses.append(loss.bfloat16().item())", "loss of step 1"),
    "every other id for another row": ("train.py", "keepdim=True)], dim=1)",
                                       "keepdim=True)], dim=1).flip(0)",
                                       "] generate went on with ["),
}  # fmt: skip


@pytest.mark.parametrize("bug", UNSEEN)
def test_what_changes_no_step_of_a_short_run_is_seen_too(bug, grade):
    """Dropout, first weights, gradients before they are clipped, rounding: all got past once."""
    file, old, new, says = UNSEEN[bug]
    report = grade(changed(file, old, new))
    assert report.outcome == "failed"
    assert says in report.message


@pytest.mark.parametrize("fix", FIXES)
def test_other_right_ways_pass(fix, grade):
    """Names, order and numeric style are the candidate's own."""
    files = dict(FILES)
    for file, old, new in FIXES[fix]:
        assert old in files[file], old
        files[file] = files[file].replace(old, new)
    report = grade(files)
    assert report.outcome == "passed", (report.message, wrong(report))


def test_other_fixes_of_the_material_pass(grade):
    """Each bug comes with other ways to fix it."""
    for bug in PROGRAM.bugs[::5]:
        for edits in bug.fixes:
            report = grade(apply_edits(FILES, edits), first_failure=True)
            assert report.outcome == "passed", (bug.id, report.message)


@pytest.mark.parametrize("comment", ["", "\n# a loop of one's own\n"], ids=["given", "changed"])
def test_one_mistake_is_counted_once(comment, grade):
    """A wrong attention makes block, model and training wrong: only attention is blamed, also where
    the loop is not as it was given and has to be tried with the right model."""
    files = compose(PROGRAM, ["softmax-over-queries"])
    report = grade(files | {"train.py": files["train.py"] + comment})
    assert wrong(report) == {"attention"}


def test_subsets_tell_which_bugs_are_gone(grade):
    """What the program does is matched with the right program under each choice of bugs."""
    bugs = [b for b in PROGRAM.chosen if not PROGRAM.patches[b].decoy]
    left = bugs[::2]
    report = grade(compose(PROGRAM, left), "grade", "bugs", bugs=PROGRAM.chosen)
    assert {bug.id: bug.fixed for bug in report.bugs} == {b: b not in left for b in bugs}


def test_another_fault_is_not_taken_for_a_bug_of_the_round(grade):
    """The bugs are gone all the same, each judged by what was written at its place."""
    files = changed("train.py", "losses.append(loss.item())", "losses.append(2 * loss.item())")
    report = grade(files, "grade", "bugs", bugs=PROGRAM.chosen)
    assert report.outcome == "failed"
    assert {bug.fixed for bug in report.bugs} == {True}


BUGS = [bug for bug in PROGRAM.chosen if not PROGRAM.patches[bug].decoy]


def told(grade, files, ids=PROGRAM.chosen):
    report = grade(files, "grade", "bugs", bugs=ids)
    return {bug.id: bug.fixed for bug in report.bugs}


@pytest.mark.parametrize("fixed", BUGS)
def test_a_right_fix_is_told_beside_wrong_ones(grade, fixed):
    """With the other bugs as they were given, and a new fault elsewhere."""
    files = compose(PROGRAM, [bug for bug in PROGRAM.chosen if bug != fixed])
    spoiled = files["train.py"].replace("append(loss.item())", "append(2 * loss.item())")
    assert told(grade, files | {"train.py": spoiled}) == {bug: bug == fixed for bug in BUGS}


def test_a_wrong_fix_is_told_and_hides_no_right_one(grade):
    """Its place was changed, and is not right by itself; more than five bugs can be told."""
    ids = ("mask-one-late", "no-zero-grad", "positions-never-added", "scale-of-the-model-width",
           "activation-missing", "head-is-the-embedding")  # fmt: skip
    files = compose(PROGRAM, [bug for bug in ids if bug != "no-zero-grad"])
    (edit,) = PROGRAM.patches["mask-one-late"].edits
    wrong = edit.new.replace("diagonal=2", "diagonal=3")
    assert wrong != edit.new
    files |= {"model.py": files["model.py"].replace(edit.new, wrong)}
    assert told(grade, files, ids) == {bug: bug == "no-zero-grad" for bug in ids}


def test_a_fix_is_judged_anew_when_its_text_changes(grade):
    """Verdicts of fixes are remembered from one grade to the next, each for its own text."""
    given = compose(PROGRAM, PROGRAM.chosen)
    (edit,) = PROGRAM.patches["mask-one-late"].edits
    ((other,),) = PROGRAM.patches["mask-one-late"].fixes
    wrong = other.new.replace("tril(", "triu(")
    assert wrong != other.new
    for text, gone in [(wrong, False), (other.new, True), (wrong, False), (other.new, True)]:
        files = given | {"model.py": given["model.py"].replace(edit.new, text)}
        assert told(grade, files) == {bug: gone and bug == "mask-one-late" for bug in BUGS}


ENDED = {
    "never ends": ("    losses = []\n", "    losses = []\n    while True:\n        pass\n",
                   "timeout", "still running"),
    "prints for ever": ("    losses = []\n",
                        "    losses = []\n    while True:\n        print('x' * 1000)\n",
                        "timeout", "still running"),
    "wants a GPU": ("    losses = []\n", "    losses = []\n    model.cuda()\n", "crashed", "CUDA"),
    "wants a package": ("import torch\n", "import torch\nimport no_such_package\n", "crashed",
                        "no_such_package"),
    "deletes a declared name": ("def evaluate(", "def evaluated(", "crashed", "is missing from"),
    "returns nothing": ("    return losses\n", "    return None\n", "crashed", "train returned"),
    "changes a constant": ("CLIP = 1.0", "CLIP = 2.0", "failed", "train.CLIP is 2.0, but was 1.0"),
}  # fmt: skip


@pytest.mark.parametrize("case", ENDED)
def test_a_program_that_goes_astray_costs_itself_alone(case, grade):
    """One clear line says what happened and where; the next grade is as before."""
    old, new, outcome, says = ENDED[case]
    text = FILES["train.py"].replace(old, new, 1)
    report = grade(FILES | {"train.py": text}, seconds=5.0 if outcome == "timeout" else 60.0)
    assert report.outcome == outcome
    assert says in report.message


def test_seeds_default_dtypes_and_random_numbers_do_not_matter(grade):
    """What a program sets for its whole process is no part of the comparison."""
    files = FILES | {
        "train.py": FILES["train.py"].replace(
            "import torch\n",
            "import torch\n\ntorch.manual_seed(3)\ntorch.rand(5)\n",
            1,
        )
    }
    assert grade(files).outcome == "passed"


def test_a_training_run_has_its_curve_goals_and_sample(grade):
    """`attnlab run` shows where the loss starts, where it should, and what the model says."""
    report = grade(FILES, "train")
    assert report.outcome == "passed"
    assert len(report.run.losses) == report.run.steps
    assert abs(report.run.losses[0] - report.run.expected_start) < 0.3
    assert report.run.losses[-1] < 0.3
    assert report.run.sample == "a lighthouse keeper counts the ships"


def test_a_crash_in_training_is_traced_at_its_step(grade):
    """The rows of the failing step end with the operation that raised."""
    report = grade(compose(PROGRAM, ["positions-not-cut"]), "train")
    assert (report.outcome, report.run.failed_step) == ("crashed", 1)
    assert "model.py" in report.run.error
    assert report.run.trace.crash.op == "add"


def test_a_loss_that_becomes_nan_is_traced_at_its_step(grade):
    """The first step without a finite loss is recorded."""
    files = changed(
        "train.py", "        optimizer.step()\n",
        "        optimizer.step()\n        if step == 2:\n"
        "            next(model.parameters()).data.fill_(float('nan'))\n",
    )  # fmt: skip
    report = grade(files, "train")
    assert report.run.failed_step == 4
    assert report.run.trace.ops


def test_the_candidates_process_holds_no_right_program(grade):
    """The right files are nowhere to be imported while parts are compared."""
    spy = "import torch\nimport sys\nassert 'right_model' not in sys.modules\n"
    files = FILES | {"train.py": FILES["train.py"].replace("import torch\n", spy, 1)}
    assert grade(files).outcome == "passed"


LLAMA = read_program(shipped_folder() / "programs" / "tiny-llama")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("return (step + 1) / WARM_UP", "return step + 1", "loss of step 2"),
        ("return (step + 1) / WARM_UP", "return step + 1 / WARM_UP", "learning rate of step 2"),
        ("y) / count", "y) / count * 2", "loss of step 1"),
    ],
)
def test_a_schedule_is_seen_where_it_warms_up(worker, old, new, says):
    """In a run with constants of its own, where others would let it end at once."""
    text = LLAMA.files["train.py"]
    assert text.count(old) == 1
    files = LLAMA.files | {"train.py": text.replace(old, new)}
    job = ProgramJob(program=LLAMA, files=files, label="llama", stages=("grade",))
    report = worker.run_program(job)
    assert report.outcome == "failed"
    assert says in report.message


def test_goals_are_measured_on_what_the_program_itself_has(worker):
    """The figure is the one that a right program prints: random data are those of float32."""
    program = read_program(shipped_folder() / "programs" / "vit-patches")
    job = ProgramJob(program=program, files=program.files, label="vit", stages=("train",))
    report = worker.run_program(job)
    (accuracy,) = [goal.message for goal in report.goals if goal.id == "accurate"]
    wrong = float(report.output.split("wrong ")[-1].split("%")[0])
    assert f"accuracy {1 - wrong / 100:.3f}" in accuracy


SCORES, SORTED = '"bqhd,bkhd->bhqk", q, k)', "sorted(reviews, key=lambda review: -len(review[0]))"
ELSEWHERE = {  # a fix of each bug, the first two where it does not stand
    "scores-at-full-size": ("model.py", SCORES, f"{SCORES} / q.shape[-1] ** 0.5"),
    "rows-and-columns": ("train.py", "confusion.sum(dim=1)", "confusion.sum(dim=0)"),
    "labels-of-others": ("train.py", SORTED, "reviews"),
    "bag-of-words": ("model.py", "self.words(ids))", "self.words(ids) + self.positions(places))"),
}


@pytest.mark.parametrize(
    ("made", "wrong_scale"),
    [
        (["scores-at-full-size", "rows-and-columns"], False),
        (["scores-at-full-size", "rows-and-columns", "labels-of-others"], False),
        (["rows-and-columns", "labels-of-others"], True),
    ],
)
def test_fixes_elsewhere_are_each_told(made, wrong_scale, worker):
    """Two fixes that stand at no bug do not hide each other, nor does a wrong one."""
    program = read_program(shipped_folder() / "programs" / "padded-classifier")
    files = compose(program, ELSEWHERE)
    for bug in (*made, *(["scores-at-full-size"] if wrong_scale else [])):
        file, old, new = ELSEWHERE[bug]
        new = new.replace("q.shape[-1]", "64") if wrong_scale else new
        assert old in files[file]
        files = {**files, file: files[file].replace(old, new)}
    job = ProgramJob(
        program=program, files=files, label="padded-classifier", stages=("grade", "bugs"),
        bugs=tuple(ELSEWHERE), limits=Limits(seconds=60.0),
    )  # fmt: skip
    told = {bug.id: bug.fixed for bug in worker.run_program(job).bugs}
    assert told == {bug: bug in made for bug in ELSEWHERE}


def test_a_part_that_is_wrong_says_so_without_the_name_of_a_check():
    """It stands on the scorecard, where nobody asked for a check by its name."""
    failed = CheckResult(id="matches-reference", title="t", outcome="failed", message="it differs")
    assert unit_outcome(Report(outcome="ok", checks=(failed,)))[:2] == ("failed", "it differs")
    crashed = replace(failed, reason="crashed", file="model.py", line=33)
    message = unit_outcome(Report(outcome="ok", checks=(crashed,)))[1]
    assert message == "model.py:33: it differs", "a crash says where"
