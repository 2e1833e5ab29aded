"""Names and scripts of the aggregates in the library, read when they are needed."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def names() -> tuple[str, ...]:
    """Return the names of all aggregates.

    >>> "top_k" in names()
    True
    """
    entries = (file.name for file in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".esl") for name in entries if name.endswith(".esl")))


@cache
def text(name: str) -> str:
    """Return the script of an aggregate."""
    return (files(__package__) / f"{name}.esl").read_text(encoding="utf-8")


def summary(name: str) -> str:
    """Return the first line of an aggregate's script, which describes it.

    >>> summary("unique_count")
    'Number of different values, so far or in the window.'
    """
    return text(name).partition("\n")[0].removeprefix("-- ")
