"""Errors at nodes of the tree, and their collector, which shows a person all of them at once."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from millstream.errors import AnalysisError, MillstreamError
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from sqlglot import exp


def error_at(node: exp.Expr, message: str, *, hint: str | None = None) -> AnalysisError:
    """Make an error that underlines a node."""
    return AnalysisError(message, span=span_of(node), hint=hint)


class ErrorCollector:
    """Collector of the mistakes in a query.

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
        """Return a block whose error is kept."""
        return CollectingBlock(self)

    def check(self) -> None:
        """Raise the mistakes, in the order of the text, if there are any."""
        if self._found:
            first, *others = sorted(self._found, key=lambda error: error.span or (0, 0))
            first.more = tuple(others)
            raise first


class CollectingBlock:
    """Context whose error is collected; without a collector the error is raised."""

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
