"""What holds of every question: one right answer, the same again by its id, no secret in it."""

from __future__ import annotations

import random
import re
from dataclasses import replace

import pytest

from attnlab.catalogue.load import load
from attnlab.catalogue.patches import apply_edits
from attnlab.errors import Refused
from attnlab.questions import effects
from attnlab.questions.base import (
    Runner,
    draw_about,
    draw_parts,
    find_kind,
    find_measurement,
    judge,
    kinds,
    read_id,
)
from attnlab.questions.kept import RUNS, all_entries, run_key
from attnlab.questions.kinds import effect, incident, lines, numbers, shapes, spot, why
from attnlab.questions.kinds.incident import evidence_job
from attnlab.questions.material import Excerpt, Material, Patched, excerpt
from attnlab.questions.walk import texts
from attnlab.records.check_results import CheckResult
from attnlab.records.program import ProgramReport, TrainingRun
from attnlab.records.trace import Op
from benchmarks.quiz import (
    incident_jobs,
    problems,
    true_causes,
    true_kinds,
    true_properties,
    true_reasons,
    why_claims,
)


@pytest.fixture(scope="session")
def runner(worker):
    return Runner(worker.run_job, worker.run_program, shipped=True)


def refuse(job):
    raise Refused("nothing is run here")


def parts_of(kind, seed, runner):
    return draw_parts(find_kind(kind), seed, load(), runner)


def test_a_question_is_the_same_again_and_says_no_answer(runner):
    """Nothing is kept between asking and judging."""
    for kind in ("numbers", "why", "spot"):
        one, other = parts_of(kind, 3, runner), parts_of(kind, 3, runner)
        assert [part.question for part in one] == [part.question for part in other]
        assert [part.right for part in one] == [part.right for part in other]
        if kind == "numbers":
            assert one[0].right not in str(one[0].question)


@pytest.mark.parametrize("kind", ["numbers", "why"])
def test_drawn_questions_have_one_right_answer(kind, runner):
    """A sample of what `make quiz-check` draws."""
    for seed in range(200):
        assert not list(problems(parts_of(kind, seed, runner)))


def test_drawn_shapes_have_one_right_answer(runner):
    for seed in (0, 5):
        assert not list(problems(parts_of("shapes", seed, runner)))


def test_a_module_is_walked_through_line_by_line(runner):
    """Of one file, a shape and a reason for each line; no wrong reason is of its own stage."""
    parts = parts_of("lines", 3, runner)
    assert not list(problems(parts))
    assert {(part.base, part.question.code) for part in parts} == {
        (parts[0].base, parts[0].question.code)
    }
    asked = [re.search(r"line (\d+)", part.question.prompt)[1] for part in parts]
    assert asked[::2] == asked[1::2]
    assert len({*asked}) >= lines.FEWEST
    of_each = {text: name for name, text in texts()["why"].items()}
    for part in parts[1::2]:
        stages = [
            {n for n, stage in enumerate(lines.STAGES) if of_each[each] in stage}
            for each in part.question.choices
        ]
        right = stages[part.question.choices.index(part.right)]
        assert sum(bool(each & right) for each in stages) == 1


def test_every_bug_can_be_spotted():
    """Its line is in the excerpt that is shown; where nothing is wrong, nothing is right."""
    left = {"cached-decoder", "padded-causal", "tutorial-embedding"}
    nothing = Runner(refuse, refuse)  # what comes of shipped bugs is known
    for folder in load().folders:
        if folder.name not in left:
            continue
        material = Material(load())
        found = [one for one in material.of(folder, "patched") if isinstance(one, Patched)]
        for number, one in enumerate(found):
            parts = spot.draw(one, random.Random(number), nothing) or ()
            assert not list(problems(parts[:1])), one.id


def test_no_choice_stands_twice_in_the_reasons():
    """Ids are unique, and each reason has three wrong answers besides."""
    ids = [entry["id"] for entry in why.entries()]
    assert len(ids) == len({*ids}) > 40
    for entry in why.entries():
        assert len({entry["right"], *entry["wrong"]}) == 4


@pytest.mark.parametrize(
    ("typed", "number"),
    [
        ("12.6M", 12.6e6), ("1.5e9", 1.5e9), ("2 GiB", 2**31), ("4*768**2", 4 * 768**2),
        ("4*768^2", 4 * 768**2), ("1,234", 1234), ("1,234*2", 2468), ("2GB", 2e9),
        ("sqrt(512)", 512**0.5), ("2*pi", 6.283185), ("10 kB", 1e4), ("-3", -3),
        ("3 million", 3e6),
    ],
)  # fmt: skip
def test_numbers_are_read_as_people_write_them(typed, number):
    assert numbers.read_number(typed) == pytest.approx(number)


@pytest.mark.parametrize(
    "typed",
    [
        "abc", "9**9**9**9", "1e400", "inf", "()", "x" * 1000, "__import__('os')", "1" * 90, "2,4",
        "1.234,5", "1,23,456", "12,6M",
    ],
)  # fmt: skip
def test_nonsense_is_no_number(typed):
    """One line that says what can be typed; nothing is run."""
    with pytest.raises(Refused, match="number"):
        numbers.read_number(typed)


@pytest.mark.parametrize("entry", numbers.entries(), ids=lambda entry: entry["id"])
def test_a_usual_mistake_is_never_right_within_the_tolerance(entry, monkeypatch):
    """A template is drawn at sizes that tell its mistakes apart, and there are such sizes."""
    monkeypatch.setattr(numbers, "entries", lambda: [entry])
    drawn = [numbers.draw(None, random.Random(seed), None) for seed in range(40)]
    values = {part.right for parts in drawn if parts for part in parts}
    assert len(values) > 1
    assert entry["wrong"]


def test_the_numbers_are_those_that_torch_counts():
    """The formulas of parameters against modules that have them."""
    from torch import nn

    by_id = {entry["id"]: entry["value"] for entry in numbers.entries()}
    attention = nn.MultiheadAttention(24, 3)
    block = nn.TransformerEncoderLayer(24, 3, dim_feedforward=96)

    def count(module):
        return sum(p.numel() for p in module.parameters())

    assert numbers.evaluate(by_id["attention-parameters"], {"D": 24, "H": 3}) == count(attention)
    assert numbers.evaluate(by_id["block-parameters"], {"D": 24}) == count(block)


ROW = Op(
    index=0, op="view", line=3, file="m.py", source="", shape=(4, 6, 11, 5),
    axes=("B", "H", "S", "hd"), dtype="float32", stride=(1, 1, 1, 1), view=True,
)  # fmt: skip
SIZES = {"B": 4, "H": 6, "S": 11, "hd": 5, "D": 30}


@pytest.mark.parametrize(
    ("typed", "mark"),
    [
        ("B H S hd", "right"), ("(B, H, S, D//H)", "right"), ("4x6x11x5", "right"),
        ("b h s HD", "right"), ("B S H hd", "partly"), ("4 11 6 5", "partly"),
        ("B H S D", "wrong"), ("B S D", "wrong"), ("4 6 11 6", "wrong"),
    ],
)  # fmt: skip
def test_shapes_are_judged_by_names_and_numbers(typed, mark):
    """Right sizes in another order count half."""
    assert shapes.judge_axes(typed, ROW, [shapes.Run(ROW.shape, SIZES)]).mark == mark


@pytest.mark.parametrize(
    ("typed", "mark"),
    [
        ("4 H S 5", "right"), ("B x 6 x S x d/h", "right"), ("b 3*2 11 D/6", "right"),
        ("torch.Size([4, 6, 11, 5])", "right"), ("11 4 H hd", "partly"), ("4 H 11 S-6", "wrong"),
        ("4 H 11 6", "wrong"),
    ],
)  # fmt: skip
def test_a_number_is_judged_at_the_sizes_that_are_shown(typed, mark):
    """A number may stand beside names, and in an expression for a name of that size."""
    sizes = {"B": 3, "H": 4, "S": 9, "hd": 8, "D": 32}
    runs = [shapes.Run(ROW.shape, SIZES), shapes.Run((3, 4, 9, 8), SIZES | sizes)]
    assert shapes.judge_axes(typed, ROW, runs).mark == mark


def test_a_shape_that_is_right_by_chance_is_wrong():
    """S is 6 as H is: a name is judged at both sets of sizes."""
    sizes = SIZES | {"G": 6}
    runs = [shapes.Run(ROW.shape, sizes), shapes.Run((4, 7, 11, 5), sizes | {"H": 7})]
    found = shapes.judge_axes("B G S hd", ROW, runs)
    assert (found.mark, "chance" in found.message) == ("wrong", True)


def test_a_line_beside_the_bug_counts_half():
    shown = Excerpt(10, "a\nb\nc\nd\ne\nf")
    marks = [
        spot.judge_line(typed, {12}, shown).mark for typed in ("12", "line 13", "15", "nothing")
    ]
    assert marks == ["right", "partly", "wrong", "wrong"]
    assert spot.judge_line("nothing is wrong", set(), shown).mark == "right"
    for typed in ("9", "16", "seven", "1" * 40):
        with pytest.raises(Refused, match="no line"):
            spot.judge_line(typed, {12}, shown)


@pytest.mark.parametrize(
    "typed", ["", "shapes", "shapes.", "shapes.x", "shapes.1.0", "tunes.3", "shapes.1.2.3"]
)
def test_an_id_that_is_none_is_refused(typed):
    with pytest.raises(Refused):
        read_id(typed)


def test_a_choice_is_taken_by_letter_number_and_words(runner):
    """An empty answer, and one that is no choice, say nothing."""
    parts = parts_of("why", 4, runner)
    choices = parts[0].question.choices
    place = choices.index(parts[0].right)
    for typed in ("abcd"[place], str(place + 1), parts[0].right, f" {'abcd'[place]}) "):
        assert judge(parts, 1, typed).outcome == "right"
    for typed in ("", "  ", "e", "9", "zebra"):
        with pytest.raises(Refused):
            judge(parts, 1, typed)


EVIDENCE = {"learning rate over the run": "0.1", "scores before softmax": "-1 to 1", "rows": "1"}


@pytest.fixture
def incident_parts():
    """Its parts, from a run that never was."""
    run = TrainingRun(
        steps=9,
        losses=(3.0, 2.0, 1.0),
        expected_start=3.3,
        seconds=1.0,
        sample="abc",
        evidence=EVIDENCE,
    )
    runner = Runner(refuse, lambda job: ProgramReport(outcome="passed", run=run))
    return parts_of("incident", 3, runner)


def test_an_incident_gives_one_measurement_at_a_time(incident_parts):
    """By number or name, five at most; each costs a tenth of the points."""
    (part,) = incident_parts
    assert not list(problems(incident_parts))
    assert find_measurement(part, "1").value == "0.1"
    assert find_measurement(part, "rows", 4).left == 0
    for typed, before in (("9", 0), ("0", 0), ("weather", 0), ("1", 5)):
        with pytest.raises(Refused):
            find_measurement(part, typed, before)
    assert judge(incident_parts, 1, part.right, measured=2).score == pytest.approx(0.8)
    assert not {*EVIDENCE.values()} & {*part.question.log}


def test_a_program_is_measured_while_it_trains(worker):
    """What is told is what happened: rates, gradients, attention, what evaluation leaves behind."""
    material = Material(load())
    folder = next(f for f in material.folders if f.name == "char-gpt")
    one = next(o for o in material.of(folder, "program") if o.id == "eval-mode-stays")
    report = worker.run_program(replace(evidence_job(one), steps=3))
    found = report.run.evidence
    assert len(report.run.losses) == 3
    assert found["learning rate over the run"].endswith("of 3 steps")
    assert found["mode of the model after evaluate"] == "eval"
    assert found["largest weight on a later key"] == "0"
    assert found["parameters that never moved"] == "none"
    assert found["sums of the attention rows"] == "1 to 1"


def test_what_comes_of_every_bug_is_known():
    """effects.json has each bug and decoy: `python -m benchmarks.quiz --effects` adds new ones."""
    found = {effects.key(one) for one in Material(load()).all("patched") if one.id}
    known = all_entries(effects.FILE, effects.Effect)
    assert not found - known.keys()
    assert {effect.worst for effect in known.values()} <= {*effects.EFFECTS, ""}
    messages = [effect.message for effect in known.values()]
    assert messages == [effects.INTERNAL.sub("", message) for message in messages]
    long = "/home/me/venv/torch/nn/functional.py:26: IndexError: out of range"
    assert effects.INTERNAL.sub("", long) == "torch/nn/functional.py:26: IndexError: out of range"


def test_what_comes_of_a_generated_bug_is_known():
    """mutants.json has some of each right file as it is now; each can be put in."""
    known = all_entries(effects.MUTANTS, tuple[effects.Mutated, ...])
    rights = [one for one in Material(load()).all("patched") if one.challenge and not one.id]
    by_key = {effects.mutants_key(one): one for one in rights}
    assert not by_key.keys() ^ known.keys(), "python -m benchmarks.quiz --effects writes it anew"
    for key, bugs in known.items():
        for bug in bugs:
            assert by_key[key].right.count(bug.edit[0]) == 1
            assert bug.effect.message == effects.INTERNAL.sub("", bug.effect.message)


def test_every_incident_is_asked_without_a_run():
    """runs.json has them as the programs are now: `python -m benchmarks.quiz --effects`."""
    names = {run_key(job) for job in incident_jobs()}
    known = all_entries(RUNS, TrainingRun).keys()
    assert known <= names
    assert len(names - known) <= 1  # one that raises before its first loss


def test_every_reason_is_asked_before_one_comes_again():
    """Their number is small, and a sitting is long."""
    kind, seen = find_kind("why"), set()
    for number in range(len(why.entries())):
        (part,) = draw_about("", kind, number, None, Runner(refuse, refuse), seen)
        assert part.name not in seen
        seen.add(part.name)
    assert draw_about("", kind, 0, None, Runner(refuse, refuse), seen)


def test_every_kind_explains_itself():
    """Its docstring is what a person sees of it."""
    assert all(kind.title and len(kind.text.split("\n")) > 1 for kind in kinds().values())


@pytest.fixture
def char_gpt():
    material = Material(load())
    folder = next(f for f in material.folders if f.name == "char-gpt")
    return [one for one in material.of(folder, "program") if isinstance(one, Patched)]


def test_no_cause_is_offered_that_is_true_as_well(char_gpt):
    """A bug whose place is changed too is found by `make quiz-check`."""
    run = TrainingRun(
        steps=1, losses=(1.0,), expected_start=1.0, seconds=1.0, evidence=dict.fromkeys("abc", "1")
    )
    runner = Runner(refuse, lambda job: ProgramReport(outcome="passed", run=run))
    for number, one in enumerate(char_gpt):
        for part in incident.draw(one, random.Random(number), runner) or ():
            assert not list(true_causes(one, part.question.choices))
    one, other = char_gpt[0], char_gpt[1].program.patches[char_gpt[1].id]
    both = replace(one.program, files=apply_edits(one.program.files, other.edits))
    planted = replace(one, program=both)
    assert list(true_causes(planted, [incident.split_cause(other.why)[0]]))


def test_no_property_is_offered_that_fails_as_well(runner):
    """A sample is graded anew; a choice that fails too is found."""
    material = Material(load())
    folder = next(f for f in material.folders if f.name == "pre-norm-block")
    one = next(o for o in material.of(folder, "patched") if o.id == "x-is-gone-after-one-block")
    parts = effect.draw(one, random.Random(1), runner)
    assert not list(true_properties(one, parts, runner))
    second = parts[1]
    other = next(choice for choice in second.question.choices if choice != second.right)
    assert list(true_properties(one, [parts[0], replace(second, right=other)], runner))


def test_an_incident_says_neither_its_cause_nor_its_answer_twice(char_gpt):
    """Symptoms that share a word with the cause alone are left out; what is told after the answer
    is what it does not say."""
    seen = incident._without_clues(
        "It learns. The waves of the first place are zeros. Samples repeat.",
        "Every place has the same sine.",
        ["The samples are shuffled.", "The mask hides too much."],
    )
    assert seen == ["It learns.", "Samples repeat."]
    for one in char_gpt:
        cause, more = incident.split_cause(one.why)
        assert f"{cause} {more}".strip() == " ".join(one.why.split())
        assert cause not in more


def test_padding_and_rows_alone_are_no_leak():
    """Padding also moves positions, and a rotated batch may only be numbered otherwise."""

    def failed(title, message, name="masked-keys-ignored"):
        return CheckResult(id=name, title=title, outcome="failed", message=message)

    values = failed("Values equal the reference's", "the output differs", "finite")
    for check, worst in (
        (failed(effects.PADDING, "3 masked positions behind changed the output"), ""),
        (failed("Masked keys change nothing", "key 1 was masked"), "leak"),
        (failed("Samples of a batch do not mix", "rotating the batch by one did not"), ""),
    ):
        assert effects._worst([check, values], "attention") == worst


def test_what_a_class_promises_is_said_beside_its_lines():
    """A bug against the task alone, such as a gain that is stored otherwise, can be read."""
    folder = next(f for f in load().folders if f.name == "shifted-norms")
    one = next(o for o in Material(load()).of(folder, "patched") if o.id and not o.decoy)
    (first, *_) = spot.draw(one, random.Random(3), Runner(refuse, refuse))
    assert any("1 + weight" in line for line in first.question.log)


def test_no_kind_is_offered_that_a_bug_may_be_called_too(char_gpt):
    """A missing 1 / sqrt(D) on a term of positions may be called one of scale."""
    one = replace(char_gpt[0], category="positions", why="The second term misses its 1 / sqrt(D).")
    offered = {
        c
        for seed in range(40)
        for c in spot.ask_category(one, random.Random(seed)).question.choices
    }
    assert "normalisation" not in offered
    assert {"positions", "mask"} <= offered


def test_no_kind_is_offered_that_hints_name_or_another_file_gives(char_gpt):
    """A sample of the bugs; one whose hints name a kind that is offered is found."""
    bugs = [one for one in char_gpt if one.id and not one.decoy and len(one.files) == 1]
    assert not list(true_kinds(bugs, 5))
    twin = replace(bugs[0], base="other", category="of another kind")
    offered = spot.ask_category(bugs[0], random.Random(0)).question.choices
    planted = replace(twin, category=next(c for c in offered if c != bugs[0].category))
    assert list(true_kinds([bugs[0], planted], 5))


def test_of_the_reasons_that_can_be_computed_the_right_one_alone_is_true():
    """All of them; a wrong choice whose claim holds, and a missing claim, are found."""
    claims = why_claims()
    assert [each for entry in why.entries() for each in true_reasons(entry, claims)] == []
    entry = next(entry for entry in why.entries() if entry["id"] == "triu-diagonal")
    right, *wrong = claims[entry["id"]]
    assert list(true_reasons(entry, {entry["id"]: [right, right, *wrong[1:]]}))
    assert list(true_reasons(entry, {entry["id"]: [right, *wrong[1:]]}))


def test_an_incident_without_a_symptom_says_what_the_run_showed(char_gpt):
    """Where a sentence would give the cause away, the run stands beside the right program's."""
    wrong = TrainingRun(
        steps=2, losses=(3.0, 0.5), expected_start=1.0, seconds=0.0, sample="aaa",
        evidence=dict.fromkeys("abc", "1"),
    )  # fmt: skip
    right = replace(wrong, losses=(3.0, 0.25), sample="a song")
    one = char_gpt[0]
    runner = Runner(
        refuse,
        lambda job: ProgramReport(
            outcome="passed", run=right if job.files == one.program.files else wrong
        ),
    )
    one = next(o for o in char_gpt if incident.draw(o, random.Random(1), runner))
    (part,) = incident.draw(replace(one, symptom=one.why), random.Random(1), runner)
    assert part.question.prompt == (
        "The loss goes from 3.000 to 0.500 in 2 steps. Without the bug it ends at 0.250. "
        'Without it the sample is "a song". What is the cause?'
    )


def test_all_lines_that_a_verdict_depends_on_are_shown():
    """A decoy in two places is right for both of them together."""
    folder = next(f for f in load().folders if f.name == "long-context-rope")
    decoy = next(one for one in Material(load()).of(folder, "patched") if one.decoy)
    (part,) = spot.draw(decoy, random.Random(1), Runner(refuse, refuse))
    for line in spot.wrong_lines(decoy):
        assert decoy.text.splitlines()[line - 1] in part.question.code


def test_code_that_was_asked_about_waits():
    """Until nothing else is found among the next seeds."""
    kind, nothing = find_kind("spot"), Runner(refuse, refuse)
    base = draw_about("", kind, 3, load(), nothing)[0].base
    assert draw_about("", kind, 3, load(), nothing, [base])[0].base != base
    everything = [one.base for one in Material(load()).all("patched")]
    assert draw_about("", kind, 3, load(), nothing, everything)


def test_a_line_of_shapes_names_the_arguments_of_its_own_function():
    """Not those of the module that calls it, which are told beside."""
    folder = next(f for f in load().folders if f.name == "shifted-norms")
    piece = Material(load()).of(folder, "piece")[0]
    line = next(n for n, text in enumerate(piece.text.splitlines(), 1) if "self.norm(x)" in text)
    here = excerpt(piece.text, line)
    said = shapes.shown(piece, here, line, piece.sizes(0))["log"]
    assert said[0].endswith("forward gets x")
    assert said[1].startswith("PortedModel is called with tokens (B S), ")
