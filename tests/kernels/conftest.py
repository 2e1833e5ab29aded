"""Lets the tests of kernels share `checks` and `brute`; test files cannot import each other otherwise."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
