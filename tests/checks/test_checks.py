"""Every check: it catches what it is for, is the first to say so, and lets right code pass.

The cases of a check lie in `check_cases/`, in a file of its name, or in a folder of its name
with a file for each part; a new check brings one.
"""

import importlib
from dataclasses import replace
from pathlib import Path

import pytest
from trial import (
    ATTENTION,
    EMPTY_ROWS,
    ENCODING,
    SELF,
    TABLE,
    UNIT,
    Case,
    blames,
    changed,
    passes,
    tried,
)

from attnlab import checks
from attnlab.catalogue.renamed_checks import RENAMED
from attnlab.checks.base import Tier, load_checks, parts_of
from attnlab.checks.shared.compare import mask_kinds
from attnlab.grading import runner
from attnlab.grading.round import State
from attnlab.records import Code

HERE = Path(__file__).parent
CASES = {
    file.stem.replace("_", "-"): importlib.import_module(
        ".".join(file.relative_to(HERE).with_suffix("").parts)
    )
    for file in sorted((HERE / "check_cases").rglob("*.py"))
}
PARTS = {part.id: part for part in parts_of(load_checks())}
ELSEWHERE = {"device-parity"}  # needs a GPU: test_device_parity.py
WRONG = [(id_, name) for id_, cases in CASES.items() for name in cases.WRONG]
RIGHT = [(id_, name) for id_, cases in CASES.items() for name in cases.RIGHT]


def test_every_part_of_a_check_has_cases():
    """A check that was never seen to catch anything is no check."""
    assert set(CASES) == PARTS.keys() - ELSEWHERE
    assert all(cases.WRONG and len(cases.RIGHT) > 1 for cases in CASES.values())


# What another check may see first: by luck, or since it makes a call that is long as well.
LUCK = {"gradcheck-full": {"gradcheck"}, "long-sequence": {"in-a-network"}}


@pytest.mark.parametrize(("part", "name"), WRONG)
def test_what_is_wrong_is_blamed_on_the_property(part, name):
    """The part is the first failure that no more basic one explains; what is made on demand may
    only be sure of what a quicker check sees by luck."""
    luck = LUCK.get(part, set())
    results = tried(CASES[part].WRONG[name], until="end" if luck else "reason")
    blamed = {(PARTS[p].check, PARTS[p].title) for p in {part, *luck}}
    assert (blames(results), results[0].title) in blamed
    assert next(r for r in results if r.id == PARTS[part].check).outcome == "failed"
    assert results[0].message
    assert results[0].advice
    assert results[0].sizes


@pytest.fixture(scope="module")
def looked_at():
    """The results of a case, and those of the parts; several checks share their right cases."""
    known = {}

    class Watched(State):
        def __init__(self):
            super().__init__()
            states.append(self)

    def look(case):
        if repr(case) not in known:
            known[repr(case)] = tried(case), states[-1].results
        return known[repr(case)]

    states = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(runner, "State", Watched)
        yield look


@pytest.mark.parametrize(("part", "name"), RIGHT)
def test_what_is_right_passes(part, name, looked_at):
    """Whatever its style, and the part really looked."""
    results, parts = looked_at(CASES[part].RIGHT[name])
    wrong = [c for c in results if c.outcome in ("failed", "error")]
    assert passes(results, PARTS[part].check), wrong
    assert parts[part].outcome == "passed"


def test_other_names_are_not_called_wrong():
    """Weights that have no place make values incomparable; every property still holds."""
    two = "self.out_proj = nn.Linear(embed_dim, embed_dim)"
    source = changed(
        ATTENTION,
        (two, f"{two}\n        self.more = nn.Linear(embed_dim, embed_dim)"),
        ("self.out_proj(out)", "self.more(self.out_proj(out))"),
    )
    results = {c.id: c for c in tried(Case(source))}
    assert results["matches-reference"].outcome == "error"
    assert results["matches-reference"].reason == "no-weights"
    assert "more.weight" in results["matches-reference"].message
    assert {c.outcome for c in results.values()} == {"passed", "skipped", "error"}


def test_a_failure_that_follows_is_folded_under_its_cause():
    """One bug gives one thing to look at first."""
    source = changed(ATTENTION, ("weights @ v", "weights @ v.roll(1, 0)"))
    failed = [c for c in tried(Case(source)) if c.outcome == "failed"]
    assert failed[0].id == "batch-independence"
    assert len(failed) > 1
    assert {c.folded_under for c in failed[1:]} == {"batch-independence"}


def test_advice_speaks_of_what_there_is():
    """Scores and queries only where a module attends."""
    wrong = Case(changed(ATTENTION, ("weights @ v", "weights @ v * 1.1")))
    found = {c.id: c for c in tried(wrong)}["matches-reference"]
    assert "scores of one query" in found.advice
    table = Code(file="solution.py", text=TABLE, name="M")
    wrong = Case(changed(TABLE, ("self.pe[:S]", "1.5 * self.pe[:S]")), ENCODING, table)
    found = {c.id: c for c in tried(wrong)}["matches-reference"]
    assert found.outcome == "failed"
    assert "query" not in found.advice


def test_a_trained_table_is_called_that():
    """Not merely absent from the buffers: the message says what would happen to it."""
    results = tried(CASES["buffer-not-parameter"].WRONG["a parameter"])
    assert results[0].message == "pe is a parameter, so an optimizer would train it"


def test_the_sizes_of_a_failure_are_those_of_its_call():
    """A call of another length than the round's is told with that length."""
    positions = tried(CASES["long-sequence"].WRONG["positions in bfloat16"])[0]
    assert positions.sizes["S"] > 256
    assert f"({positions.sizes['S']} positions)" in positions.message
    pair = changed(ATTENTION, ("weights @ v", "weights @ (v * 2 if S == 2 else v)"))
    pairs = {c.id: c for c in tried(Case(pair))}["matches-reference"]
    assert (pairs.outcome, pairs.sizes["S"]) == ("failed", 2)


def test_masks_are_all_one_to_a_module_without_a_mask():
    """It would be asked the same thing several times over."""
    assert mask_kinds(SELF, "random", "none") == ("random", "none")
    assert mask_kinds(EMPTY_ROWS, "random") == ("random", "empty-rows")
    assert mask_kinds(replace(SELF, inputs=SELF.inputs[:1]), "random", "none") == ("random",)


# ---------------------------------------------------------------- the form of a check


@pytest.mark.parametrize("check", load_checks(), ids=lambda check: check.id)
def test_a_check_explains_itself(check):
    """`explain` has a property, what is wrong and what is right; the advice is a sentence."""
    headline = check.doc.strip().splitlines()[0]
    assert headline.endswith((".", "?"))
    assert "\nWrong: " in check.doc
    assert "\nRight: " in check.doc
    assert check.title
    assert not check.title.endswith(".")
    assert all(part.advice.endswith((".", "?")) for part in check.parts)
    assert len({part.title for part in check.parts}) == len(check.parts)


def test_every_check_lies_in_a_file_of_its_name():
    """The file name is the id, and no file is left out."""
    files = {f.stem for f in Path(checks.__file__).parent.glob("*.py")} - {"__init__", "base"}
    assert {check.id for check in load_checks()} == {name.replace("_", "-") for name in files}


def test_an_explanation_explains_what_comes_later():
    """Folding rests on tiers: the wrong shape explains everything, what stands aside nothing."""
    assert all(Tier.SHAPE.explains(tier) for tier in Tier if tier is not Tier.SHAPE)
    assert not any(Tier.ASIDE.explains(tier) for tier in Tier)
    assert not any(tier.explains(tier) for tier in Tier)


def test_the_order_is_the_same_whatever_the_folder_says(monkeypatch):
    """Files are found in any order; reports look the same everywhere."""
    order = [check.id for check in load_checks()]
    listed = list(checks_base().pkgutil.iter_modules(checks.__path__))
    monkeypatch.setattr(checks_base().pkgutil, "iter_modules", lambda path: listed[::-1])
    assert [check.id for check in load_checks.__wrapped__()] == order


def checks_base():
    return importlib.import_module("attnlab.checks.base")


def test_the_most_basic_comes_first():
    """Without an output there is nothing to look at."""
    first, *others = load_checks()
    assert (first.id, first.tier) == ("output-shape", Tier.SHAPE)
    assert all(part.tier > Tier.SHAPE for part in parts_of(others))


def test_some_rest_on_the_candidate_s_word():
    """They can fail a candidate and never outweigh values, so they are few and marked."""
    marked = {part.id for part in parts_of(load_checks()) if not part.trusted}
    assert {"input-unchanged", "buffer-not-parameter"} <= marked
    assert "matches-reference" not in marked


@pytest.mark.parametrize("check", ["matches-reference", "formula-match"])
def test_an_answer_that_lost_its_elements_is_not_right(check):
    """Nothing differs from nothing: a shape that changes after the first looks is a failure."""
    from attnlab.candidate.host import LocalHost
    from attnlab.checks.base import Failure
    from attnlab.probe.inputs.draw import Dice
    from attnlab.probe.probe import GradingContext, Probe
    from attnlab.probe.reference import UnitReference
    from attnlab.sizes import with_head_dim

    case = next(iter(CASES[check].RIGHT.values()))
    host = LocalHost()
    source = case.source + (
        "\nreal = M.forward\n"
        "M.forward = lambda self, *a: real(self, *a).new_empty(0, *real(self, *a).shape)\n"
    )
    host.ask("load", file="m.py", text=source, path="", own=None)
    reference = UnitReference(UNIT) if case.reference else None
    context = GradingContext(case.contract, "M", host, lambda: host, Dice(1), reference)
    probe = Probe(context, with_head_dim(case.contract.sizes))
    probe.equip()
    assert isinstance(PARTS[check].failure(probe), Failure)


def test_memory_that_nobody_wrote_has_a_line():
    """The lines that allocate are named, where there are any."""
    cases = CASES["unwritten-memory"].WRONG
    source = cases["a bias that was only allocated"].source
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "torch.empty" in text)
    told = tried(cases["a bias that was only allocated"])[0].message
    assert told.endswith(f"uninitialised memory is read; it is allocated on line {line}")


def test_every_part_that_was_a_check_is_found_by_its_old_id():
    """Scripts and challenges hold ids."""
    assert {id_: PARTS[id_].check for id_ in RENAMED} == RENAMED
    assert not RENAMED.keys() & {check.id for check in load_checks()}
