"""Records: frozen, and the same after a trip through JSON."""

import dataclasses
import json
import math
import typing

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from attnlab import records
from attnlab.records import (
    Challenge,
    ChallengeProgress,
    CheckResult,
    Code,
    Contract,
    Job,
    Op,
    Report,
    Verdict,
    from_json,
    plain,
    to_json,
)

# A constructor argument shares its place with strings, so NaN and inf are refused when it is read.
scalars = st.one_of(
    st.text(), st.integers(), st.booleans(), st.floats(allow_nan=False, allow_infinity=False)
)
contracts = st.builds(Contract, init=st.dictionaries(st.text(), scalars, max_size=3))
st.register_type_strategy(Contract, contracts)

KINDS = [
    kind
    for kind in vars(records).values()
    if isinstance(kind, type) and dataclasses.is_dataclass(kind)
]
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.data_too_large])


def same(a, b):
    """Equal, with NaN equal to NaN, and of the same types throughout."""
    if dataclasses.is_dataclass(a):
        return type(a) is type(b) and all(
            same(getattr(a, f.name), getattr(b, f.name)) for f in dataclasses.fields(a)
        )
    if isinstance(a, (tuple, list)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, float) and math.isnan(a):
        return isinstance(b, float) and math.isnan(b)
    return type(a) is type(b) and a == b


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_record_survives_json(kind):
    """Whatever a record holds (NaN, infinities, any text, big numbers) comes back as it was."""

    @few
    @given(st.from_type(kind))
    def trip(value):
        assert same(from_json(kind, to_json(value)), value)

    trip()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_records_are_frozen_and_documented_by_their_fields(kind):
    """No stage can edit what an earlier one made, and no record carries undeclared attributes."""
    assert kind.__dataclass_params__.frozen
    assert "__slots__" in vars(kind)


def test_records_are_equal_where_their_fields_are():
    """And two of one class that differ in a field are not."""
    one, same, other = (
        records.Limits(seconds=1.0),
        records.Limits(seconds=1.0),
        records.Limits(seconds=2.0),
    )
    assert (one == same, one == other) == (True, False)
    assert len({one, same, other}) == 2


def test_editing_a_record_raises():
    """`frozen` really holds at run time."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        ChallengeProgress().hints = 3


@pytest.mark.parametrize(
    ("value", "text"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")]
)
def test_numbers_that_json_lacks_travel_as_strings(value, text):
    """Strict JSON parsers can read every document, and the number is one again afterwards."""
    op = Op(
        index=0, op="div", line=1, file="a.py", source="x / 0", shape=(), axes=(),
        dtype="float32", stride=(), view=False, min=value,
    )  # fmt: skip
    said = to_json(op)
    assert json.loads(said, parse_constant=pytest.fail)["min"] == text
    assert same(from_json(Op, said).min, value)


def test_text_that_is_no_unicode_never_breaks_a_report():
    """A candidate may raise an error with half a surrogate pair in it; the report still arrives."""
    report = Report(outcome="crashed", message="bad \ud800 text", output="a\udc80")
    back = from_json(Report, to_json(report))
    assert back.message == "bad \N{REPLACEMENT CHARACTER} text"
    assert back.output == "a\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"outcome": "fine"}', '{"outcome": "ok", "seconds": "soon"}', '{"outcome"'],
)
def test_json_that_does_not_fit_is_refused(text):
    """Garbage in place of a report raises ValueError and never makes half a record."""
    with pytest.raises(ValueError, match=r"Expected|Invalid|missing|truncated"):
        from_json(Report, text)


def test_plain_reaches_into_containers():
    """The JSON documents of commands are dicts and lists that hold records."""
    result = CheckResult(id="finite", title="t", outcome="passed", sizes={"B": 2})
    found = plain({"checks": [result], "score": math.nan})
    assert found["checks"][0]["sizes"] == {"B": 2}
    assert found["score"] == "NaN"


def test_a_job_carries_reference_source_or_name():
    """The union of a unit's name and source text is told apart on the way back."""
    code = Code(file="solution.py", text="x = 1", name="Net")
    for reference in ("MultiHeadSelfAttention", code, None):
        job = Job(candidate=code, reference=reference)
        assert from_json(Job, to_json(job)).reference == reference


def test_topic_and_name_are_the_halves_of_a_slug():
    """`attention/too-sharp` is topic `attention`, name `too-sharp`."""
    fields = {f.name: "" for f in dataclasses.fields(Challenge)}
    challenge = Challenge(**{**fields, "slug": "attention/too-sharp"})
    assert (challenge.topic, challenge.name) == ("attention", "too-sharp")


def test_a_verdict_has_the_keys_of_the_command_contract():
    """Scripts read these keys of `attnlab grade --json`."""
    keys = {f.name for f in dataclasses.fields(Verdict)}
    contract = "challenge file outcome score checks isolation seconds"
    assert set(contract.split()) <= keys
    assert "cannot-compare" in typing.get_args(records.GradeOutcome)
