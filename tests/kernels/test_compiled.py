"""Compiled functions, and the time of their compilation."""

import ast
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
from functools import partial
from pathlib import Path
from types import ModuleType

from numba.core.dispatcher import Dispatcher

import millstream
from millstream import jit, kernels
from millstream.code_cache import is_compiled_source

PACKAGE = Path(millstream.__file__).parent
CONSTANTS = (bool, int, float, str, bytes, tuple)


def compiled(package=kernels):
    """All compiled functions of a package, with the modules that have them."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        loaded = importlib.import_module(module.name)
        for value in vars(loaded).values():
            if isinstance(value, Dispatcher):
                yield loaded, value


def used_by(function):
    """The modules in which a compiled function, its callees and its constants are defined."""
    own = inspect.getmodule(function.py_func)
    yield own
    for name in function.py_func.__code__.co_names:
        match vars(own).get(name):
            case Dispatcher() as callee:
                yield inspect.getmodule(callee.py_func)
            case ModuleType() as module if module.__name__.startswith("millstream."):
                yield module
            case value if isinstance(value, CONSTANTS):
                yield defining(name, own)


def defining(name, module):
    """The module that assigns a name which another one has, perhaps by an import."""
    for statement in ast.parse(inspect.getsource(module)).body:
        if isinstance(statement, ast.ImportFrom):
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return defining(alias.name, importlib.import_module(statement.module))
    return module


def test_compiled_code_is_kept_under_a_digest_of_all_that_it_depends_on():
    """Numba does not notice when a function or a constant of another file has changed; the digest does."""
    from millstream import program, progress, stage

    functions = [
        function for package in (kernels, program, progress, stage) for _, function in compiled(package)
    ]
    assert len(functions) > 100
    for function in functions:
        assert function._cache.cache_path, function
        for module in used_by(function):
            assert is_compiled_source(Path(module.__file__)), (function, module)


def test_compiled_methods_are_in_the_digest():
    classes = {cls for methods in jit._methods.values() for cls in methods}
    assert len(classes) > 5
    for cls in classes:
        assert is_compiled_source(Path(inspect.getfile(cls))), cls


def test_loops_over_methods_are_read_from_the_cache():
    """Numba never caches functions that get functions as arguments; methods of named tuples it does."""
    script = """
import numpy as np
from millstream.kernels.aggregates import accumulator, two_stacks
from millstream.kernels.precompile import compile_kernels
compile_kernels()
for loop in (accumulator.fold, two_stacks._slide):
    print(sum(loop.stats.cache_misses.values()), sum(loop.stats.cache_hits.values()))
"""
    run = partial(subprocess.run, capture_output=True, text=True, check=True)
    run([sys.executable, "-c", script])
    again = run([sys.executable, "-c", script]).stdout.split()
    assert again[::2] == ["0", "0"]
    assert min(map(int, again[1::2])) >= 5


def test_numba_compiles_nothing_behind_the_digest():
    """Numba's own cache would keep code that calls a changed function."""
    asking = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if re.search(r"numba import .*jit|numba\.n?jit", path.read_text())
    ]
    assert asking == ["jit.py"]


def test_nothing_is_compiled_once_a_query_runs():
    script = Path(__file__).parent / "after_warming.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
