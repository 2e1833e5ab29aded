"""Content of the directory of a file sink, for readers that honour its list of finished batches."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import pyarrow.parquet as pq

from tests.recovery.bids import text


def rows(directory: Path) -> list[tuple[str, ...]]:
    """All rows as texts, in no order. Files that a killed batch left behind are on no list."""
    found = []
    for path in committed(directory):
        records: list[dict[str, Any]]
        if path.suffix == ".parquet":
            records = pq.ParquetFile(path).read().to_pylist()
        else:
            records = [_from_json(line) for line in path.read_text().splitlines()]
        found += [tuple(map(text, record.values())) for record in records]
    return found


def committed(directory: Path) -> list[Path]:
    """The files that belong to finished batches."""
    written = (directory / "_spark_metadata").iterdir()
    lists = {int(path.stem): path for path in written if path.stem.isdigit()}
    # From time to time Spark writes all lists so far into one.
    compact = max((number for number, path in lists.items() if path.suffix == ".compact"), default=-1)
    recent = [path for number, path in sorted(lists.items()) if number >= compact]
    return [path for listing in recent for path in _files(listing)]


def _files(listing: Path) -> Iterator[Path]:
    _, *entries = listing.read_text().splitlines()
    for entry in entries:
        yield Path(unquote(urlparse(json.loads(entry)["path"]).path))


def _from_json(line: str) -> dict[str, Any]:
    record = json.loads(line)
    return {**record, "t": datetime.fromisoformat(record["t"])}
