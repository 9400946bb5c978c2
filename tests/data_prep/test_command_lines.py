"""What a person sees who calls the command lines, rightly or wrongly."""

import json
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
MISTAKES = {
    "build_pretraining_data": [
        ({"input": "nothing-here*.txt"}, "--input: no file matches 'nothing-here*.txt'"),
        ({"vocab_file": "no.txt"}, "cannot read the vocabulary no.txt"),
        ({"vocab_file": ""}, "--vocab_file is missing"),
        ({"output_dir": "/proc/records"}, "cannot write /proc/records"),
        ({"max_seq_length": 4}, "--max_seq_length must be 5 or more and at most 65,536"),
        ({"packing": "tight"}, "--packing must be one of full, reference. Received: 'tight'"),
        ({"short_example_rate": 0.1}, "--short_example_rate belongs to --packing=reference"),
        ({"seed": 10**30}, "--seed must be -9,223,372,036,854,775,808 or more and"),
        ({"shard_text_bytes": 10**12}, "--shard_text_bytes must be 1,000 or more"),
        ({"num_workers": 0}, "--num_workers must be in [1, 1000]. Received: 0"),
        ({"runner": "DirectRunner", "num_workers": 2}, "--num_workers belongs to --runner=local"),
        ({"beam_options": "--direct_num_workers=2"}, "--beam_options belongs to Beam's runners"),
        ({"min_line_characters": 9, "max_line_characters": 8}, "--max_line_characters must be at "),
        ({"near_duplicate_threshold": 0.9}, "--near_duplicate_threshold belongs to --drop_near_"),
        ({"languages": "en,english"}, "--languages must be one of ace, af, am, "),
        ({"decontaminate": "nowhere"}, "--decontaminate=nowhere is no directory"),
    ],
    "build_vocab": [
        ({"output": ""}, "--output is missing"),
        ({"vocab_size": 500, "reserved_tokens": 451},
         "--reserved_tokens must be at most 450 of --vocab_size=500. Received: 451"),
        ({"vocab_size": 50}, "--vocab_size must be 100 or more and at most 1,000,000. Received"),
    ],
}
REFUSED_ALL = """
import json, sys
from absl import flags
from data_prep import {name} as command
from electra_tf.platform.errors import UserError
for given in json.load(sys.stdin):
    flags.FLAGS.unparse_flags()
    for flag in flags.FLAGS:
        flags.FLAGS[flag].unparse()
    flags.FLAGS(["program", *(f"--{{name}}={{value}}" for name, value in given.items())])
    try:
        command.main()
        print("no error")
    except UserError as error:
        print(json.dumps(str(error)))
"""


def call(name, given, *more):
    flags = [f"--{flag}={value}" for flag, value in given.items()]
    return subprocess.run([sys.executable, "-m", f"data_prep.{name}", *flags, *more],
                          cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture
def arguments(corpus, vocab_file, tmp_path):
    """Good arguments of the commands, by flag."""
    return {"build_pretraining_data": {"input": f"{corpus}/*.txt", "vocab_file": str(vocab_file),
                                       "output_dir": str(tmp_path / "out")},
            "build_vocab": {"input": f"{corpus}/*.txt", "output": str(tmp_path / "out")}}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_that_names_it_and_writes_nothing(arguments, name, tmp_path):
    """All mistakes in one process, for it starts in seconds."""
    given = [arguments[name] | changes for changes, _ in MISTAKES[name]]
    done = subprocess.run([sys.executable, "-c", REFUSED_ALL.format(name=name)], cwd=ROOT,
                          input=json.dumps(given), capture_output=True, text=True, check=True)
    errors = done.stdout.splitlines()
    assert len(errors) == len(given)
    assert [(expected, error) for (_, expected), error in zip(MISTAKES[name], errors, strict=True)
            if not json.loads(error).startswith(expected) or "\n" in json.loads(error)] == []
    assert list(tmp_path.iterdir()) == []


def test_records_are_built(arguments):
    name = "build_pretraining_data"
    built = call(name, arguments[name], "--num_workers=1", "--held_out_fraction=0")
    assert built.returncode == 0, built.stderr
    assert "of which in the examples    100.00 %" in built.stdout
    assert "note: no document was held out" in built.stderr


def test_a_vocabulary_is_learned_and_a_second_one_refused(arguments, tmp_path):
    given = arguments["build_vocab"] | {"vocab_size": 200}
    built = call("build_vocab", given, "--num_workers=1")
    assert built.returncode == 0, built.stderr
    assert "200 tokens learned in" in built.stdout
    assert len((tmp_path / "out").read_text().splitlines()) == 200
    again = call("build_vocab", given)
    assert (again.returncode, again.stderr.count("\n")) == (1, 1)
    assert again.stderr.startswith("error: ") and "--overwrite" in again.stderr
