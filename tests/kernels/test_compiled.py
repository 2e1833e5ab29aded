"""What is compiled, and when."""

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

from numba.core.dispatcher import Dispatcher

from millstream import kernels


def compiled():
    """All compiled functions, with the modules that have them."""
    for module in pkgutil.iter_modules(kernels.__path__):
        loaded = importlib.import_module(f"millstream.kernels.{module.name}")
        for value in vars(loaded).values():
            if isinstance(value, Dispatcher):
                yield loaded, value


def test_compiled_code_is_cached_and_depends_on_no_other_file():
    """Numba's cache does not notice when a function or a constant that another file defines has changed."""
    for module, function in compiled():
        assert function.py_func.__module__ == module.__name__
        assert function._cache.cache_path
        text = Path(module.__file__).read_text()
        for name in function.py_func.__code__.co_names:
            used = vars(module).get(name)
            if isinstance(used, Dispatcher):
                assert used.py_func.__module__ == module.__name__, (function, used)
            if isinstance(used, int | float):
                assert re.search(rf"^(\w+, )*{name}(, \w+)* = ", text, re.MULTILINE), (function, name)


def test_nothing_is_compiled_once_a_query_runs():
    script = Path(__file__).parent / "after_warming.py"
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
