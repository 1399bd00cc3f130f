# make test  - set everything up, then lint, types, import contract and all tests
# make docs  - the documentation, built strictly into site/, every link checked
# make figures - the figures of the documentation, from docs/figures/draw.py
# make demo  - set everything up, then a shop that is shared out fairly, and the paper's first figure to T = 4e4
# make paper - the experiments of the paper to T = 1e6, and a report: an hour or two
# make slow  - the tests that take minutes
# make bench - speed, in ratios against what people use today; one part: make bench SECTIONS=designs
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORE   := $(VENV)/.core
COMPILED := $(VENV)/.compiled
READY  := $(VENV)/.ready
PEERS  := $(VENV)/.peers
PYDVL  := .venv-pydvl
DOCS   := $(VENV)/.ready-docs
# tests start many processes: where bytecode is not kept, each compiles every module again
unexport PYTHONDONTWRITEBYTECODE

.PHONY: test types tests demo paper slow docs figures bench format clean-cache clean

# two at a time: while most of what tests need is being installed, what learners compile is compiled,
# in one process: those that follow find it on disk; and while types are checked, tests begin
test:
	$(MAKE) --no-print-directory --jobs=2 types tests

types: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# three processes, not two, as many tests wait for services more than they compute
tests: $(READY) $(COMPILED)
	$(BIN)/pytest -n 3 --dist worksteal -q

demo: $(READY)
	mkdir -p demo
	$(BIN)/evenhand demo --seconds 15 --page demo/shop.html
	$(BIN)/evenhand reproduce fig1 --max-horizon 4e4 --replications 2 --results demo
	$(BIN)/evenhand report demo

paper: $(READY)
	$(BIN)/evenhand reproduce --max-horizon 1e6 --results paper
	$(BIN)/evenhand report paper

slow: $(READY)
	$(BIN)/pytest -q -m slow

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	$(BIN)/python docs/check_links.py site

figures: $(DOCS)
	$(BIN)/python docs/figures/draw.py

bench: $(PEERS)
	$(BIN)/python -m benchmarks $(SECTIONS)

format: $(READY)
	$(BIN)/ruff check --fix . ; $(BIN)/ruff format .

# what compiling needs, and the few tests that are run meanwhile
$(CORE): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile --editable . pytest hypothesis
	touch $(CORE)

$(COMPILED): $(CORE)
	$(BIN)/python -c "from evenhand.learners import EvenHand as A, FullSets as B; [kind(6, 3, seed=1).warm() for kind in (A, B)]"
	touch $(COMPILED)

$(READY): $(CORE)
	$(BIN)/pip install --quiet --no-compile "evenhand[lab,dev,serve-pg]"
	touch $(READY)

# a peer that cannot be installed is a row that says so; pyDVL needs an older numpy than ours
$(PEERS): $(READY) benchmarks/requirements.txt benchmarks/requirements-pydvl.txt
	-xargs -n 1 $(BIN)/pip install --quiet < benchmarks/requirements.txt
	-$(PYTHON) -m venv $(PYDVL) && $(PYDVL)/bin/pip install --quiet -r benchmarks/requirements-pydvl.txt
	touch $(PEERS)

$(DOCS): $(READY)
	$(BIN)/pip install --quiet --editable ".[docs,examples]"
	touch $(DOCS)

clean-cache:
	find src tests benchmarks -name '*.nb[ic]' -delete
	rm -f $(COMPILED)

clean: clean-cache
	rm -rf $(VENV) $(PYDVL) site .mypy_cache .ruff_cache .pytest_cache .hypothesis
