"""The command lines: results, and one line for each mistake."""

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
        ({"decontaminate": "nowhere"}, "--decontaminate=nowhere is not a directory"),
    ],
    "build_vocab": [
        ({"output": ""}, "--output is missing"),
        ({"vocab_size": 500, "reserved_tokens": 451},
         "--reserved_tokens must be at most 450 of --vocab_size=500. Received: 451"),
        ({"output": __file__}, f"{__file__} exists; give another --output, or --overwrite."),
        ({"vocab_size": 50}, "--vocab_size must be 100 or more and at most 1,000,000. Received"),
    ],
}
REFUSED_ALL = """
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
        print('"no error"')
    except UserError as error:
        print(json.dumps(str(error)))
"""


@pytest.fixture
def arguments(corpus, vocab_file, tmp_path):
    """Valid arguments of the commands, by flag."""
    return {"build_pretraining_data": {"input": f"{corpus}/*.txt", "vocab_file": str(vocab_file),
                                       "output_dir": str(tmp_path / "out")},
            "build_vocab": {"input": f"{corpus}/*.txt", "output": str(tmp_path / "out")}}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_that_names_it_and_writes_nothing(arguments, name, tmp_path):
    """All mistakes in one process, for it starts in seconds."""
    values = [arguments[name] | changes for changes, _ in MISTAKES[name]]
    done = subprocess.run([sys.executable, "-c", REFUSED_ALL.format(name=name)], cwd=ROOT,
                          input=json.dumps(values), capture_output=True, text=True, check=True)
    errors = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(expected, error) for (_, expected), error in zip(MISTAKES[name], errors, strict=True)
            if not error.startswith(expected) or "\n" in error] == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "flag", "printed"), [
    ("build_pretraining_data", "--held_out_fraction=0", "of which in the examples    100.00 %"),
    ("build_vocab", "--vocab_size=200", "200 tokens learned in")])
def test_a_command_prints_its_result(arguments, name, flag, printed):
    flags = [f"--{known}={value}" for known, value in arguments[name].items()]
    done = subprocess.run([sys.executable, "-m", f"data_prep.{name}", *flags, flag,
                           "--num_workers=1"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert printed in done.stdout
