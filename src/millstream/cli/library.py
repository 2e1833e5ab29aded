"""``library``: the aggregates that come with Millstream, and how they are written."""

from __future__ import annotations

from millstream.errors import MillstreamError, did_you_mean
from millstream.library import shelf


def show_library(name: str | None) -> None:
    """All aggregates in a line each, or the script of one."""
    if name is None:
        width = max(map(len, shelf.names()))
        for each in shelf.names():
            print(f"{each.ljust(width)}  {shelf.summary(each)}")  # noqa: T201
        return
    if name.lower() not in shelf.names():
        raise MillstreamError(
            f"there is no aggregate '{name}' in the library",
            hint=did_you_mean(name, shelf.names()) or "`millstream library` lists them",
        )
    print(shelf.text(name.lower()), end="")  # noqa: T201
