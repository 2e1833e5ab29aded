"""All results by contestant and number of keys, and Millstream's line."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field

from benchmarks.engine import millstream
from benchmarks.engine.contract import QUERIES, Contestant, Totals
from benchmarks.engine.running import Outcome

WRONG = "wrong answer"


@dataclass
class Results:
    """Outcomes as they come in, how many rows they are of, and the right answers by query and keys."""

    rows: int
    expected: dict[tuple[str, int], Totals] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)

    def reason(self, outcome: Outcome) -> str:
        """Return the reason for a missing figure; empty if there is a figure."""
        if outcome.reason:
            return outcome.reason
        read = int(outcome.line["rows"])
        if not outcome.contestant.is_micro_batch and read != self.rows:
            return f"{WRONG}: it read {read:,} rows and not {self.rows:,}"
        right = self.expected.get((outcome.contestant.query, outcome.keys))
        if right and outcome.totals and not outcome.totals.agrees(right):
            return f"{WRONG}: {outcome.totals} and not {right}"
        return ""

    def rate(self, contestant: Contestant, keys: int) -> float | None:
        """The median rate of its runs, or None if one of them failed."""
        runs = self._runs(contestant, keys)
        if not runs or any(self.reason(run) for run in runs):
            return None
        return statistics.median(run.rate for run in runs)

    def ratio(self, contestant: Contestant, keys: int) -> float | None:
        """Return the speed of Millstream relative to a contestant, if both have a figure."""
        own = self.rate(contestant, keys)
        base = _own(contestant.query)
        if own is None or base is None or base == contestant:
            return None
        rate = self.rate(base, keys)
        return rate / own if rate else None

    def reasons(self) -> Iterable[str]:
        for query in self.queries():
            if _is_lacking(query):
                yield f"millstream, {query}: missing: there is none in benchmarks/engine/millstream.py"
        for outcome in self.outcomes:
            if reason := self.reason(outcome):
                yield f"{outcome.contestant.name}, {described(outcome.keys)}: {reason}"
            elif outcome.totals is None:
                yield f"{outcome.contestant.name}, {described(outcome.keys)}: measured, but not counted"

    def queries(self) -> list[str]:
        return [query for query in QUERIES if any(o.contestant.query == query for o in self.outcomes)]

    def table(self, query: str) -> list[list[str]]:
        """A heading with the numbers of keys, then a row for each contestant."""
        keys = self.keys(query)
        unit = "" if query.startswith("micro_batch") else "rows/s"
        rows = [[unit, *(described(number) if number else "" for number in keys)]]
        if _is_lacking(query):
            rows.append(["millstream", *("missing" for _ in keys)])
        rows += [[c.name, *(self.cell(c, number) for number in keys)] for c in self.contestants(query)]
        return rows

    def contestants(self, query: str) -> list[Contestant]:
        """Return the contestants that ran the query, in the order of the list."""
        return list(dict.fromkeys(o.contestant for o in self.outcomes if o.contestant.query == query))

    def keys(self, query: str) -> list[int]:
        return sorted({o.keys for o in self.outcomes if o.contestant.query == query})

    def cell(self, contestant: Contestant, keys: int) -> str:
        """Its figure, and in parentheses how many times as fast Millstream is."""
        runs = self._runs(contestant, keys)
        if not runs:
            return "-"
        rate = self.rate(contestant, keys)
        if rate is None:
            reasons = (self.reason(run) for run in runs)
            return next(reason for reason in reasons if reason).partition(":")[0]
        ratio = self.ratio(contestant, keys)
        text = f"{1000 / rate:,.0f} ms" if contestant.is_micro_batch else f"{rate:,.0f}"
        return f"{text} ({ratio:.{2 if ratio < 10 else 0}f}x)" if ratio else text

    def _runs(self, contestant: Contestant, keys: int) -> list[Outcome]:
        return [run for run in self.outcomes if run.contestant == contestant and run.keys == keys]


def _own(query: str) -> Contestant | None:
    """Millstream's contestant that the others are compared with."""
    return next((contestant for contestant in millstream.CONTESTANTS if contestant.query == query), None)


def _is_lacking(query: str) -> bool:
    """Return whether Millstream should have run the query; the scan is there for the others' sake."""
    return query != "scan" and _own(query) is None


def described(keys: int) -> str:
    return f"{keys:,} keys" if keys else "any keys"
