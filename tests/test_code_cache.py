"""Compiled code is kept in one directory for each state of the sources."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

import millstream
from millstream import code_cache

CALLEE = "from millstream.jit import njit\nSTEP = 1\n\n@njit(cache=True)\ndef step(x):\n    return x + STEP\n"
CALLER = """
from millstream.callee import step
from millstream.jit import njit

@njit(cache=True)
def twice(x):
    return step(step(x))
"""
ASK = """
import json
from millstream.caller import twice
value = twice(1)
print(json.dumps([value, sum(twice.stats.cache_hits.values()), sum(twice.stats.cache_misses.values())]))
"""


class Little:
    """A package with two compiled functions in two files, of which one calls the other."""

    def __init__(self, directory: Path) -> None:
        self.package = directory / "millstream"
        self.cache = directory / "cache"
        self.package.mkdir()
        own = Path(millstream.__file__).parent
        for name in ("code_cache.py", "files.py", "jit.py"):
            shutil.copy(own / name, self.package)
        (self.package / "__init__.py").touch()
        (self.package / "callee.py").write_text(CALLEE)
        (self.package / "caller.py").write_text(CALLER)

    def ask(self, **environment: str) -> list[int]:
        """Ask a new process: the value of the caller, and how many of its forms it found and compiled."""
        variables = {"PYTHONPATH": str(self.package.parent), "XDG_CACHE_HOME": str(self.cache), **environment}
        told = subprocess.run(
            [sys.executable, "-c", ASK],
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            check=True,
        )
        answer: list[int] = json.loads(told.stdout)
        return answer

    @property
    def directories(self) -> set[str]:
        return {path.name for path in (self.cache / "millstream" / "code").iterdir()}


@pytest.fixture
def little(tmp_path: Path) -> Little:
    return Little(tmp_path)


def test_the_second_process_compiles_nothing(little: Little) -> None:
    assert little.ask() == [3, 0, 1]
    assert little.ask() == [3, 1, 0]
    (directory,) = (little.cache / "millstream" / "code").iterdir()
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700


def test_locks_are_closed_when_the_process_ends(little: Little) -> None:
    ask = "from millstream.code_cache import _held, code_directory; code_directory(); print(len(_held))"
    variables = {"PYTHONPATH": str(little.package.parent), "XDG_CACHE_HOME": str(little.cache)}
    told = subprocess.run(
        [sys.executable, "-X", "dev", "-c", ask],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (told.stdout, told.stderr) == ("1\n", "")


def test_a_change_of_a_callee_in_another_file_is_a_change_of_the_code(little: Little) -> None:
    assert little.ask() == [3, 0, 1]
    (little.package / "callee.py").write_text(CALLEE.replace("x + STEP", "x * 10"))
    assert little.ask() == [100, 0, 1]
    (little.package / "callee.py").write_text(CALLEE.replace("STEP = 1", "STEP = 5"))
    assert little.ask() == [11, 0, 1]
    (little.package / "callee.py").write_text(CALLEE)
    assert little.ask() == [3, 1, 0]
    assert len(little.directories) == 3


def test_other_sources_do_not_count(little: Little) -> None:
    assert little.ask() == [3, 0, 1]
    (little.package / "labels.py").write_text("WORD = 'window'")
    assert little.ask() == [3, 1, 0]


def test_equal_sources_elsewhere_share_the_code(little: Little, tmp_path: Path) -> None:
    assert little.ask() == [3, 0, 1]
    (tmp_path / "moved").mkdir()
    shutil.copytree(little.package, tmp_path / "moved" / "millstream")
    assert little.ask(PYTHONPATH=str(tmp_path / "moved")) == [3, 1, 0]


def test_what_is_edited_after_the_digest_was_made_is_not_kept(little: Little) -> None:
    before = f"""
from pathlib import Path
from millstream.code_cache import code_directory
code_directory()
callee = Path({str(little.package / "callee.py")!r})
callee.write_text(callee.read_text().replace("STEP = 1", "STEP = 50"))
"""
    variables = {**os.environ, "PYTHONPATH": str(little.package.parent), "XDG_CACHE_HOME": str(little.cache)}
    told = subprocess.run(
        [sys.executable, "-c", before + ASK], env=variables, capture_output=True, text=True, check=True
    )
    assert json.loads(told.stdout) == [101, 0, 1]
    (little.package / "callee.py").write_text(CALLEE)
    assert little.ask() == [3, 0, 1]


def test_broken_and_unwritable_files_stop_nothing(little: Little) -> None:
    little.ask()
    (directory,) = (little.cache / "millstream" / "code").iterdir()
    for path in directory.glob("*.nb?"):
        path.write_bytes(path.read_bytes()[:20])
    assert little.ask() == [3, 0, 1]
    assert little.ask() == [3, 1, 0]


def test_a_place_of_others_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in it would be executed."""
    theirs = tmp_path / f"millstream-{os.getuid()}"
    theirs.mkdir()
    theirs.chmod(0o777)
    assert code_cache._first_usable(None, None, str(tmp_path)) is None
    theirs.chmod(0o700)
    assert code_cache._first_usable(None, None, str(tmp_path)) == theirs / "code"


def test_without_a_home_code_is_kept_in_the_temporary_directory(little: Little, tmp_path: Path) -> None:
    nowhere = tmp_path / "file"
    nowhere.touch()
    elsewhere = {"XDG_CACHE_HOME": str(nowhere), "TMPDIR": str(tmp_path)}
    assert little.ask(**elsewhere) == [3, 0, 1]
    assert little.ask(**elsewhere) == [3, 1, 0]
    assert (tmp_path / f"millstream-{os.getuid()}" / "code").is_dir()


def test_old_directories_are_removed_but_not_those_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    own = code_cache.code_directory()
    assert own is not None
    now = time.time()
    for days in range(8):
        other = own.parent / f"old{days}"
        other.mkdir()
        (other / "used.lock").touch()
        os.utime(other / "used.lock", (now - days * 86_400 - 10,) * 2)
    with (own.parent / "old6" / "used.lock").open() as used:
        fcntl.flock(used, fcntl.LOCK_SH)
        code_cache.remove_old_code()
    assert sorted(path.name for path in own.parent.iterdir()) == sorted(
        [own.name, "old0", "old1", "old2", "old3", "old6"]
    )


def test_neither_a_check_nor_help_looks_for_the_directory() -> None:
    """They compile nothing, so they need not read the sources."""
    script = (
        "import sys\nfrom millstream.cli.app import run_app\n"
        "sys.argv = ['millstream', *sys.argv[1:]]\n"
        "try:\n    run_app()\nexcept SystemExit:\n    pass\n"
        "print('millstream.code_cache' in sys.modules, 'numba' in sys.modules)"
    )
    example = Path(__file__).parents[1] / "examples" / "auction.esl"
    for arguments in (["--help"], ["check", str(example)]):
        told = subprocess.run(
            [sys.executable, "-c", script, *arguments], capture_output=True, text=True, check=True
        )
        assert told.stdout.splitlines()[-1] == "False False"
