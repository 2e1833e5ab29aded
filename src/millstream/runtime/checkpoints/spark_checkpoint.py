"""Spark's part of a checkpoint, inspected from outside: its progress, its inputs, and damage.

Spark writes ``offsets/N`` before it runs batch N, ``commits/N`` after it, and for a source of files
``sources/I/K``, the list of files of entry K in the source's log; from time to time one ``K.compact``
replaces all entries before it. Spark may have removed everything but the last batches.
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
    """The directory that Spark writes for one query; it may not exist yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def is_empty(self) -> bool:
        return not self.directory.is_dir() or not any(self.directory.iterdir())

    @property
    def committed(self) -> int:
        """The last batch that Spark has committed; -1 if there is none."""
        return max(self._numbers("commits"), default=-1)

    @property
    def done(self) -> int:
        """The last batch that Spark will not run again; -1 if there is none."""
        return max(self.committed, max(self._numbers("offsets"), default=0) - 1)

    def mend(self) -> None:
        """Remove an incomplete commit file: Spark then runs the batch again, with the same effect."""
        last = self.directory / "commits" / str(self.committed)
        if last.exists() and _lines(last) is None:
            last.unlink()
            last.with_name(f".{last.name}.crc").unlink(missing_ok=True)

    def damage(self) -> str | None:
        """Return the reason why Spark cannot continue from here; None if no damage is visible."""
        offsets, committed = self._numbers("offsets"), self.committed
        if not offsets:
            started = committed >= 0 or any(max(self._log(source), default=0) for source in self._sources())
            return "the files in spark/offsets are missing" if started else None
        last = max(*offsets, committed)
        # To repeat a batch, Spark also needs the offsets of the batch before.
        for batch in (last, max(last - 1, 0)):
            if batch not in offsets:
                return f"spark/offsets/{batch} is missing"
            if self._offsets(batch) is None:
                return f"spark/offsets/{batch} is incomplete"
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
                    return f"spark/sources/{source}/{entries[entry].name} is incomplete"
        return None

    def positions(self, batch: int) -> dict[int, int]:
        """Return, by number of the file source, the last log entry read by batches up to this one."""
        return self._positions(batch)

    def files(self, source: int, after: int, until: int) -> Iterator[Path]:
        """Yield the files of a range of entries in a source's log."""
        entries = self._log(source)
        for entry in range(after + 1, until + 1):
            # A removed entry has been merged into the next compact one.
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
        # Offsets cannot be assigned to sources: every source has read at least the smallest of them.
        least = min((-1 if offset is None else offset for offset in offsets), default=-1)
        return {number: least for number in self._sources() if least >= 0}

    def _is_numbered(self, batch: int) -> bool:
        """Return whether each source has one offset, in their order: a source that is read twice has two."""
        return len(self._offsets(batch) or ()) == len(self._sources())

    def _offsets(self, batch: int) -> list[int | None] | None:
        """Return the log entries that the sources had reached with a batch; None for other sources."""
        lines = _lines(self.directory / "offsets" / str(batch))
        if lines is None:
            return None
        try:
            # The first line describes the batch; then each source has one line, "-" before its first data.
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
        """Return the entries of a source's log; a compact one replaces all before it."""
        directory = self.directory / "sources" / str(source)
        entries: dict[int, Path] = {}
        with contextlib.suppress(OSError):
            for path in directory.iterdir():
                if path.stem.isdigit() and path.suffix in ("", _COMPACT):
                    entries[int(path.stem)] = path
        return entries

    def _numbers(self, name: str) -> set[int]:
        with contextlib.suppress(OSError):
            return {int(path.name) for path in (self.directory / name).iterdir() if path.name.isdigit()}
        return set()


def _lines(path: Path) -> list[str] | None:
    """Return the lines of a Spark file after its version line; None if the file is incomplete."""
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
