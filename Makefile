# make demo    runs the flagship challenge          make test    runs the tests
# make check   format, lint, types, tests           make clean   removes what these made
# make docs    writes the pages that are generated  make test-peers   compares with other libraries
# make strength   grades the grader: every bug that its mutations can make must be rejected
# make faults   seeds faults into a copy of attnlab: the tests must catch them
# make hostile   grades hostile and faulty files; as root also without capabilities
# make accuracy   traces right and wrong models, and writes docs/tracer-accuracy.md
# make triage   runs triage on wrong and right files, and writes docs/triage-accuracy.md
# make diagnosis  compares bugs and mutants with right files, and writes docs/diagnosis-accuracy.md
#
# Each target makes .venv first when it is not there or half made. PIP_ARGS goes to pip, as in
#   make test PIP_ARGS="--extra-index-url https://download.pytorch.org/whl/cpu"
PYTHON ?= $(shell command -v python3.11 || command -v python3)
PIP_ARGS ?=
BIN := .venv/bin
READY := .venv/.ready
# Tests and checks start hundreds of processes: attnlab is compiled once, whatever the shell says.
export PYTHONDONTWRITEBYTECODE :=
PEERS := tests/references/peers tests/accuracy/peers tests/catalogue/peers

.PHONY: faults hostile demo test check strength accuracy triage lint docs quiz-check test-peers clean

demo: $(READY)
	@$(BIN)/attnlab run crash-at-out-proj || test $$? -eq 1  # the flagship crashes: that is the demo

# Without those of test-peers, which would be run once more where other libraries are installed.
TESTS := $(BIN)/python -m pytest -n auto --dist loadfile $(addprefix --ignore=,$(PEERS))

test: $(READY)
	$(TESTS)

check: lint
	$(TESTS)

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

# Grades the grader with thousands of bugs; writes the table. Many minutes on two cores; what was
# measured is in .strength.sqlite, so that a run that was ended goes on where it was.
strength: $(READY)
	$(BIN)/attnlab check --strength --table docs/grader-strength.md --resume .strength.sqlite

# Hostile files and forbidden acts, each with its expected outcome; for root also without capabilities.
HOSTILE := -m pytest -n auto tests/worker/test_hostile.py tests/worker/sandbox tests/test_doctor.py
hostile: $(READY)
	$(BIN)/python $(HOSTILE)
	@test "$$(id -u)" -ne 0 || setpriv --bounding-set=-all --inh-caps=-all $(BIN)/python $(HOSTILE)

# What the tracer finds on models that others wrote, and on bugs made again; about a minute.
accuracy: .venv/.peers
	$(BIN)/python -m benchmarks.accuracy

# How often triage names the cause of a bug; a quarter of an hour. UNOPENED=FOLDER adds the half
# that is kept in benchmarks/triage/unopened.tar.xz, once it is unpacked there.
diagnosis: $(READY)
	$(BIN)/python -m benchmarks.diagnosis --per-file 1 --write docs/diagnosis-accuracy.md

triage: $(READY)
	$(BIN)/python -m benchmarks.triage --write docs/triage-accuracy.md $(if $(UNOPENED),--unopened $(UNOPENED))

# Draws ten thousand questions of the kinds that are drawn by seed, and one for every bug.
quiz-check: $(READY)
	$(BIN)/python -m benchmarks.quiz

docs: $(READY)
	$(BIN)/python docs/make.py

# References and traces against libraries that nobody here wrote; they are large, so they are apart.
test-peers: .venv/.peers
	$(BIN)/python -m pytest $(PEERS)

.venv/.peers: $(READY)
	$(BIN)/python -m pip install --disable-pip-version-check --quiet $(PIP_ARGS) -c constraints.txt -e '.[dev,peers]'
	@touch $@

# The file says that the installation ran to its end; a venv without it is repaired or made anew.
$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "attnlab needs Python 3.11 or newer"; exit 1; }
	@$(BIN)/python -m pip --version > /dev/null 2>&1 || { rm -rf .venv; $(PYTHON) -m venv .venv; }
	$(BIN)/python -m pip install --disable-pip-version-check --quiet $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf .strength.sqlite* .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

# Whether the tests see bugs in attnlab itself; some minutes.
faults: $(READY)
	$(BIN)/python -m benchmarks.faults
