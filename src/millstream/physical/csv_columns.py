"""Columns of csv files by the names in their header."""

from __future__ import annotations

import csv
import glob
from pathlib import Path

from millstream.catalog.entries import Reader
from millstream.types import STRING, Field


def columns_of_files(reader: Reader, declared: tuple[Field, ...]) -> tuple[Field, ...]:
    """Return the columns of the files of a csv reader with a header, if it has all declared ones.

    Columns that are not declared are texts. Other files have the declared columns.
    """
    if reader.format.lower() != "csv" or (reader.option("header") or "").lower() != "true":
        return declared
    header = _header(reader)
    known = {field.name.lower(): field for field in declared}
    names = [name.lower() for name in header]
    if len(set(names)) < len(names) or not known.keys() <= set(names):
        return declared
    return tuple(known.get(name.lower(), Field(name, STRING)) for name in header)


def _header(reader: Reader) -> list[str]:
    """Return the names in the first line of the first file, if it is on this machine."""
    text = (reader.option("path") or "").removeprefix("file://")
    found = [Path(text)] if Path(text).exists() else [Path(path) for path in glob.glob(text)]  # noqa: PTH207
    files = [file for path in found for file in (path.rglob("*") if path.is_dir() else [path])]
    visible = sorted(file for file in files if file.is_file() and not file.name.startswith(("_", ".")))
    separator = (reader.option("sep") or reader.option("delimiter") or ",").replace("\\t", "\t")
    if not visible or len(separator) != 1:
        return []
    with visible[0].open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        rows = csv.reader(lines, delimiter=separator, quotechar=reader.option("quote") or '"')
        return [name.strip() for name in next(rows, [])]
