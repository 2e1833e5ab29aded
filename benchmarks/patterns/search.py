"""Number and time of condition evaluations: naive search, OPS, and parallel attempts."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.experiments.lines import Panel, draw
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.patterns import streams
from benchmarks.patterns.examples import EXAMPLES, JUMP, ON_REAL_PRICES, STRICTLY, Example
from benchmarks.patterns.kernels import form_of, kernel_of
from benchmarks.patterns.sequential import Sequential
from benchmarks.windows.chains import AT_ONCE
from millstream.ir.pattern import Pattern
from millstream.kernels.column_names import KEY
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.core.kernel import END, Frontier, Tuples
from millstream.kernels.patterns.pattern_match import PatternMatch

ROWS, REPEATS = 2_000_000, 3
NAIVE, OPS, OURS = "naive", "OPS", "side by side"
WAYS = (NAIVE, OPS, OURS)
TRENDS = (2, 4, 8, 16, 32, 64, 128)
SHARE = 10
"""For each length of trends there is one tuple of so many."""
ABOUT = f"""\
The listings of ESL-TS, the text search of its section 6, and the double bottom with flat stretches of SQL-TS,
on tuples drawn at random, {streams.PARTITIONS} partitions side by side: clicks, walks between two bounds for
speeds, walks without memory for prices. *naive* begins again a tuple after the attempt that failed; *OPS*
goes on as shift and next say. Both are compiled loops over bare arrays of one partition after the other,
which have everything at hand and go back in it. *side by side* is the engine's kernel: arrow tables in
batches of {AT_ONCE:,}, all partitions mixed, each tuple looked at once and none kept. What the others do not
do, they do not pay for.

A question is what an element asks of a tuple by itself and of those before it; what it asks of aggregates and
of other elements is another one, and so is what it asks when its star is complete, and whether a leading
star would reach further to the left. Side by side there can be more of them than with OPS: younger attempts
are made while an older one may still match, and of a count that must not be too large it is asked with every
tuple. All find the same matches, which is checked."""


@dataclass(frozen=True)
class Measured:
    """Evaluations and nanoseconds per tuple, for each algorithm."""

    tuples: int
    matches: int
    questions: dict[str, float]
    times: dict[str, float]

    def fewer(self, way: str) -> float:
        """Return the ratio of the evaluations of naive search to those of an algorithm."""
        return self.questions[NAIVE] / self.questions[way]


def measure(size: Size, directory: Path) -> Section:
    drawn = {e: _measured(e, streams.STREAMS[e.stream](size.rows), size.repeats) for e in EXAMPLES}
    tables = [Figures("Drawn at random", _table(drawn))]
    real: dict[Example, Measured] = {}
    prices = streams.stocks(size.directories["stocks"]) if "stocks" in size.directories else None
    if prices is not None:
        real = {example: _measured(example, prices, size.repeats) for example in ON_REAL_PRICES}
        tables.append(Figures("Closing prices of 14 shares, day by day from 2010", _table(real)))
    trends = {
        example: {trend: _measured(example, streams.prices(size.rows // SHARE, trend), 1) for trend in TRENDS}
        for example in (STRICTLY, JUMP)
    }
    tables.append(Figures("Against how long prices fall or rise", _trend_table(trends)))
    about = ABOUT if real else f"{ABOUT}\n\nReal prices are left out: there are none where `--stocks` says."
    title = "Search: how often conditions are asked, and how long that takes"
    picture = draw(_panels(trends), directory / "search.png")
    return Section(title, about, _claims(drawn, real, trends[JUMP]), tables, [picture])


def _measured(example: Example, table: pa.Table, repeats: int) -> Measured:
    form = form_of(example.script)
    table = table.cast(pa.schema([(field.name, arrow_type(field.type)) for field in form.fields]))
    keys = np.asarray(table[example.key]).astype(np.int64) if example.key else np.zeros(len(table), np.int64)
    partitions, batches = _Partitions(form, table, keys), batches_of(table, keys)
    ways: dict[str, Callable[[], Callable[[], np.ndarray]]] = {
        NAIVE: lambda: partial(partitions.searched, ops=False),
        OPS: lambda: partial(partitions.searched, ops=True),
        OURS: lambda: partial(_searched, kernel_of(form), batches),
    }
    questions = {}
    for way in (NAIVE, OPS):
        ways[way]()()
        questions[way] = partitions.asked / len(table)
    counting = kernel_of(form, counted=True)
    _searched(counting, batches)
    questions[OURS] = counting.asked / len(table)
    _searched(kernel_of(form), batches[-1:])  # compile before the measurement
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    found = []
    for _ in range(repeats):
        for way in WAYS:
            search = ways[way]()
            begun = time.perf_counter()
            matches = search()
            seconds[way].append(time.perf_counter() - begun)
            found.append(np.sort(matches))
    if not all(np.array_equal(found[0], matches) for matches in found):
        raise AssertionError(f"not all find the same matches of {example.name}: {[len(m) for m in found]}")
    times = {way: statistics.median(of_way) / len(table) * 1e9 for way, of_way in seconds.items()}
    return Measured(len(table), len(found[0]), questions, times)


class _Partitions:
    """Columns as arrays, partition by partition, for searches that go back in them."""

    def __init__(self, form: Pattern, table: pa.Table, keys: np.ndarray) -> None:
        self._order = np.argsort(keys, kind="stable")
        edges = [0, *(np.flatnonzero(np.diff(keys[self._order])) + 1), len(keys)]
        codes: dict[str, int] = {}
        columns = []
        for column in table.combine_chunks().columns:
            values = column.chunk(0)
            if pa.types.is_string(values.type):
                encoded = values.dictionary_encode()
                codes |= {text: code for code, text in enumerate(encoded.dictionary.to_pylist())}
                values = encoded.indices
            columns.append(np.asarray(values)[self._order])
        self._parts = [
            (begin, tuple(column[begin:end] for column in columns))
            for begin, end in itertools.pairwise(edges)
        ]
        self._search = Sequential(form, codes)
        self.asked = 0

    def searched(self, *, ops: bool) -> np.ndarray:
        """The numbers of the last tuples of matches; how many questions there were is known afterwards."""
        self.asked, last = 0, []
        for begin, columns in self._parts:
            found, asked = self._search.search(columns, ops=ops)
            last.append(self._order[begin + found[:, 1] - 1])
            self.asked += asked
        return np.concatenate(last)


def batches_of(table: pa.Table, keys: np.ndarray) -> list[tuple[Tuples, Frontier]]:
    number = np.arange(len(table))
    table = table.append_column(KEY, pa.array(keys))
    made = []
    for start in range(0, len(table), AT_ONCE):
        part = number[start : start + AT_ONCE]
        tuples = Tuples(table.slice(start, len(part)), part, np.zeros(len(part), np.int32), part)
        made.append((tuples, Frontier(int(part[-1]), 0)))
    return [*made[:-1], (made[-1][0], END)]


def _searched(kernel: PatternMatch, batches: list[tuple[Tuples, Frontier]]) -> np.ndarray:
    return np.concatenate([kernel.process(tuples, frontier).number for tuples, frontier in batches])


# ---------------------------------------------------------------- the report


def _table(measured: dict[Example, Measured]) -> list[list[str]]:
    asked, times = (f"asked, {way}" for way in WAYS), (f"ns, {way}" for way in WAYS)
    rows = [["for a tuple", "tuples", "matches", *asked, *times]]
    for example, one in measured.items():
        figures = [f"{one.questions[way]:.2f}" for way in WAYS] + [f"{one.times[way]:,.0f}" for way in WAYS]
        rows.append([f"{example.name}, {example.stream}", f"{one.tuples:,}", f"{one.matches:,}", *figures])
    return rows


def _trend_table(trends: dict[Example, dict[int, Measured]]) -> list[list[str]]:
    rows = [["for a tuple", "tuples until a turn", *(f"asked, {way}" for way in WAYS)]]
    rows[0] += [f"ns, {way}" for way in WAYS]
    for example, by_trend in trends.items():
        for trend, one in by_trend.items():
            figures = [f"{one.questions[way]:.2f}" for way in WAYS]
            rows.append([example.name, f"{trend}", *figures, *(f"{one.times[way]:,.0f}" for way in WAYS)])
    return rows


def _panels(trends: dict[Example, dict[int, Measured]]) -> list[Panel]:
    return [
        Panel(
            f"{example.name}: {title} for a tuple",
            "tuples until a turn, on average",
            title,
            {way: [(t, getattr(one, what)[way]) for t, one in by_trend.items()] for way in WAYS},
            log_x=True,
            log_y=example is JUMP,
        )
        for example, by_trend in trends.items()
        for what, title in (("questions", "questions"), ("times", "nanoseconds"))
    ]


def _claims(
    drawn: dict[Example, Measured], real: dict[Example, Measured], jumps: dict[int, Measured]
) -> list[Claim]:
    cases = [*drawn.values(), *real.values()]
    ratios = [one.questions[OURS] / one.questions[OPS] for one in cases]
    more = [ratio for ratio in ratios if ratio > 1]
    claims = [
        Claim(
            "OPS never asks more than naive search",
            f"from {min(one.fewer(OPS) for one in cases):.2f} to {max(one.fewer(OPS) for one in cases):.2f} "
            "times fewer questions",
            all(one.fewer(OPS) >= 1 for one in cases),
        ),
        Claim(
            "attempts side by side do not ask more than OPS, which goes back",
            f"{len(cases) - len(more)} of {len(cases)} times; from {1 / max(ratios):.2f} to "
            f"{1 / min(ratios):.2f} times fewer questions",
            not more or None,
        ),
    ]
    for where, measured in (("random walks", drawn), ("real prices", real)):
        for example in ON_REAL_PRICES if measured else ():
            one = measured[example]
            claims.append(
                Claim(
                    f"fewer questions than naive search: {example.name}, {where}",
                    f"OPS {one.fewer(OPS):.2f} times fewer, side by side {one.fewer(OURS):.2f} times",
                    one.fewer(OURS) > 1 and one.fewer(OPS) > 1,
                )
            )
    short, long = jumps[TRENDS[0]], jumps[TRENDS[-1]]
    claims.append(
        Claim(
            f"only for naive search questions grow with the length of a star that fails: {JUMP.name}",
            ", ".join(f"{way} {short.questions[way]:.1f} to {long.questions[way]:.1f}" for way in WAYS),
            all(long.questions[way] < 2 * short.questions[way] for way in (OPS, OURS)),
        )
    )
    return claims
