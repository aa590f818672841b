"""Records: frozen, and the same after a trip through JSON."""

import copy
import dataclasses
import json
import math
import pickle
import sys
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


def required_fields(kind):
    """Values for the fields that a record cannot do without, by their types."""
    hints = typing.get_type_hints(kind, localns=vars(records))
    needed = (f.name for f in dataclasses.fields(kind) if f.default is f.default_factory)
    return st.fixed_dictionaries({name: st.from_type(hints[name]) for name in needed})


def build(kind):
    return st.deferred(lambda: required_fields(kind).map(lambda values: kind(**values)))


for name, module in list(sys.modules.items()):
    if name.startswith("attnlab.records."):
        for kind in vars(module).values():
            if isinstance(kind, type) and dataclasses.is_dataclass(kind) and kind is not Contract:
                st.register_type_strategy(kind, build(kind))

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

    @few
    @given(build(kind))
    def edit(value):
        for name in (*kind.__slots__, "undeclared"):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(value, name, 1)
            with pytest.raises(dataclasses.FrozenInstanceError):
                delattr(value, name)
        assert not hasattr(value, "__dict__")

    edit()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_records_are_copied_and_pickled(kind):
    """Other processes and tools may take them."""

    @few
    @given(build(kind))
    def trip(value):
        for other in (copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert same(value, other)

    trip()


def test_a_record_is_built_of_all_its_fields_and_no_others():
    """A misspelt field and a forgotten one are named, and no two records share a default."""
    with pytest.raises(TypeError, match="Limits has no field second"):
        records.Limits(second=1.0)
    with pytest.raises(TypeError, match="Code needs "):
        Code()
    assert Contract().sizes is not Contract().sizes


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
    [
        "", "[]", "{}", '{"outcome"', '{"outcome": "fine"}', '{"outcome": "ok", "seconds": "soon"}',
        '{"outcome": "ok", "seconds": NaN}', '{"outcome": "ok", "message": "\\ud800"}',
        '{"outcome": "ok", "seconds": 1' + "0" * 400 + "}", '{"outcome": "ok", "seed": true}',
        '{"outcome": "ok", "checks": [["a"]]}', '{"outcome": ' + "[" * 100_000, b"\xff",
    ],
    ids=lambda text: str(text)[:40],
)  # fmt: skip
def test_json_that_does_not_fit_is_refused(text):
    """Garbage in place of a report raises ValueError and never makes half a record."""
    with pytest.raises(ValueError, match=r"Expect|[Ii]nvalid|missing|surrogates"):
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
