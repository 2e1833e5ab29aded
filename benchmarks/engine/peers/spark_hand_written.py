"""One result per row over the rows before it, which Spark has no SQL for on streams: written with pandas.

State per key: the timestamps and the values of the rows that a later row may still need, as bytes of arrays.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from benchmarks.engine.contract import ROWS_PRECEDING, WINDOW_SECONDS, arguments
from benchmarks.engine.peers.spark import PROVIDERS, SCHEMA, compete

WINDOW = np.timedelta64(WINDOW_SECONDS, "s")


def over_range(key: tuple[int], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    rows = pd.concat(parts).sort_values("ts")
    ts, v = rows["ts"].to_numpy(), rows["v"].to_numpy()
    if state.exists:
        kept_ts, kept_v = state.get
        ts = np.concatenate([np.frombuffer(kept_ts, dtype=ts.dtype), ts])
        v = np.concatenate([np.frombuffer(kept_v), v])
    first = np.searchsorted(ts, ts - WINDOW)
    yield _results(rows, v, first)
    state.update((ts[first[-1] :].tobytes(), v[first[-1] :].tobytes()))


def over_rows(key: tuple[int], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    rows = pd.concat(parts).sort_values("ts")
    v = rows["v"].to_numpy()
    if state.exists:
        v = np.concatenate([np.frombuffer(state.get[0]), v])
    yield _results(rows, v, np.maximum(np.arange(len(v)) - ROWS_PRECEDING, 0))
    state.update((v[-ROWS_PRECEDING:].tobytes(),))


def _results(rows: pd.DataFrame, v: np.ndarray, first: np.ndarray) -> pd.DataFrame:
    """The new rows, which are the last of `v`, each with the sum from its `first` to itself."""
    sums = np.concatenate([[0.0], np.cumsum(v)])
    return rows.assign(total=(sums[1:] - sums[first])[-len(rows) :])


WAYS = {"range": (over_range, "ts BINARY, v BINARY"), "rows": (over_rows, "v BINARY")}


def main() -> None:
    parser = arguments()
    parser.add_argument("--query", choices=WAYS, required=True)
    parser.add_argument("--provider", choices=PROVIDERS, default="rocksdb")
    options = parser.parse_args()
    function, state = WAYS[options.query]

    def query(stream: DataFrame) -> DataFrame:
        return stream.groupBy("k").applyInPandasWithState(
            function, f"{SCHEMA}, total DOUBLE", state, "append", GroupStateTimeout.NoTimeout
        )

    compete(options, query, options.provider)


if __name__ == "__main__":
    main()
