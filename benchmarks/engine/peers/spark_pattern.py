"""Patterns on Spark, which has nothing for them: a search written in Python, with its state in Spark.

State per key: the values since the first row of the attempt that is open.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd
from pyspark.sql import DataFrame
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from benchmarks.engine.contract import arguments
from benchmarks.engine.patterns import ATTEMPTS, Attempt, search
from benchmarks.engine.peers.spark import compete

Function = Callable[[tuple[int], Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]


def searching(attempt: Attempt) -> Function:
    def matches(key: tuple[int], parts: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        rows = pd.concat(parts).sort_values("ts")
        kept = np.frombuffer(state.get[0]).tolist() if state.exists else []
        v, ts = kept + rows["v"].tolist(), rows["ts"].to_numpy()
        found, needed = search(v, attempt, more=True)
        last = np.array([end - 1 for _, end in found], dtype=np.int64)
        total = [v[end - 1] - v[start] for start, end in found]
        yield pd.DataFrame({"k": key[0], "ts": ts[last - len(kept)], "total": total})
        state.update((np.array(v[needed:]).tobytes(),))

    return matches


def main() -> None:
    parser = arguments()
    parser.add_argument("--query", choices=ATTEMPTS, required=True)
    options = parser.parse_args()

    def query(stream: DataFrame) -> DataFrame:
        return stream.groupBy("k").applyInPandasWithState(
            searching(ATTEMPTS[options.query]),
            "k INT, ts TIMESTAMP, total DOUBLE",
            "v BINARY",
            "append",
            GroupStateTimeout.NoTimeout,
        )

    compete(options, query)


if __name__ == "__main__":
    main()
