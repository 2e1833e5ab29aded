"""Spark's part of a checkpoint, written by hand as Spark would write it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path


def write_log(
    spark: Path, source: int, entry: int, files: Mapping[int, Sequence[Path]], compact: bool = False
) -> None:
    """An entry of a source's log; a compact one has the files of all entries up to it."""
    directory = spark / "sources" / str(source)
    directory.mkdir(parents=True, exist_ok=True)
    told = [number for number in files if number == entry or (compact and number < entry)]
    lines = [
        json.dumps({"path": file.as_uri(), "timestamp": 1, "batchId": number}, separators=(",", ":"))
        for number in told
        for file in files[number]
    ]
    (directory / f"{entry}{'.compact' if compact else ''}").write_text("\n".join(["v1", *lines]))


def write_batch(spark: Path, batch: int, positions: Sequence[int | None], *, commit: bool = True) -> None:
    """A batch that has read its sources up to positions of their logs."""
    for name in ("offsets", "commits"):
        (spark / name).mkdir(parents=True, exist_ok=True)
    offsets = ["-" if p is None else json.dumps({"logOffset": p}) for p in positions]
    (spark / "offsets" / str(batch)).write_text("\n".join(["v1", '{"batchWatermarkMs":0}', *offsets]))
    if commit:
        (spark / "commits" / str(batch)).write_text('v1\n{"nextBatchWatermarkMs":0}')
