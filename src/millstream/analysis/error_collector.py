"""Mistakes that are collected, so that a person sees all of them at once."""

from __future__ import annotations

from types import TracebackType

from millstream.errors import AnalysisError, MillstreamError


class ErrorCollector:
    """The mistakes found so far in a query.

    A part with a mistake is given up, and the analysis goes on behind it. :meth:`check` raises all of
    them as one error: the first in the text, with the others in its ``more``.
    """

    def __init__(self) -> None:
        self._found: list[MillstreamError] = []
        self.count = 0
        """Number of mistakes found; one that is found again counts again."""

    def add(self, error: MillstreamError) -> None:
        """Keep an error, and those that came with it."""
        self.count += 1
        for one in error.all:
            one.more = ()
            if not any((one.message, one.span) == (known.message, known.span) for known in self._found):
                self._found.append(one)

    def collected(self) -> CollectingBlock:
        """A block whose error is kept."""
        return CollectingBlock(self)

    def check(self) -> None:
        """Raise the mistakes, in the order of the text, if there are any."""
        if self._found:
            first, *others = sorted(self._found, key=lambda error: error.span or (0, 0))
            first.more = tuple(others)
            raise first


class CollectingBlock:
    """A block that an error ends, but not what stands behind it; without mistakes it is an ordinary one."""

    def __init__(self, collector: ErrorCollector | None) -> None:
        self._mistakes = collector

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        if self._mistakes is None or not isinstance(error, AnalysisError):
            return False
        self._mistakes.add(error)
        return True
