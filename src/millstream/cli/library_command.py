"""``library``: aggregates that come with Millstream, and their scripts."""

from __future__ import annotations

from millstream.errors import MillstreamError, did_you_mean
from millstream.library import bundled_aggregates


def show_library(name: str | None) -> None:
    """Print a line for each aggregate, or the script of one."""
    if name is None:
        width = max(map(len, bundled_aggregates.names()))
        for each in bundled_aggregates.names():
            print(f"{each.ljust(width)}  {bundled_aggregates.summary(each)}")  # noqa: T201
        return
    if name.lower() not in bundled_aggregates.names():
        raise MillstreamError(
            f"there is no aggregate '{name}' in the library",
            hint=did_you_mean(name, bundled_aggregates.names()) or "`millstream library` lists them",
        )
    print(bundled_aggregates.text(name.lower()), end="")  # noqa: T201
