"""Runs the tests of one file with pytest: `main` of every py_test (pytest_test.bzl).

    bazel test //tests:data/test_manifest --test_output=all --test_filter='hash or count'
"""

import os
import sys

import pytest


def main() -> int:
    """Returns pytest's exit status; Bazel's variables say what to run and where to write."""
    arguments = ["-p", "no:cacheprovider", *sys.argv[1:]]
    for flag, variable in (("--basetemp={}/pytest", "TEST_TMPDIR"),
                           ("--junitxml={}", "XML_OUTPUT_FILE"), ("-k={}", "TESTBRIDGE_TEST_ONLY")):
        if os.environ.get(variable):
            arguments.append(flag.format(os.environ[variable]))
    status = pytest.main(arguments)
    # Most files have no slow tests, yet a target for them.
    return 0 if status == pytest.ExitCode.NO_TESTS_COLLECTED else status


if __name__ == "__main__":
    sys.exit(main())
