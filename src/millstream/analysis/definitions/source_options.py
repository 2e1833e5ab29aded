"""Options of Spark's own formats: names that are misspelt, and patterns of dates that Spark cannot use.

Spark ignores an option that it does not know. Options of other formats are for their connectors to know.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from millstream import catalog
from millstream.catalog.entries import FILE_FORMATS, Options
from millstream.errors import closest

OptionNote = tuple[str, str, str]
"""The option as it is written, what is to be said of it, and a hint."""

_ALIKE = 0.75
"""Least likeness of a misspelt option to the right one."""
_PATTERNS = frozenset({"timestampformat", "timestampntzformat", "dateformat"})
_REFUSED = {
    "Y": "the year of a week",
    "w": "the week of a year",
    "W": "the week of a month",
    "u": "the day of a week",
    "e": "the day of a week",
    "c": "the day of a week",
    "D": "the day of a year",
}
"""Letters that Spark refuses in a pattern, or that contradict a month beside them."""
_LETTERS = frozenset("GyMLdQqEFahKkHmsSVzOXxZ")
"""Letters that Spark knows in a pattern, besides these."""
_MEANT = {"Y": "y", "D": "d", "T": "'T'"}


def notes_on_options(format_: str, options: Options) -> Iterator[OptionNote]:
    """Yield notes on the options of a source or sink."""
    known = _known().get(format_.lower())
    if known is None:
        return
    for key, value in options:
        if key.lower() not in known:
            alike = closest(key, known.values(), _ALIKE)
            if alike is not None:
                yield key, f"option '{key}' of format {format_} is unknown", f"did you mean '{alike}'?"
        elif key.lower() in _PATTERNS:
            yield from _on_pattern(key, value)


def misspelt_path(options: Options) -> str | None:
    """Return the option that was probably meant to be the path.

    >>> misspelt_path((("header", "true"), ("paht", "x.csv")))
    'paht'
    """
    return next((key for key, _ in options if closest(key, ["path"], _ALIKE)), None)


def _on_pattern(key: str, pattern: str) -> Iterator[OptionNote]:
    """Note letters that a format pattern cannot have.

    >>> next(_on_pattern("dateFormat", "YYYY/MM/DD"))[1:]
    ("'Y' is the year of a week and 'D' the day of a year, which dateFormat cannot have", 'write yyyy/MM/dd')
    >>> next(_on_pattern("timestampFormat", "yyyy-MM-ddTHH:mm"))[1:]
    ("'T' in timestampFormat stands for no part of a time", "write yyyy-MM-dd'T'HH:mm")
    >>> list(_on_pattern("dateFormat", "yyyy-DDD 'Week'"))
    []
    """
    letters = re.sub(r"'[^']*'", "", pattern)
    found = [c for c in dict.fromkeys(letters) if c.isascii() and c.isalpha()]
    wrong = [c for c in found if c in _REFUSED and (c != "D" or re.search("[ML]", letters))]
    if wrong:
        first, *others = wrong
        listed = f"'{first}' is {_REFUSED[first]}"
        listed += "".join(f" and '{other}' {_REFUSED[other]}" for other in others)
        yield key, f"{listed}, which {key} cannot have", _instead(pattern, wrong)
    unknown = [c for c in found if c not in _LETTERS and c not in _REFUSED]
    if unknown:
        listed = " and ".join(f"'{letter}'" for letter in unknown)
        stands = "stands" if len(unknown) == 1 else "stand"
        yield key, f"{listed} in {key} {stands} for no part of a time", _instead(pattern, unknown)


def _instead(pattern: str, wrong: list[str]) -> str:
    if not _MEANT.keys() >= set(wrong):
        return "write it with yyyy, MM and dd"
    pieces = re.split(r"('[^']*')", pattern)
    table = str.maketrans({letter: _MEANT[letter] for letter in wrong})
    return f"write {''.join(p if p.startswith(chr(39)) else p.translate(table) for p in pieces)}"


@cache
def _known() -> dict[str, dict[str, str]]:
    """Return the options of each format, by their names in lower case."""
    found: dict[str, dict[str, str]] = {}
    text = Path(catalog.__file__).with_name("spark_options.txt").read_text(encoding="utf-8")
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        format_, _, names = line.partition(": ")
        for each in _LISTED_FILES if format_ == "files" else (format_,):
            found.setdefault(each, {}).update((name.lower(), name) for name in names.split())
    return found


_LISTED_FILES = FILE_FORMATS & {"csv", "json", "text", "parquet", "orc"}
"""Formats of files whose options are listed."""
