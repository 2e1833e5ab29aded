"""Temporary directories go with their process, and those of killed processes with the next one."""

import itertools
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millstream.scratch import sweep

MAKE = """
import sys, time
from pathlib import Path
from millstream.scratch import keep, remove_with_scratch, scratch, temporary
shared = Path(sys.argv[1])
shared.mkdir()
remove_with_scratch(shared)
(temporary("x-") / "rows").write_text("1")
log = scratch() / "a.log"
log.write_text("told")
if "keep" in sys.argv:
    keep(log)
print(scratch(), flush=True)
if "wait" in sys.argv:
    time.sleep(600)
"""

NUMBERS = itertools.count()


def process(above: Path, *how: str) -> tuple[subprocess.Popen[str], Path]:
    """A process with a temporary directory, and that directory."""
    child = subprocess.Popen(
        [sys.executable, "-c", MAKE, str(above.parent / f"shared{next(NUMBERS)}"), *how],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(above)},
    )
    assert child.stdout is not None
    with child.stdout:
        return child, Path(child.stdout.readline().strip())


def test_it_is_for_its_owner_only_and_goes_with_the_process(tmp_path: Path) -> None:
    above = tmp_path / "tmp"
    above.mkdir()
    child, directory = process(above, "wait")
    assert directory.name.startswith(f"millstream-{child.pid}-")
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700
    child.kill()
    child.wait()
    child, directory = process(above)
    assert child.wait() == 0
    assert list(above.iterdir()) == []


def test_what_a_killed_process_left_is_swept_by_the_next(tmp_path: Path) -> None:
    above = tmp_path / "tmp"
    above.mkdir()
    killed, old = process(above, "wait")
    alive, other = process(above, "wait")
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    assert old.exists()
    process(above)[0].wait()
    assert list(above.iterdir()) == [other]
    assert (other / "a.log").exists()
    assert len(list(tmp_path.glob("shared*"))) == 1
    alive.kill()
    alive.wait()


def test_a_file_that_was_told_of_stays_for_a_week(tmp_path: Path) -> None:
    above = tmp_path / "tmp"
    above.mkdir()
    child, directory = process(above, "keep")
    child.wait()
    sweep(above)
    assert sorted(path.name for path in directory.iterdir()) == ["a.log", "kept", "lock"]
    old = time.time() - 8 * 86_400
    os.utime(directory / "kept", (old, old))
    sweep(above)
    assert not directory.exists()


def test_links_files_and_directories_of_others_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    above, elsewhere = tmp_path / "above", tmp_path / "elsewhere"
    for directory in (above / "millstream-1-abc", elsewhere):
        directory.mkdir(parents=True)
        (directory / "lock").touch()
    (above / "millstream-2-abc").symlink_to(elsewhere)
    (above / "millstream-3-abc").touch()
    (above / "millstream-results").mkdir()
    uid = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: uid + 1)
    sweep(above)
    assert len(list(above.iterdir())) == 4
    monkeypatch.setattr(os, "getuid", lambda: uid)
    sweep(above)
    assert sorted(path.name for path in above.iterdir()) == [
        "millstream-2-abc",
        "millstream-3-abc",
        "millstream-results",
    ]
    assert (elsewhere / "lock").exists()


def test_a_directory_that_is_just_being_made_stays(tmp_path: Path) -> None:
    (tmp_path / "millstream-4-abc").mkdir()
    sweep(tmp_path)
    assert list(tmp_path.iterdir())
    old = time.time() - 7200
    os.utime(tmp_path / "millstream-4-abc", (old, old))
    sweep(tmp_path)
    assert not list(tmp_path.iterdir())
