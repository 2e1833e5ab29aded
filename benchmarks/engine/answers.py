"""The right answers, recomputed with NumPy and pandas from the generated columns: no stream, no Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import numba
import numpy as np
import pandas as pd

from benchmarks.engine.contract import (
    GAP_SECONDS,
    ROWS_PRECEDING,
    SLIDE_SECONDS,
    TINY_FILES,
    TINY_ROWS,
    TUMBLE_SECONDS,
    WINDOW_SECONDS,
    Totals,
)
from benchmarks.engine.data import START, Shape, columns
from benchmarks.engine.patterns import ATTEMPTS, search

KEYS_AT_ONCE = 10_000
"""The windows of so many keys are in memory at once."""


def expected(query: str, shape: Shape) -> Totals:
    """Return the expected totals of a query; stored next to the data, since computing them takes a while."""
    kept = shape.directory / f"{query}.json"
    if kept.exists():
        return Totals(**json.loads(kept.read_text()))
    totals = _RECOMPUTE[query](shape)
    kept.write_text(json.dumps(asdict(totals)))
    return totals


def _sliding(shape: Shape) -> Totals:
    """Add every row to each of the windows that hold it, in a grid of keys and windows."""
    k, ts, v = columns(shape)
    slide = (ts - START) // np.timedelta64(SLIDE_SECONDS, "s")
    per_row = WINDOW_SECONDS // SLIDE_SECONDS
    windows = int(slide.max()) + per_row
    results, total, squares = 0, 0.0, 0.0
    for first in range(0, shape.keys, KEYS_AT_ONCE):
        these = (k >= first) & (k < first + KEYS_AT_ONCE)
        keys = min(KEYS_AT_ONCE, shape.keys - first)
        cells = (k[these] - first).astype(np.int64) * windows + slide[these]
        sums, counts = np.zeros(keys * windows), np.zeros(keys * windows, dtype=np.int64)
        for later in range(per_row):
            np.add.at(sums, cells + later, v[these])
            np.add.at(counts, cells + later, 1)
        found = sums[counts > 0]
        results += len(found)
        total += found.sum()
        squares += (found * found).sum()
    return Totals(results, float(total), float(squares))


def _tumbling(shape: Shape) -> Totals:
    k, ts, v = columns(shape)
    window = (ts - START) // np.timedelta64(TUMBLE_SECONDS, "s")
    return _totals(pd.DataFrame({"k": k, "window": window, "v": v}).groupby(["k", "window"])["v"].sum())


def _cumulate(shape: Shape) -> Totals:
    """Return the sums of the first steps of each window; a result exists once a key has a row in it.

    The stream must be a whole number of windows long: Flink and Millstream differ on a window that the end of
    the stream cuts off.
    """
    k, ts, v = columns(shape)
    step = (ts - START) // np.timedelta64(SLIDE_SECONDS, "s")
    per_window = WINDOW_SECONDS // SLIDE_SECONDS
    grid = (-1, int(step.max()) // per_window + 1, per_window)
    results, total, squares = 0, 0.0, 0.0
    for first in range(0, shape.keys, KEYS_AT_ONCE):
        these = (k >= first) & (k < first + KEYS_AT_ONCE)
        cells = (k[these] - first).astype(np.int64) * (grid[1] * grid[2]) + step[these]
        size = min(KEYS_AT_ONCE, shape.keys - first) * grid[1] * grid[2]
        sums = np.bincount(cells, v[these], size).reshape(grid).cumsum(axis=2)
        found = sums[np.bincount(cells, minlength=size).reshape(grid).cumsum(axis=2) > 0]
        results += len(found)
        total += found.sum()
        squares += (found * found).sum()
    return Totals(results, float(total), float(squares))


def _session(shape: Shape) -> Totals:
    k, ts, v = columns(shape)
    order = np.lexsort((ts, k))
    k, ts, v = k[order], ts[order], v[order]
    starts = (np.diff(k, prepend=-1) != 0) | (np.diff(ts, prepend=ts[:1]) > np.timedelta64(GAP_SECONDS, "s"))
    return _totals(pd.Series(np.bincount(np.cumsum(starts) - 1, v)))


def _range(shape: Shape) -> Totals:
    rolling = _by_key(shape).rolling(f"{WINDOW_SECONDS}s", on="ts", closed="both")
    return _totals(rolling["v"].sum())


def _rows(shape: Shape) -> Totals:
    return _totals(_by_key(shape).rolling(ROWS_PRECEDING + 1, min_periods=1)["v"].sum())


def _join(shape: Shape) -> Totals:
    """Return, for each row of one stream, the totals of the near rows of the other, by prefix sums."""
    one, two = (_by_key_and_time(each) for each in (shape, shape.other))
    reach = np.timedelta64(WINDOW_SECONDS, "s") // np.timedelta64(1, "ms")
    first = np.searchsorted(two[0], one[0] - reach, "right")
    last = np.searchsorted(two[0], one[0] + reach, "left")
    sums = [np.concatenate([[0.0], np.cumsum(values)]) for values in (two[1], two[1] ** 2)]
    total, squares = (
        float((one[1] ** power * (of[last] - of[first])).sum()) for power, of in enumerate(sums, 1)
    )
    return Totals(int((last - first).sum()), total, squares)


def _by_key_and_time(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    """Values in the order of key and time, which are one number: between keys there is more than a window."""
    k, ts, v = columns(shape)
    places = k * np.int64(shape.seconds + 10 * WINDOW_SECONDS) * 1000 + (ts - START).astype(np.int64)
    order = np.argsort(places)
    return places[order], v[order]


def _matches(query: str) -> Callable[[Shape], Totals]:
    def totals(shape: Shape) -> Totals:
        k, ts, v = columns(shape)
        order = np.lexsort((ts, k))
        k, v = k[order], v[order]
        compiled, attempt = numba.njit(search), numba.njit(ATTEMPTS[query])
        results = []
        for of_key in np.split(v, np.flatnonzero(np.diff(k)) + 1):
            found, _ = compiled(of_key, attempt, False)
            results += [of_key[end - 1] - of_key[start] for start, end in found]
        return _totals(pd.Series(results))

    return totals


def _scan(shape: Shape) -> Totals:
    _, _, v = columns(shape)
    return _totals(pd.Series(v))


def _tiny_count(shape: Shape) -> Totals:
    """A result for each row: its key has been counted once in each file so far."""
    counts = np.arange(1, TINY_FILES + 1)
    return _totals(pd.Series(np.repeat(counts, TINY_ROWS)))


def _tiny_window(shape: Shape) -> Totals:
    """One for each row, but for those of the last file, whose second nothing has ended."""
    return _totals(pd.Series(np.ones((TINY_FILES - 1) * TINY_ROWS)))


def _by_key(shape: Shape) -> pd.api.typing.DataFrameGroupBy:
    k, ts, v = columns(shape)
    return pd.DataFrame({"k": k, "ts": ts, "v": v}).groupby("k")


def _totals(results: pd.Series) -> Totals:
    return Totals(len(results), float(results.sum()), float((results * results).sum()))


_RECOMPUTE: dict[str, Callable[[Shape], Totals]] = {
    "sliding": _sliding,
    "range": _range,
    "rows": _rows,
    "tumbling": _tumbling,
    "cumulate": _cumulate,
    "session": _session,
    **{query: _matches(query) for query in ATTEMPTS},
    "join": _join,
    "scan": _scan,
    "micro_batch_count": _tiny_count,
    "micro_batch_window": _tiny_window,
}
