"""Runs pytest with the arguments of the command line; the main program of Bazel's test."""

import sys

import pytest

if __name__ == "__main__":
    sys.exit(pytest.main(sys.argv[1:]))
