"""Spark's part of a checkpoint, read from outside: how far it is, what it has read, whether it is whole.

Spark writes ``offsets/N`` before it runs batch N, ``commits/N`` after it, and for a source of files
``sources/I/K``, the list of files that entry K of its log stands for; now and then one ``K.compact`` takes
the place of all entries before it. Everything but the last batches may be gone.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

_COMPACT = ".compact"


class SparkCheckpoint:
    """The directory that Spark keeps for one query, which need not be there yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def is_empty(self) -> bool:
        return not self.directory.is_dir() or not any(self.directory.iterdir())

    @property
    def committed(self) -> int:
        """The last batch that Spark knows to be complete; -1 if there is none."""
        return max(self._numbers("commits"), default=-1)

    @property
    def done(self) -> int:
        """The last batch that Spark will not run again; -1 if there is none."""
        return max(self.committed, max(self._numbers("offsets"), default=0) - 1)

    def mend(self) -> None:
        """Remove a commit that was not written whole: Spark then runs the batch again, to the same effect."""
        last = self.directory / "commits" / str(self.committed)
        if last.exists() and _lines(last) is None:
            last.unlink()
            last.with_name(f".{last.name}.crc").unlink(missing_ok=True)

    def damage(self) -> str | None:
        """Why Spark could not go on from here; None if it can, as far as can be seen."""
        offsets, committed = self._numbers("offsets"), self.committed
        if not offsets:
            started = committed >= 0 or any(max(self._log(source), default=0) for source in self._sources())
            return "the files in spark/offsets are missing" if started else None
        last = max(*offsets, committed)
        # Of a batch that is to be run again, Spark needs the beginning too.
        for batch in (last, max(last - 1, 0)):
            if batch not in offsets:
                return f"spark/offsets/{batch} is missing"
            if self._offsets(batch) is None:
                return f"spark/offsets/{batch} is not whole"
        reached = max((entry for source in self._sources() for entry in self._log(source)), default=-1)
        read = max((offset for offset in self._offsets(last) or () if offset is not None), default=-1)
        if reached < read and not self._is_numbered(last):
            return f"entry {read} of a log in spark/sources is missing"
        for source, position in (self._positions(last) if self._is_numbered(last) else {}).items():
            entries = self._log(source)
            whole = [
                entry for entry, path in entries.items() if path.suffix == _COMPACT and entry <= position
            ]
            for entry in range(max(whole, default=0), position + 1):
                if entry not in entries:
                    return f"spark/sources/{source}/{entry} is missing"
                if _lines(entries[entry]) is None:
                    return f"spark/sources/{source}/{entries[entry].name} is not whole"
        return None

    def positions(self, batch: int) -> dict[int, int]:
        """By the number of a source of files: the last entry of its log that batches up to this have read."""
        return self._positions(batch)

    def files(self, source: int, after: int, until: int) -> Iterator[Path]:
        """Files that some entries of a source's log stand for."""
        entries = self._log(source)
        for entry in range(after + 1, until + 1):
            # An entry that is no more has gone into the next compact one.
            later = [
                number for number, path in entries.items() if number >= entry and path.suffix == _COMPACT
            ]
            path = entries.get(entry) or (entries[min(later)] if later else None)
            mark = f'"batchId":{entry}}}'
            for line in (_lines(path) if path is not None else None) or ():
                if mark in line:
                    yield Path(unquote(urlparse(json.loads(line)["path"]).path))

    def _positions(self, batch: int) -> dict[int, int]:
        offsets = self._offsets(batch) or []
        if self._is_numbered(batch):
            return {number: offset for number, offset in enumerate(offsets) if offset is not None}
        # Which offset is whose cannot be told: every source has read at least as much as the one behind all.
        least = min((-1 if offset is None else offset for offset in offsets), default=-1)
        return {number: least for number in self._sources() if least >= 0}

    def _is_numbered(self, batch: int) -> bool:
        """Whether each source has one offset, in their order: one that a query reads twice has two."""
        return len(self._offsets(batch) or ()) == len(self._sources())

    def _offsets(self, batch: int) -> list[int | None] | None:
        """The entries of logs that the sources had read with a batch; None for a source of another kind."""
        lines = _lines(self.directory / "offsets" / str(batch))
        if lines is None:
            return None
        try:
            # The first line is about the batch, and then each source has one; "-" if nothing has come yet.
            sources: list[Any] = [None if line == "-" else json.loads(line) for line in lines[1:]]
        except ValueError:
            return None
        return [
            int(offset["logOffset"]) if isinstance(offset, dict) and set(offset) == {"logOffset"} else None
            for offset in sources
        ]

    def _sources(self) -> list[int]:
        return sorted(self._numbers("sources"))

    def _log(self, source: int) -> dict[int, Path]:
        """The entries of a source's log; a compact one stands for all before it too."""
        directory = self.directory / "sources" / str(source)
        found: dict[int, Path] = {}
        with contextlib.suppress(OSError):
            for path in directory.iterdir():
                if path.stem.isdigit() and path.suffix in ("", _COMPACT):
                    found[int(path.stem)] = path
        return found

    def _numbers(self, name: str) -> set[int]:
        with contextlib.suppress(OSError):
            return {int(path.name) for path in (self.directory / name).iterdir() if path.name.isdigit()}
        return set()


def _lines(path: Path) -> list[str] | None:
    """The lines of one of Spark's files after that of its version; None if it is not whole."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError):
        return None
    if len(lines) < 2 or lines[0] != "v1":
        return None
    with contextlib.suppress(ValueError):
        if lines[-1] == "-" or json.loads(lines[-1]) is not None:
            return lines[1:]
    return None
