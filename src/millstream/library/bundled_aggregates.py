"""What is in the library. Nothing is read before somebody asks for it."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def names() -> tuple[str, ...]:
    """The names of all aggregates.

    >>> "top_k" in names()
    True
    """
    found = (file.name for file in files(__package__).iterdir())
    return tuple(sorted(name.removesuffix(".esl") for name in found if name.endswith(".esl")))


@cache
def text(name: str) -> str:
    """The script of an aggregate, as it is written."""
    return (files(__package__) / f"{name}.esl").read_text(encoding="utf-8")


def summary(name: str) -> str:
    """What an aggregate does, in a sentence: the first line of its script.

    >>> summary("unique_count")
    'How many different values there are, so far or in the window.'
    """
    return text(name).partition("\n")[0].removeprefix("-- ")
