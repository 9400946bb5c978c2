"""The command lines: one line for each mistake, and results."""

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
        ({"output_dir": "/proc/records"}, "cannot write /proc/records"),
        ({"max_seq_length": 4}, "--max_seq_length must be 5 or more and at most 65,536"),
        ({"short_example_rate": 0.1}, "--short_example_rate belongs to --packing=reference"),
        ({"runner": "DirectRunner", "num_workers": 2}, "--num_workers belongs to --runner=local"),
        ({"beam_options": "--direct_num_workers=2"}, "--beam_options belongs to Beam's runners"),
        ({"min_line_characters": 9, "max_line_characters": 8}, "--max_line_characters must be at "),
        ({"near_duplicate_threshold": 0.9}, "--near_duplicate_threshold belongs to --drop_near_"),
        ({"decontaminate": "nowhere"}, "--decontaminate=nowhere is not a directory"),
    ],
    "build_vocab": [
        ({"vocab_size": 500, "reserved_tokens": 451},
         "--reserved_tokens must be at most 450 of --vocab_size=500. Received: 451"),
        ({"output": __file__}, f"{__file__} exists; give another --output, or --overwrite."),
        ({"vocab_size": 50}, "--vocab_size must be 100 or more and at most 1,000,000. Received"),
    ],
}
CALLS = """
import json, sys
from absl import flags
from data_prep import {name} as command
from electra_tf.core.errors import UserError
for values in json.load(sys.stdin):
    flags.FLAGS.unparse_flags()
    for flag in flags.FLAGS:
        flags.FLAGS[flag].unparse()
    flags.FLAGS(["program", *(f"--{{name}}={{value}}" for name, value in values.items())])
    try:
        command.main()
    except UserError as error:
        print(json.dumps(str(error)))
"""
RESULTS = {
    "build_pretraining_data": ({"held_out_fraction": 0},
                               "of which in the examples    100.00 %"),
    "build_vocab": ({"vocab_size": 200}, "200 tokens learned in")}


@pytest.fixture
def arguments(corpus, vocab_file, tmp_path):
    """Valid arguments of the commands, by flag."""
    return {"build_pretraining_data": {"input": f"{corpus}/*.txt", "vocab_file": str(vocab_file),
                                       "output_dir": str(tmp_path / "out")},
            "build_vocab": {"input": f"{corpus}/*.txt", "output": str(tmp_path / "out")}}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_that_names_it_and_a_command_prints_its_result(arguments, name):
    """All in one process, which starts in seconds; files of a mistake would stop the last call."""
    changes, printed = RESULTS[name]
    values = [arguments[name] | {"num_workers": 1} | changed
              for changed in (*(changed for changed, _ in MISTAKES[name]), changes)]
    done = subprocess.run([sys.executable, "-c", CALLS.format(name=name)], cwd=ROOT,
                          input=json.dumps(values), capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    errors, result = lines[:len(MISTAKES[name])], lines[len(MISTAKES[name]):]
    assert [(expected, error) for (_, expected), error in zip(MISTAKES[name], errors, strict=True)
            if not json.loads(error).startswith(expected) or r"\n" in error] == []
    assert any(printed in line for line in result)
