"""2 million csv rows through a filter and a projection, into one ordered csv file.

By hand is the same query in PySpark, as a streaming query and as a batch job, both from csv to csv; they
leave several files in no order. Whole processes are measured, from the shell's point of view.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

from benchmarks.report import Measurement, command, in_turn

ROWS = 2_000_000

SCRIPT = """
    CREATE STREAM bids (itemID INT, price DOUBLE, bidder STRING, quantity INT, t TIMESTAMP) ORDER BY t
        USING csv OPTIONS (path '{data}', header 'true');
    SELECT itemID, bidder, price * quantity AS total, t FROM bids WHERE price > 50;
"""

BY_HAND = """
import sys
from pyspark.sql import SparkSession

streaming, data, out, checkpoint = sys.argv[1] == "stream", *sys.argv[2:]
spark = (
    SparkSession.builder.master("local[*]").config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC").getOrCreate()
)
schema = "itemID INT, price DOUBLE, bidder STRING, quantity INT, t TIMESTAMP"
reader = (spark.readStream if streaming else spark.read).schema(schema).option("header", "true")
bids = reader.csv(data)
result = bids.where("price > 50").selectExpr("itemID", "bidder", "price * quantity AS total", "t")
if streaming:
    writer = result.writeStream.format("csv").option("header", "true").option("path", out)
    writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start().awaitTermination()
else:
    result.write.option("header", "true").csv(out)
spark.stop()
"""


def measure(quick: bool = False) -> list[Measurement]:
    rows = ROWS // 10 if quick else ROWS
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        data = directory / "data"
        data.mkdir()
        make_bids(data / "bids.csv", rows)
        script = directory / "query.esl"
        script.write_text(SCRIPT.format(data=data))
        by_hand = directory / "by_hand.py"
        by_hand.write_text(BY_HAND)

        def hand(mode: str) -> None:
            out, checkpoint = directory / "hand", directory / "checkpoint"
            for leftover in (out, checkpoint):
                shutil.rmtree(leftover, ignore_errors=True)
            command(str(by_hand), mode, str(data), str(out), str(checkpoint))

        return in_turn(
            {
                "millstream run --out": lambda: command(
                    "-m", "millstream", "run", str(script), "--out", str(directory / "out")
                ),
                "PySpark by hand, streaming": lambda: hand("stream"),
                "PySpark by hand, batch": lambda: hand("batch"),
            },
            rows,
        )


def make_bids(path: Path, rows: int) -> None:
    """Bids in the order of their time, a millisecond apart."""
    random = np.random.default_rng(1)
    start = np.datetime64("2026-01-01T00:00:00", "ms")
    table = pa.table(
        {
            "itemID": random.integers(0, 1000, rows, dtype=np.int32),
            "price": random.random(rows).round(4) * 100,
            "bidder": np.char.add("bidder", random.integers(0, 5000, rows).astype(str)),
            "quantity": random.integers(1, 10, rows, dtype=np.int32),
            "t": start + np.arange(rows).astype("timedelta64[ms]"),
        }
    )
    csv.write_csv(table, path)


if __name__ == "__main__":
    make_bids(Path(sys.argv[1]), int(sys.argv[2]))
