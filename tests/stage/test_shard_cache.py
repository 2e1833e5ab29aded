"""Shared memory: nothing is loaded from, or left in, a directory that another user can write to."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.stage import shard_cache


class Executed:
    """Leaves a trace where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, (str(TRACE[0]),)


TRACE: list[Path] = []


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of this user, which is not there yet."""
    root = tmp_path / "shm" / "millstream"
    root.parent.mkdir()
    root.parent.chmod(0o1777)
    monkeypatch.setattr(shard_cache, "_root", lambda: root)
    monkeypatch.setattr(shard_cache, "_known", {})
    return root


def shard(version: int) -> Any:
    return SimpleNamespace(version=version)


def forgotten(name: str = "0") -> None:
    shard_cache._known.clear()


def test_a_shard_is_found_by_another_worker(memory: Path) -> None:
    shard_cache.remember("run", "0", shard(3))
    forgotten()
    assert shard_cache.recall("run", "0", 3) == shard(3)
    assert shard_cache.recall("run", "0", 4) is None
    modes = [path.stat().st_mode & 0o777 for path in (memory, memory / "run")]
    assert modes == [0o700, 0o700]


def test_a_shard_of_another_version_is_not_used(memory: Path) -> None:
    """A micro-batch that is run again after a failure needs the state before it."""
    shard_cache.remember("run", "0", shard(3))
    shard_cache.remember("run", "0", shard(4))
    assert shard_cache.recall("run", "0", 3) == shard(3)
    assert shard_cache.recall("run", "0", 5) is None


def anyone_can_write(directory: Path) -> None:
    directory.chmod(0o777)


def belongs_to_another(directory: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a directory away")
    os.chown(directory, 1234, 1234)


def is_a_link(directory: Path) -> None:
    elsewhere = directory.with_name(f"{directory.name}-elsewhere")
    directory.rename(elsewhere)
    directory.symlink_to(elsewhere)


def can_be_replaced(directory: Path) -> None:
    directory.parent.chmod(0o777)


@pytest.mark.parametrize("spoil", [anyone_can_write, belongs_to_another, is_a_link, can_be_replaced])
@pytest.mark.parametrize("name", ["", "run"])
def test_nothing_is_loaded_where_another_user_can_write(
    memory: Path, tmp_path: Path, spoil: Callable[[Path], None], name: str
) -> None:
    TRACE[:] = [tmp_path / "executed"]
    shard_cache.remember("run", "0", shard(1))
    body = pickle.dumps(Executed())
    (memory / "run" / "0.1").write_bytes(
        (1).to_bytes(8, "little") + len(body).to_bytes(8, "little") + bytes(48) + body
    )
    spoil(memory / name)
    forgotten()
    assert shard_cache.recall("run", "0", 1) is None
    assert not TRACE[0].exists()
    shard_cache.remember("run", "0", shard(2))
    assert not (memory / "run" / "0.2").exists()
    shard_cache.forget("run")


def test_the_planted_file_would_be_executed(memory: Path, tmp_path: Path) -> None:
    """Without the check of the test before, that is."""
    TRACE[:] = [tmp_path / "executed"]
    shard_cache.remember("run", "0", shard(1))
    body = pickle.dumps(Executed())
    (memory / "run" / "0.1").write_bytes(
        (1).to_bytes(8, "little") + len(body).to_bytes(8, "little") + bytes(48) + body
    )
    forgotten()
    shard_cache.recall("run", "0", 1)
    assert TRACE[0].exists()


def test_a_root_that_was_made_open_for_reading_is_closed(memory: Path) -> None:
    memory.mkdir(mode=0o755)
    shard_cache.remember("run", "0", shard(1))
    assert memory.stat().st_mode & 0o777 == 0o700
