"""Matchers of the same tuples, which share the numbers of partitions and the encoded columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from millstream.kernels.core.kernel import Change, Frontier, Tuples
from millstream.kernels.core.state_chunks import is_wasteful
from millstream.kernels.patterns.key_encoding import KeyEncoding
from millstream.kernels.patterns.matcher import Matcher
from millstream.kernels.patterns.matcher_input import MatcherInput
from millstream.kernels.specs import PatternSpec


class MatcherGroup:
    """One or several matchers that share partition numbers and string codes.

    Each has a state of its own. All of them are rebuilt together, since that changes numbers and codes.
    """

    def __init__(self, specs: Sequence[PatternSpec]) -> None:
        self._coding = KeyEncoding()
        self.each = [Matcher(spec, self._coding) for spec in specs]

    def found(self, tuples: Tuples, frontier: Frontier) -> list[Tuples]:
        """Return the matches of each that become certain with these tuples."""
        offered = MatcherInput(tuples, self._coding)
        found = [search.found(offered, frontier) for search in self.each]
        if not frontier.is_end and self._is_wasteful():
            self._start_over()
        return found

    def passes(self, frontier: Frontier) -> Frontier:
        return min(search.passes(frontier) for search in self.each)

    @property
    def asked(self) -> int:
        """The number of evaluations of conditions, by all programs that count them."""
        return sum(search.asked for search in self.each)

    def _is_wasteful(self) -> bool:
        """Return True if most keys or strings in memory are unused."""
        words = min(search.state.machine.words for search in self.each)
        return is_wasteful(max(len(self._coding.keys), words), 2 * self.rows)

    def _start_over(self) -> None:
        needed = [search.state.needed() for search in self.each]
        self._begin()
        for search, own in zip(self.each, needed, strict=True):
            search.state.keep(own)

    def _begin(self) -> None:
        """Create all machines before any adds strings, which would seem to be strings of the program."""
        self._coding = KeyEncoding()
        for search in self.each:
            search.state.begin(self._coding)

    # ------------------------------------------------------------ state

    def changes(self) -> list[Change]:
        touched = self._coding.touched()
        return [search.state.change(touched) for search in self.each]

    def restore(self, written: Sequence[tuple[Mapping[str, Any], Mapping[str, pa.Table]]]) -> None:
        """Restore each matcher from its metadata and state chunks."""
        self._begin()
        for search, (meta, chunks) in zip(self.each, written, strict=True):
            search.state.read(meta, chunks)

    @property
    def rows(self) -> int:
        return sum(search.state.rows for search in self.each)
