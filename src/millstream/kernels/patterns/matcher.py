"""Matcher of a sequence pattern in each partition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from millstream.codegen.patterns.attempt_emitter import NO_ATTEMPT
from millstream.codegen.patterns.match_emitter import STAMP
from millstream.codegen.patterns.matcher_emitter import IN_LAST_STAR, WAITING
from millstream.codegen.patterns.pattern_scope import ASKED
from millstream.kernels.core.buffers import NO_CODES, Array, Codes, Integers
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.core.radix_sort import ordering
from millstream.kernels.core.time_order import as_order, from_order
from millstream.kernels.core.timestamp_text import shown
from millstream.kernels.core.tuple_batch import joined
from millstream.kernels.patterns.key_encoding import KeyEncoding
from millstream.kernels.patterns.matcher_input import MatcherInput
from millstream.kernels.specs import PatternSpec
from millstream.kernels.udas.compiled_machine import CompiledMachine, Keys, UserAggregateError
from millstream.kernels.udas.local_tables import LocalTableState
from millstream.kernels.udas.machine_state import MachineState

_ATTEMPT = "__ms_attempt"


class PatternError(UserAggregateError):
    """An error in the evaluation of a pattern."""

    def __str__(self) -> str:
        where = f" in {self.statement}" if self.statement else ""
        return f"pattern {self.aggregate}: {self.reason}{where}"


class Matcher:
    """The matches of one pattern in tuples that come in order.

    A match is emitted as soon as it is certain, with the timestamp of its last tuple; matches of a partition
    are in order. A match that ends with a star is certain only with the tuple after it, and a complete
    attempt may wait for an older one: these attempts hold the watermark back.
    """

    def __init__(self, spec: PatternSpec, coding: KeyEncoding) -> None:
        self._spec = spec
        self.state = MatcherState(spec.program, "pattern", coding)
        self._is_float = False

    # ------------------------------------------------------------ tuples

    def found(self, offered: MatcherInput, frontier: Frontier) -> Tuples:
        """Return the matches that become certain with these tuples."""
        self._is_float = offered.is_float
        parts = self._search(offered)
        if frontier.is_end:
            parts.append(self._finish())
        return joined(parts)

    def _search(self, offered: MatcherInput) -> list[Tuples]:
        codes, tuples = offered.codes, offered.tuples
        self.state.reserve(len(tuples))
        parameters = offered.arguments(self._spec.arguments, self._spec.program.parameters)
        span = np.array([0, NO_ATTEMPT, 0, 0, 0])
        parts = []
        while True:
            try:
                part, failure = self._tried("run", codes, (*offered.order, span), parameters)
            except UserAggregateError as outside:
                raise self._located(outside, tuples) from None
            parts.append(part)
            if failure is not None:
                if not self._can_wait(failure, codes, span):
                    raise self._located(failure, tuples)
            elif span[0] == len(tuples):
                return parts
            else:
                self.state.make_room()

    def _can_wait(self, failure: UserAggregateError, codes: Codes, span: Integers) -> bool:
        """Return True if the failed attempt is not the oldest, so that the search can continue without it."""
        who = int(span[1])
        oldest = -1 if who == NO_ATTEMPT else int(self._attempts["head"][codes[failure.row]])
        if oldest in (-1, who):
            return False
        span[0], span[3:] = failure.row, failure.code
        return True

    def _finish(self) -> Tuples:
        """Return the matches that the end of the input completes, in stream order."""
        open_ = np.flatnonzero(self._attempts["head"][: len(self.state.keys)] >= 0)
        codes = open_.astype(np.int32) if len(open_) else NO_CODES.copy()
        try:
            out, failure = self._tried("finish", codes, (np.zeros(5, np.int64),))
        except UserAggregateError as outside:
            raise self._named(outside) from None
        if failure is not None:
            raise self._named(failure)
        self.state.touch(codes)
        order = ordering(as_order(out.time), out.origin.astype(np.int64), out.number)
        return out if order is None else out.take(order)

    def _tried(
        self,
        function: str,
        codes: Codes,
        arguments: tuple[Any, ...],
        parameters: Mapping[str, Array] | None = None,
    ) -> tuple[Tuples, UserAggregateError | None]:
        """Call a function of the program; return its matches, and the error that stopped it."""
        machine, more = self._machine, self._attempts.size
        room = len(codes) + more + 16
        stamps: dict[str, Array] = {name: np.empty(room, np.int64) for name in ("o_origin", "o_number")}
        known = {**(machine.nothing() if parameters is None else parameters), **stamps}
        found, failure = machine.tried(function, len(codes), (codes, *arguments), known, more)
        columns = self.state.keys.table(codes[found.sources])
        columns |= dict(zip(self._spec.results, found.columns, strict=True))
        matches = Tuples(
            pa.table(columns),
            from_order(found.times.copy(), self._is_float),
            stamps["o_origin"][: len(found)].astype(np.int32),
            stamps["o_number"][: len(found)].copy(),
        )
        return matches, failure

    def _located(self, failure: UserAggregateError, tuples: Tuples) -> PatternError:
        """Return the failure with the tuple at which it happened."""
        if not 0 <= failure.row < len(tuples):
            return self._named(failure)
        values = (shown(tuples.columns[name][failure.row]) for name in self._spec.arguments)
        named = zip((field.name for field in self._spec.program.parameters), values, strict=True)
        all_ = ", ".join(f"{name} {value}" for name, value in named)
        reason = f"{failure.reason}, for the tuple ({all_}){',' if failure.statement else ''}"
        return PatternError(failure.aggregate, failure.statement, reason, failure.row)

    @staticmethod
    def _named(failure: UserAggregateError) -> PatternError:
        return PatternError(failure.aggregate, failure.statement, failure.reason, -1)

    # ------------------------------------------------------------ watermark

    def passes(self, frontier: Frontier) -> Frontier:
        """Return the watermark of the output: not after a tuple that may become the last of a match."""
        earliest = None if frontier.is_end else self._earliest()
        if earliest is None:
            return frontier
        time = from_order(np.array([earliest[0]]), self._is_float)[0].item()
        return min(frontier, Frontier(time, earliest[1] - 1, frontier.newest))

    def _earliest(self) -> tuple[int, int] | None:
        """Return time (as order) and origin of the oldest tuple that may be the last of a later match."""
        attempts = self._attempts
        rows = np.flatnonzero(attempts["id"][: attempts.size] >= 0)
        states = attempts[_array(attempts, "state")][rows]
        waiting = rows[states == WAITING]
        last = attempts["owner"][rows[states == IN_LAST_STAR]]
        stamps = [_stamps(attempts, waiting), _stamps(self._machine.tables[1], last)]
        times, origins = (np.concatenate([stamp[i] for stamp in stamps]) for i in range(2))
        if not len(times):
            return None
        first = times.min()
        return int(first), int(origins[times == first].min())

    @property
    def asked(self) -> int:
        """The number of evaluations of conditions, if the program counts them."""
        partitions = self._machine.tables[1]
        counts = [column.name == ASKED for column in partitions.layout.fields]
        return int(partitions[_array(partitions, ASKED)].sum()) if any(counts) else 0

    @property
    def _machine(self) -> CompiledMachine:
        return self.state.own

    @property
    def _attempts(self) -> LocalTableState:
        return self.state.attempts


class MatcherState(MachineState):
    """The state of a matcher. Rows of measures belong to attempts, not to partitions."""

    @property
    def own(self) -> CompiledMachine:
        assert isinstance(self.machine, CompiledMachine), "a pattern is no program in Python"
        return self.machine

    @property
    def attempts(self) -> LocalTableState:
        return self.own.tables[0]

    def reserve(self, tuples: int) -> None:
        """Grow the arrays for that many tuples."""
        self.machine.reserve(len(self.keys), tuples)
        self._reserve_measures()

    def make_room(self) -> None:
        """Grow the attempt arrays."""
        self.attempts.reserve(self.attempts.size + 16, len(self.keys))
        self._reserve_measures()

    def _reserve_measures(self) -> None:
        for table in self.own.kept[1:]:
            table.reserve(16, len(self.attempts["next"]))

    def _owners(self, table: int) -> Keys:
        return super()._owners(table) if table == 0 else self._attempt_ids

    def _attempt_ids(self, rows: Codes) -> dict[str, pa.Array]:
        return {_ATTEMPT: pa.array(self.attempts["id"][rows])}

    def _owned(self, table: int, stored: pa.Table) -> tuple[Codes, int]:
        if table == 0:
            return super()._owned(table, stored)
        # Attempts have been restored before, in the order of their ids.
        attempts = self.attempts
        rows = np.searchsorted(attempts["id"][: attempts.size], np.asarray(stored[_ATTEMPT]))
        return rows.astype(np.int32), len(attempts["next"])


def _array(table: LocalTableState, name: str) -> str:
    """Return the name of the array of a column."""
    return f"c{[column.name for column in table.layout.fields].index(name)}"


def _stamps(table: LocalTableState, rows: Integers) -> tuple[Integers, Integers]:
    """Return times and origins of rows; without rows there may be no columns for them."""
    if not len(rows):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    time, origin = (table[_array(table, f"stamp_{name}")][rows] for name in STAMP[:2])
    return time, origin
