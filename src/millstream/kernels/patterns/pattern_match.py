"""PatternMatch and PatternMatches: the matches of one sequence pattern, and of several over one input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.kernels.core.kernel import Change, Frontier, Kernel, Tuples
from millstream.kernels.kernel_specs import PatternBranch
from millstream.kernels.patterns.matcher import PatternError
from millstream.kernels.patterns.matcher_group import MatcherGroup
from millstream.kernels.patterns.tagged_rows import branched, branched_schema
from millstream.kernels.specs import PatternSpec


class PatternMatch(Kernel):
    """The matches of one pattern."""

    def __init__(self, spec: PatternSpec) -> None:
        self._searches = MatcherGroup([spec])

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        (found,) = self._searches.found(tuples, frontier)
        return found

    def passes(self, frontier: Frontier) -> Frontier:
        return self._searches.passes(frontier)

    @property
    def asked(self) -> int:
        """The number of evaluations of conditions, if the program counts them."""
        return self._searches.asked

    def snapshot(self) -> Change:
        (change,) = self._searches.changes()
        return change

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        self._searches.restore([(meta, chunks)])

    @property
    def rows(self) -> int:
        return self._searches.rows


class PatternMatches(Kernel):
    """The matches of several patterns, those of one after those of another."""

    def __init__(self, branches: tuple[PatternBranch, ...]) -> None:
        self._searches = MatcherGroup([branch.spec for branch in branches])
        self._outputs = [branch.output for branch in branches]
        self._schema = branched_schema(self._outputs)

    def process(self, tuples: Tuples, frontier: Frontier) -> Tuples:
        found = self._searches.found(tuples, frontier)
        tables = [
            branched(branch, part, output.names, self._schema)
            for branch, (part, output) in enumerate(zip(found, self._outputs, strict=True))
        ]
        return Tuples(
            pa.concat_tables(tables),
            np.concatenate([part.time for part in found]),
            np.concatenate([part.origin for part in found]),
            np.concatenate([part.number for part in found]),
        )

    def passes(self, frontier: Frontier) -> Frontier:
        return self._searches.passes(frontier)

    @property
    def asked(self) -> int:
        """The number of evaluations of conditions, by all programs that count them."""
        return self._searches.asked

    # ------------------------------------------------------------ state

    def snapshot(self) -> Change:
        changes = self._searches.changes()
        return Change(
            {
                f"{i}/{name}": chunk
                for i, change in enumerate(changes)
                for name, chunk in change.added.items()
            },
            tuple(f"{i}/{name}" for i, change in enumerate(changes) for name in change.dropped),
            {str(i): dict(change.meta) for i, change in enumerate(changes)},
        )

    def restore(self, meta: Mapping[str, Any], chunks: Mapping[str, pa.Table]) -> None:
        written = []
        for i in range(len(self._outputs)):
            prefix = f"{i}/"
            own = {name: chunk for name, chunk in chunks.items() if name.startswith(prefix)}
            written.append((meta[str(i)], {name.removeprefix(prefix): c for name, c in own.items()}))
        self._searches.restore(written)

    @property
    def rows(self) -> int:
        return self._searches.rows


__all__ = ["PatternError", "PatternMatch", "PatternMatches"]
