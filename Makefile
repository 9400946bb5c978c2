# Everything runs in .venv, which is made on first use and again when the requirements change.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
REQUIREMENTS := requirements.txt requirements-dev.txt constraints.txt

# The first Python 3.11 on the path; `make PYTHON=/path/to/python3.11 ...` names another.
PYTHON ?= $(shell for name in python3.11 python3 python; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null \
	&& echo "$$name" && break; done)

# PyTorch and Hugging Face, which `make bench` and some tests compare with, in an environment of
# their own.
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed

# Where `make quickstart` puts its vocabulary, records and model.
QUICKSTART := quickstart

# TensorFlow's start-up chatter hides what a person should read.
export TF_CPP_MIN_LOG_LEVEL ?= 2
export GRPC_VERBOSITY ?= ERROR
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install quickstart test test-slow test-all lint peers bench build-files clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(STAMP) ## Create .venv with the pinned requirements.

$(STAMP): $(REQUIREMENTS)
	@'$(PYTHON)' -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null || { \
	  echo "error: Python 3.11 is needed (TensorFlow 2.20's wheels are tested on it); found:" \
	    "$$('$(or $(PYTHON),python3)' --version 2>&1 || true)." \
	    "Install python3.11, or name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Installing the pinned requirements into $(VENV) (about 2 GB, some minutes) ..."
	@rm -rf $(VENV)
	@'$(PYTHON)' -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "error: no virtual environment; on Debian: apt-get install python3.11-venv" >&2; exit 1; }
	@$(BIN)/python -m pip install --quiet --no-input -r requirements-dev.txt -c constraints.txt
	@touch $@

# The commands to type for text of your own, there with --input='corpus/*.txt'.
quickstart: $(STAMP) ## Pre-train a tiny ELECTRA on Python's own documentation (5 minutes, 2 cores).
	$(BIN)/python -m data_prep.build_vocab --overwrite \
	  --input=embedded:python --output=$(QUICKSTART)/vocab.txt --vocab_size=2000
	$(BIN)/python -m data_prep.build_pretraining_data \
	  --input=embedded:python --vocab_file=$(QUICKSTART)/vocab.txt \
	  --output_dir=$(QUICKSTART)/records --max_seq_length=64 --held_out_fraction=0.05
	$(BIN)/python run_pretraining.py --log_every_steps=100 --eval_every_steps=500 \
	  --data_dir=$(QUICKSTART)/records --model_dir=$(QUICKSTART)/model --model_size=tiny
	$(BIN)/python run_pretraining.py --mode=samples \
	  --data_dir=$(QUICKSTART)/records --model_dir=$(QUICKSTART)/model
	@echo "The curves: $(QUICKSTART)/model/loss_curves.png"

test: $(STAMP) ## Run the tests, without the slow ones.
	$(BIN)/python -m pytest -m "not slow"

test-slow: $(STAMP) ## Run the slow tests only: real processes, kills and restarts.
	$(BIN)/python -m pytest -m slow

test-all: $(STAMP) ## Run every test.
	$(BIN)/python -m pytest

lint: $(STAMP) ## Check format rules and docstrings.
	$(BIN)/python -m ruff check .

peers: $(PEERS_STAMP) ## Create .venv-peers: with it `make test` compares with PyTorch itself.

# Flags of your own: make bench BENCH_FLAGS='--cases=small-128 --systems=ours,hf-bfloat16'
bench: $(STAMP) $(PEERS_STAMP) ## Measure the training step beside its peers' (an hour, 2 cores).
	$(BIN)/python -m benchmarks.pretraining $(BENCH_FLAGS)

$(PEERS_STAMP): requirements-peers.txt | $(STAMP)
	@echo "Installing the peers into $(PEERS) (about 1 GB) ..."
	@rm -rf $(PEERS)
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python -m pip install --quiet --no-input --retries=1 -r requirements-peers.txt
	@touch $@

build-files: $(STAMP) ## Write the BUILD files anew, after imports changed.
	$(BIN)/python -m tests.layering.build_files

clean: ## Remove the environments, caches and what `make quickstart` wrote.
	rm -rf $(VENV) $(PEERS) $(QUICKSTART) .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
