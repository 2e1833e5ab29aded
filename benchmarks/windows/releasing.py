"""Latency and error of windows over a disordered stream.

The engine's own parts decide: a tracker classifies the tuples and makes promises, the kernel of windows takes
the tuples that the tracker passes. Neither depends on batches, so all tuples go in at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from benchmarks.windows.disorder import Disordered, Integers
from millstream.kernels.core.kernel import Frontier, Tuples
from millstream.kernels.specs import AggregateSpec, WindowSpec
from millstream.kernels.window_specs import SlidingWindows
from millstream.kernels.windows.window_aggregate import WindowAggregate
from millstream.progress.disorder_clauses import InOrder, Promises, Punctuated
from millstream.progress.piece import Piece
from millstream.progress.watermark_tracker import Tracker

LEAST = np.iinfo(np.int64).min
AGGREGATES = (AggregateSpec("count", None, "n", pa.int64()), AggregateSpec("avg", "v", "mean", pa.float64()))


@dataclass(frozen=True)
class Quality:
    """Quality of one treatment of disorder. Latencies are means over the windows, in stream seconds."""

    way: str
    slack: float | None
    """In seconds; None for punctuation from outside."""

    counted: float
    """The share of memberships of tuples in windows that the results have."""

    wrong: float
    """The share of windows whose answer is not the right one."""

    error_of_count: float
    error_of_mean: float
    """The mean over the windows of the relative error."""

    latency: float
    """From a window's end until its result."""

    waiting: float
    """From the arrival of a window's last tuple until its result: none if the result came before that."""


@dataclass(frozen=True)
class Answers:
    ends: Integers
    n: Integers
    mean: npt.NDArray[np.float64]


@dataclass
class Trial:
    """Windows over one stream. Those count that are full, and that every way completes before the end."""

    stream: Disordered
    range: int
    slide: int
    margin: int
    """The largest slack that is tried."""

    def __post_init__(self) -> None:
        """Compute the reference results: all tuples, none of them late."""
        truth = self._answers(np.zeros(len(self.stream), np.bool_), None)
        last = int(self.stream.ts.max()) - self.margin
        chosen = (truth.ends >= self.range) & (truth.ends <= last)
        if not chosen.any():
            raise ValueError("there are not enough rows for a single window")
        self.truth = Answers(truth.ends[chosen], truth.n[chosen], truth.mean[chosen])
        self.complete = self._complete()

    def slack(self, slack: int, *, generous: bool) -> Quality:
        """SLACK INTERVAL: punctuation that the engine makes by itself."""
        stream = self.stream
        tracker = Tracker(Promises((InOrder(slack),), generous))
        verdict = tracker.show(Piece(stream.ts))
        answers = self._answers(verdict.late, verdict.promised if generous else None)
        # The promise after each tuple is the promise before the next.
        after = np.append(verdict.promised[1:], tracker.promised)
        at = np.searchsorted(after, self.truth.ends)
        name = "generous slack" if generous else "consistent slack"
        return self._quality(name, slack, answers, stream.arrival[at])

    def punctuated(self, promises: Sequence[int], instants: Sequence[int]) -> Quality:
        """PUNCTUATED BY: the source promises by itself, at these instants."""
        stream = self.stream
        # As tuples among the tuples: after all that have arrived until then.
        places = np.searchsorted(stream.arrival, np.asarray(instants), side="right")
        ts = np.insert(stream.ts, places, promises)
        is_promise = np.insert(np.zeros(len(stream), np.bool_), places, True)
        tracker = Tracker(Promises((Punctuated(),)))
        verdict = tracker.show(Piece(ts, promises=is_promise))
        answers = self._answers(verdict.late[~is_promise], None)
        at = np.searchsorted(np.asarray(promises), self.truth.ends)
        return self._quality("external punctuation", None, answers, np.asarray(instants)[at])

    def _answers(self, late: npt.NDArray[np.bool_], promised: Integers | None) -> Answers:
        """Return the kernel's results; late tuples count only if ``promised`` is passed (GENEROUS)."""
        stream = self.stream
        hold = None if promised is None else np.where(late, promised, LEAST)
        kept = np.flatnonzero(~late) if hold is None else np.arange(len(stream))
        tuples = Tuples(
            pa.table({"v": stream.v}),
            stream.ts,
            np.zeros(len(stream), np.int32),
            np.arange(len(stream)),
            hold,
        ).take(kept)
        kernel = WindowAggregate(
            WindowSpec(SlidingWindows(self.range, self.slide), pa.int64(), (), AGGREGATES)
        )
        after_all = int(stream.ts.max()) + 2 * self.range
        results = kernel.process(tuples, Frontier(after_all, 0)).columns
        return Answers(*(np.asarray(results[name]) for name in ("window_end", "n", "mean")))

    def _complete(self) -> Integers:
        """Return the arrival of the last tuple of each window."""
        by_time = np.argsort(self.stream.ts, kind="stable")
        ts, arrival = self.stream.ts[by_time], self.stream.arrival[by_time]
        first = np.searchsorted(ts, self.truth.ends - self.range)
        end = np.searchsorted(ts, self.truth.ends)
        return np.array([arrival[a:b].max() for a, b in zip(first, end, strict=True)])

    def _quality(self, way: str, slack: int | None, answers: Answers, released: Integers) -> Quality:
        truth = self.truth
        at = np.minimum(np.searchsorted(answers.ends, truth.ends), len(answers.ends) - 1)
        # A window of which no tuple was counted has no result at all.
        there = answers.ends[at] == truth.ends
        n = np.where(there, answers.n[at], 0)
        error = np.where(there, np.abs(answers.mean[at] - truth.mean) / np.abs(truth.mean), 1)
        return Quality(
            way,
            None if slack is None else slack / 1e6,
            float(n.sum() / truth.n.sum()),
            float((n != truth.n).mean()),
            float(((truth.n - n) / truth.n).mean()),
            float(error.mean()),
            float((released - truth.ends).mean() / 1e6),
            float(np.maximum(released - self.complete, 0).mean() / 1e6),
        )


HEADING = [
    "", "slack, s", "tuples counted", "wrong windows", "error of count", "error of avg",
    "latency, s", "waiting, s",
]  # fmt: skip


def line(quality: Quality) -> list[str]:
    shares = (quality.counted, quality.wrong, quality.error_of_count, quality.error_of_mean)
    return [
        quality.way,
        "" if quality.slack is None else f"{quality.slack:g}",
        *(f"{100 * share:.4g} %" for share in shares),
        f"{quality.latency:.2f}",
        f"{quality.waiting:.2f}",
    ]


def curves(
    found: Sequence[Quality], point: Callable[[Quality], tuple[float, float]], *, with_outside: bool = True
) -> dict[str, list[tuple[float, float]]]:
    """A curve for each way; punctuation from outside is a single point."""
    ways = dict.fromkeys(quality.way for quality in found if with_outside or quality.slack is not None)
    return {way: [point(quality) for quality in found if quality.way == way] for way in ways}
