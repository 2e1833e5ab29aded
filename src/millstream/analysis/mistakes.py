"""Mistakes that are collected, so that a person sees all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from millstream.errors import AnalysisError, MillstreamError


class Mistakes:
    """The mistakes found so far in a query.

    A part with a mistake is given up, and the analysis goes on behind it. :meth:`check` raises all of
    them as one error: the first in the text, with the others in its ``more``.
    """

    def __init__(self) -> None:
        self._found: list[MillstreamError] = []
        self.count = 0
        """How often a mistake was found; one that is found again counts again."""

    def add(self, error: MillstreamError) -> None:
        """Keep an error, and those that came with it."""
        self.count += 1
        for one in error.all:
            one.more = ()
            if not any((one.message, one.span) == (known.message, known.span) for known in self._found):
                self._found.append(one)

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep an error that ends the block."""
        try:
            yield
        except AnalysisError as error:
            self.add(error)

    def check(self) -> None:
        """Raise the mistakes, in the order of the text, if there are any."""
        if self._found:
            first, *others = sorted(self._found, key=lambda error: error.span or (0, 0))
            first.more = tuple(others)
            raise first
