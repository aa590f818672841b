"""Reading challenges: what a good folder gives, and what is said of a bad one."""

import subprocess
import sys
from pathlib import Path

import pytest
from challenge_folder import TOML, write

from attnlab.catalogue import load as catalogue
from attnlab.catalogue.bases import read_base
from attnlab.catalogue.load import load, read_challenge
from attnlab.errors import Broken, Refused, Unreadable
from attnlab.records import Bug, Input, Position, Refusal


def broken(folder):
    with pytest.raises(Unreadable) as caught:
        read_challenge(folder)
    return caught.value


@pytest.fixture
def alone(monkeypatch, tmp_path):
    """A catalogue whose shipped part is the folder returned."""
    monkeypatch.setattr(catalogue, "shipped_folder", lambda: tmp_path)
    monkeypatch.delenv("ATTNLAB_CATALOGUE", raising=False)
    return tmp_path


# ---------------------------------------------------------------- a good folder


def test_a_folder_becomes_a_challenge(tmp_path):
    """Every key of challenge.toml and every file of the folder arrives in the record."""
    folder = write(tmp_path)
    found = read_challenge(folder)
    assert (found.slug, found.title, found.kind, found.level) == (
        "attention/too-sharp", "Too sure", "debug", 2,
    )  # fmt: skip
    assert (found.class_name, found.reference) == ("Net", "MultiHeadSelfAttention")
    assert found.expected == ("matches-reference",)
    assert found.hints == ("one", "two", "three")
    assert found.file == str(folder / "buggy.py")
    assert found.solution == str(folder / "solution.py")
    assert found.notes == str(folder / "notes.md")
    assert [Path(p).name for p in found.alternatives] == ["a0.py", "a1.py"]
    assert len(found.mutants) == 6


def test_the_tables_become_a_contract(tmp_path):
    """Sizes, constructor arguments, inputs and output are read, and defaults hold otherwise."""
    contract = read_challenge(write(tmp_path)).contract
    assert contract.sizes == {"B": 2, "S": 4, "D": 8, "H": 2}
    assert contract.init == {"embed_dim": "D"}
    assert contract.inputs == (
        Input(name="x", axes=("B", "S", "D")),
        Input(name="mask", axes=("B", "S", "S"), dtype="bool", role="mask", optional=True),
    )
    assert contract.output == ("B", "S", "D")
    assert contract.vary == ("B", "S", "D", "H")
    assert contract.example_mask == "causal"


def test_every_key_of_the_contract_table_is_read(tmp_path):
    """promises, mask, vary, buffers, extra sizes, refusals and position reach the record."""
    toml = (
        TOML
        + """
[contract]
promises = ["averaging", "empty-rows"]
mask = "empty-rows"
vary = ["B", "S"]
buffers = ["pos.pe"]
[[contract.extra_sizes]]
S = 1
[[contract.refusals]]
sizes = { S = 101 }
error = "ValueError"
[contract.position]
kind = "sinusoidal"
form = "added"
base = 500
"""
    )
    contract = read_challenge(write(tmp_path, toml=toml)).contract
    assert contract.promises == ("averaging", "empty-rows")
    assert contract.example_mask == "empty-rows"
    assert contract.vary == ("B", "S")
    assert contract.buffers == ("pos.pe",)
    assert contract.extra_sizes == ({"S": 1},)
    assert contract.refusals == (Refusal(sizes={"S": 101}, error="ValueError"),)
    assert contract.position == Position(form="added", base=500.0)


def test_several_bugs_are_read(tmp_path):
    """Each with the checks that tell it, and what it weighs."""
    toml = (
        TOML
        + """
[[bugs]]
id = "mask-turned"
checks = ["masked-keys-ignored", "causality"]
weight = 2
[[bugs]]
id = "scale"
checks = ["logit-scale"]
"""
    )
    first, second = read_challenge(write(tmp_path, toml=toml)).bugs
    assert first == Bug(id="mask-turned", checks=("masked-keys-ignored", "causality"), weight=2)
    assert (second.id, second.weight) == ("scale", 1)


@pytest.mark.parametrize(
    ("bugs", "says"),
    [
        ('[[bugs]]\nid = "a"\nchecks = ["finite"]\n', "a list of at least 2"),
        ('[[bugs]]\nid = "a"\nchecks = ["finite"]\n' * 2, "two bugs have this id"),
        ('[[bugs]]\nid = "a"\nchecks = []\n' * 2, "a list of at least 1"),
        ('[[bugs]]\nchecks = ["finite"]\n' * 2, "bugs[0].id: missing"),
    ],
)
def test_bugs_must_be_told_apart(tmp_path, bugs, says):
    """One bug needs no list; several need names and checks."""
    with pytest.raises(Unreadable) as caught:
        read_challenge(write(tmp_path, toml=TOML + bugs))
    assert says in str(caught.value)


def test_a_map_of_weights_is_read(tmp_path):
    """TOML makes tables of the dots in a key; the names of parameters come out whole."""
    toml = (
        TOML + '\n[weights]\nwq.weight = "part(qkv.weight, 0, 3)"\n"heads.#.k" = "part(k, #, H)"\n'
    )
    contract = read_challenge(write(tmp_path, toml=toml)).contract
    assert contract.weights == {
        "wq.weight": "part(qkv.weight, 0, 3)",
        "heads.#.k": "part(k, #, H)",
    }
    with pytest.raises(Unreadable) as caught:
        read_challenge(write(tmp_path, toml=toml.replace('"part(k, #, H)"', '"k + 1"')))
    assert 'weights.heads.#.k = "k + 1": expected an expression' in str(caught.value)


def test_an_implement_challenge_ships_its_starter(tmp_path):
    """`kind = "implement"` has starter.py where `debug` has buggy.py."""
    toml = TOML.replace('"debug"', '"implement"')
    folder = write(tmp_path, toml=toml, leave_out=["buggy.py"])
    assert read_challenge(folder).file == str(folder / "starter.py")


def test_axes_may_be_products_numbers_and_hd(tmp_path):
    """`hd` is D / H where both are known; 3*D and 4 need no size of their own."""
    toml = TOML.replace('x = "B S D"', 'x = "B 1 hd 3*D"')
    assert read_challenge(write(tmp_path, toml=toml)).contract.inputs[0].axes == (
        "B", "1", "hd", "3*D",
    )  # fmt: skip


# ---------------------------------------------------------------- missing files


@pytest.mark.parametrize(
    ("left_out", "message"),
    [
        ("buggy.py", "buggy.py is missing"),
        ("solution.py", "solution.py is missing"),
        ("notes.md", "notes.md is missing"),
        ("alternatives/a1.py", "alternatives/*.py: found 1, but at least 2 are needed"),
        ("mutants/m3.py", "mutants/*.py: found 5, but at least 6 are needed"),
    ],
)
def test_a_missing_file_is_named(tmp_path, left_out, message):
    """A challenge is whole or it is not shown."""
    error = broken(write(tmp_path, leave_out=[left_out]))
    assert error.message == message
    assert "too-sharp" in error.where


def test_a_folder_without_description_is_broken(tmp_path):
    """A forgotten challenge.toml is told, with the path it should have."""
    folder = write(tmp_path)
    (folder / "challenge.toml").unlink()
    error = broken(folder)
    assert error.message.endswith("challenge.toml: no such file")


def test_a_slug_must_be_easy_to_type(tmp_path):
    """The folder's name is typed on the command line."""
    error = broken(write(tmp_path, slug="attention/Too_Sharp"))
    assert '"Too_Sharp" is not a slug' in error.message


# ---------------------------------------------------------------- the whole catalogue


def test_challenges_stand_by_topic_level_and_slug(alone):
    """`attnlab list` begins with attention, and with what is easy."""
    for slug, level in [("position/b", 1), ("attention/z", 1), ("attention/a", 3), ("blocks/c", 1)]:
        write(alone, slug=slug, toml=TOML.replace("level = 2", f"level = {level}"))
    assert [c.slug for c in load().challenges] == [
        "attention/z", "attention/a", "position/b", "blocks/c",
    ]  # fmt: skip


def test_a_broken_challenge_hides_no_other(alone):
    """The rest loads, the error is kept, and asking for the broken one raises it."""
    write(alone, slug="attention/good")
    write(alone, slug="attention/bad", toml=TOML.replace("level = 2", "level = 9"))
    found = load()
    assert [c.slug for c in found.challenges] == ["attention/good"]
    assert [e.message for e in found.broken] == ["level = 9: expected 1 to 5"]
    for what in ("bad", "attention/bad"):
        with pytest.raises(Unreadable, match="level = 9"):
            found.find(what)


def test_empty_and_hidden_folders_are_no_challenges(alone):
    """What git and Python leave behind is passed over."""
    write(alone)
    for name in ("attention/gone", "attention/old/__pycache__", ".git/hooks", "attention/.x/y"):
        (alone / name).mkdir(parents=True)
    found = load()
    assert (len(found.challenges), found.broken) == (1, ())


def test_find_takes_full_and_bare_names(alone):
    """`too-sharp` and `attention/too-sharp` are the same challenge."""
    write(alone)
    for what in ("too-sharp", "attention/too-sharp", " too-sharp/ "):
        assert load().find(what).slug == "attention/too-sharp"


@pytest.mark.parametrize(
    "what", ["to-sharp", "attention/too-shap", "Too-Sharp", "atention/too-sharp"]
)
def test_a_slip_in_the_name_gets_the_near_name(alone, what):
    """Nobody types a slug right the first time."""
    write(alone)
    with pytest.raises(Refused) as caught:
        load().find(what)
    assert caught.value.message == f'no challenge is called "{what}"'
    assert caught.value.hint.startswith("Did you mean ")
    assert "too-sharp" in caught.value.hint


def test_a_name_far_from_all_points_to_list(alone):
    """No guess is better than a wild one."""
    write(alone)
    with pytest.raises(Refused) as caught:
        load().find("x" * 3000)
    assert caught.value.hint == "attnlab list shows them all."


def test_a_bare_name_of_two_topics_is_refused(alone):
    """Which one is meant cannot be guessed: both are shown."""
    write(alone, slug="attention/same")
    write(alone, slug="position/same")
    with pytest.raises(Refused) as caught:
        load().find("same")
    assert caught.value.hint == "Write attention/same or position/same."


def test_another_folder_adds_challenges(alone, tmp_path_factory, monkeypatch):
    """--catalogue and ATTNLAB_CATALOGUE add to what ships."""
    write(alone)
    more = tmp_path_factory.mktemp("more")
    write(more, slug="position/mine")
    expected = ["attention/too-sharp", "position/mine"]
    assert [c.slug for c in load(more).challenges] == expected
    monkeypatch.setenv("ATTNLAB_CATALOGUE", str(more))
    assert [c.slug for c in load().challenges] == expected


def test_the_shipped_folder_named_again_changes_nothing(alone):
    """`--catalogue challenges` in a checkout is no catalogue full of doubles."""
    write(alone)
    found = load(alone)
    assert (len(found.challenges), found.broken) == (1, ())


def test_a_slug_that_is_taken_is_told(alone, tmp_path_factory):
    """A second challenge of the same name neither replaces the first nor vanishes."""
    write(alone)
    more = tmp_path_factory.mktemp("more")
    folder = write(more)
    found = load(more)
    assert found.find("too-sharp").folder == str(alone / "attention/too-sharp")
    assert found.broken[0].message.startswith("attention/too-sharp already exists in ")
    assert found.broken[0].where == str(folder)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: None, "does not exist"),
        (lambda p: p.write_text(""), "is not a folder"),
        (lambda p: p.mkdir(), "holds no TOPIC/SLUG/challenge.toml"),
        (lambda p: write(p.parent, slug="more/mine"), "holds no TOPIC/SLUG/challenge.toml"),
    ],
    ids=["missing", "file", "empty", "one-topic"],
)
def test_a_wrong_catalogue_folder_is_refused(alone, tmp_path_factory, make, message):
    """A mistyped --catalogue is not silently an empty one."""
    folder = tmp_path_factory.mktemp("base") / "more"
    make(folder)
    with pytest.raises(Refused) as caught:
        load(folder)
    assert message in caught.value.message
    assert "--catalogue" in caught.value.message


def test_the_variable_is_named_when_it_is_wrong(alone, monkeypatch):
    """Who set ATTNLAB_CATALOGUE long ago learns that it is still set."""
    monkeypatch.setenv("ATTNLAB_CATALOGUE", "/nowhere")
    with pytest.raises(Refused, match="ATTNLAB_CATALOGUE: /nowhere does not exist"):
        load()


def test_an_installation_without_challenges_is_our_fault(monkeypatch, tmp_path):
    """A wheel built wrong says so, with exit code 70, and is no empty list."""
    (tmp_path / "attnlab").mkdir()
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "attnlab" / "catalogue" / "load.py"))
    with pytest.raises(Broken, match="challenges that ship with attnlab are missing"):
        catalogue.shipped_folder()


def test_the_wheel_folder_comes_before_the_checkout(monkeypatch, tmp_path):
    """Inside a wheel the challenges lie in the package."""
    for folder in ("attnlab/challenges", "challenges"):
        (tmp_path / folder).mkdir(parents=True)
    monkeypatch.setattr(catalogue, "__file__", str(tmp_path / "attnlab" / "catalogue" / "load.py"))
    assert catalogue.shipped_folder() == tmp_path / "attnlab" / "challenges"


def test_reading_the_catalogue_imports_nothing_heavy():
    """`attnlab list` starts at once: neither torch, nor pydantic, nor rich, nor typer."""
    heavy = "{'torch', 'pydantic', 'rich', 'typer', 'difflib'} & set(sys.modules)"
    code = f"import sys; from attnlab.catalogue.load import load; load(); print({heavy} or 'light')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "light\n"


def test_topics_of_a_users_catalogue_are_noted_and_not_what_lies_beside_them(
    alone, tmp_path_factory, monkeypatch
):
    """A candidate may not read them; an environment in the same folder has to be read."""
    monkeypatch.setattr(catalogue, "opened_topics", set())
    more = tmp_path_factory.mktemp("more")
    write(alone)
    write(more, slug="position/mine")
    (more / ".venv").mkdir()
    load(more)
    assert catalogue.opened_topics == {str((more / "position").resolve())}


def test_a_name_reads_only_the_folder_that_may_hold_it(monkeypatch):
    """Of hundreds of files a command about one challenge reads a few, whatever is asked of it."""
    read = []

    def watched(folder):
        read.append(folder.name)
        return read_base(folder)

    monkeypatch.setattr("attnlab.catalogue.bases.read_base", watched)
    shipped = load()
    bug = shipped.find("cache/it-forgets-after-two")
    assert read == [Path(bug.folder).name]
    assert shipped.find_program("char-gpt")
    assert {c.base for c in shipped.find_base(read[0])} == {bug.base}
    assert set(read) == {Path(bug.folder).name}
