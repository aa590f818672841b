"""Every challenge, as `attnlab check` sees it: the material is tested as strictly as the code.

The shipped file fails with the check that its challenge expects, solution and alternatives pass,
every mutant is rejected, and three hints give nothing away.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue

import pytest

from attnlab.catalogue.load import load
from attnlab.catalogue.validate import (
    ChallengeFile,
    challenge_files,
    file_problem,
    files_to_grade,
    text_problems,
)
from attnlab.checks.base import load_checks, parts_of
from attnlab.records import Challenge, Code, Limits, Verdict
from attnlab.sizes import constructor_arguments
from attnlab.target.challenge_job import challenge_job
from attnlab.verdict import make_verdict
from attnlab.worker.client import Worker

SEED = 7  # which of two checks fails first may depend on what is drawn; attnlab check draws afresh
AT_ONCE = 2  # workers: each holds a torch of its own
CATALOGUE = load()
FLAGSHIP = "attention/crash-at-out-proj"

every = pytest.mark.parametrize("challenge", CATALOGUE.challenges, ids=lambda c: c.slug)


# Spec rows A2, D1 and D2, and the pitfalls of part P, by a challenge of each.
ROWS = {
    "A2: squeeze(1) on an axis of 3": ("crash-at-out-proj", "debug"),
    "A2: S == H, where it does not crash": ("heads-in-a-blender", "debug"),
    "D1: fix a file": ("too-sharp", "debug"),
    "D2: implement from a signature": ("sinusoidal-from-scratch", "implement"),
    "P: no sqrt(D)": ("words-under-the-waves", "debug"),
    "P: dropout twice": ("twice-as-forgetful", "debug"),
    "P: odd width": ("seven-is-an-odd-answer", "debug"),
    "P: S beyond the table": ("a-second-beginning", "debug"),
    "P: dtype of a factory": ("twins-on-page-two", "debug"),
    "P: device of a table": ("the-table-stays-behind", "debug"),
    "P: padding row overwritten": ("silence-makes-a-noise", "debug"),
    "P: padding row and a tied head": ("only-the-tied-one-hums", "debug"),
    "P: an extra batch axis": ("one-axis-too-many", "debug"),
    "P: 2 * tok + PE": ("places-count-half", "debug"),
    "P: base and length mixed up": ("sinusoidal-from-scratch", "implement"),  # a mutant of it
    "P: frequencies of other pairs": ("pairs-of-mixed-speed", "debug"),
    "P: layout of a checkpoint": ("short-prompts-survive", "debug"),
    "P: weight tying lost": ("two-vectors-for-one-word", "debug"),
    "P: no super().__init__()": ("it-does-not-even-start", "debug"),
}
GPU_ONLY = {"device-parity"}  # of which no verdict could be had on a CPU


@pytest.mark.parametrize("row", ROWS)
def test_each_pitfall_is_a_challenge(row):
    """Spec rows A2, D1, D2 and part P: what is often done wrong can be practised."""
    name, kind = ROWS[row]
    assert CATALOGUE.find(name).kind == kind


def test_every_check_that_a_cpu_can_run_is_expected_by_a_challenge():
    """A check that no shipped file fails is met by nobody who practises."""
    expected = {check for c in CATALOGUE.challenges for check in c.expected}
    assert {part.check for part in parts_of(load_checks())} - expected == GPU_ONLY


@pytest.fixture(scope="module")
def problems():
    """What is wrong with each file of a challenge: graded side by side, waited for when asked.

    Right files of bases are left to `attnlab check --strength`, which grades them under each seed.
    """
    free: SimpleQueue[Worker] = SimpleQueue()

    def grade(challenge: Challenge, code: Code) -> Verdict:
        # A busy machine must not turn a right but slow alternative into a timeout.
        patient = Limits(seconds=120.0)
        job = challenge_job(challenge, code, stages=("check",), limits=patient, seed=SEED)
        if code.path != challenge.file:  # of what is shipped, every failure that is expected
            job = replace(job, until="verdict")
        worker = free.get()
        try:
            return make_verdict(challenge, code.file, worker.run_job(job))
        finally:
            free.put(worker)

    def ask(case: ChallengeFile) -> Future[str]:
        return pool.submit(file_problem, case, grade)

    workers = [Worker() for _ in range(AT_ONCE)]
    for worker in workers:
        free.put(worker)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield {
            c.slug: [ask(f) for f in (files[:1] if c.base else files)]
            for c, files in files_to_grade(CATALOGUE.challenges)
        }
        pool.shutdown(cancel_futures=True)
    for worker in workers:
        worker.close()


def test_what_comes_after_a_challenge_exists():
    """It is told when the challenge has passed."""
    names = {c.name for c in CATALOGUE.challenges}
    assert [c.slug for c in CATALOGUE.challenges if c.then and c.then not in names] == []


def test_every_challenge_can_be_read():
    """A folder that is broken would only be missing from the list."""
    assert not CATALOGUE.broken
    assert FLAGSHIP in {c.slug for c in CATALOGUE.challenges}


@every
def test_its_files_are_graded_as_they_should_be(challenge, problems):
    """Shipped, solution, alternatives and mutants, each with the reason when it is not so."""
    said = [future.result() for future in problems[challenge.slug]]
    assert [text for text in said if text] == []


@every
def test_its_texts_help_and_give_nothing_away(challenge):
    """Hints do not quote the fix, and the notes tell why, how to find it and where it was seen."""
    assert text_problems(challenge) == []
    assert len(challenge.hints) == 3
    assert len(challenge.alternatives) >= 2
    assert challenge.base or len(challenge.mutants) >= 6


@every
def test_its_mutants_say_what_is_wrong(challenge):
    """The first line of a mutant is a docstring: whoever reads it learns what must be caught."""
    silent = [
        Path(path).name
        for path in challenge.mutants
        if not Path(path).read_text(encoding="utf-8").startswith('"""')
    ]
    assert silent == []


@every
def test_no_file_of_it_is_another_one(challenge):
    """A copy would be tested twice and teach nothing."""
    texts = [case.code.text.split() for case in challenge_files(challenge)]
    assert len({tuple(text) for text in texts}) == len(texts)


def test_no_two_axes_of_an_example_have_one_size():
    """Else a trace of it names an axis by another one's letter. Sk is S where no cache is given,
    and T is no axis; the README shows the sizes of `crash-at-out-proj`."""
    for challenge in load().challenges:
        if challenge.contract and challenge.name != "crash-at-out-proj":
            sizes = {k: n for k, n in challenge.contract.sizes.items() if k not in ("Sk", "T")}
            assert len({*sizes.values()}) == len(sizes), (challenge.slug, sizes)


def right_caches():
    """The right files of challenges about a cache, each once."""
    made = {c.solution: c for c in CATALOGUE.challenges if c.contract.cache}
    for c in (c for c in made.values() if c.base.startswith("cache/")):
        for path in (c.solution, *c.alternatives):
            yield pytest.param(c, path, id=f"{c.base}-{Path(path).stem}")


@pytest.mark.parametrize(("challenge", "path"), list(right_caches()))
def test_a_right_cache_goes_on_in_ordinary_grad_mode(challenge, path):
    """Somebody's own test of it need not know of no_grad."""
    torch, cache = pytest.importorskip("torch"), challenge.contract.cache
    code = challenge_job(challenge, Path(path), stages=()).candidate
    space = {"__name__": __name__}
    exec(compile(code.text, str(path), "exec"), space)
    sizes = challenge.contract.sizes
    module = space[code.name](**constructor_arguments(challenge.contract.init, sizes)).eval()
    kept = {} if cache.form == "inner" else {cache.argument: None}
    if cache.new:
        kept[cache.argument] = getattr(module, cache.new)(sizes["B"], sizes["S"])
    elif cache.reset:
        getattr(module, cache.reset)()
    for token in torch.randn(sizes["B"], sizes["S"], sizes["D"]).split(1, dim=1):
        out = module(token, **kept)
        if cache.form == "returned":
            out, kept[cache.argument] = out
    assert out.requires_grad
