"""Bidders of the last minutes: a table of 100,000 bidders, and ten million tuples through it."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.aggregates.kernels import base, catalog_of
from benchmarks.experiments.section import Claim, Figures, Section, Size
from benchmarks.windows.chains import AT_ONCE
from millstream.kernels.core.kernel import Frontier, Kernel, Tuples
from millstream.types import INT, TIMESTAMP

ROWS, REPEATS = 10_000_000, 1
BIDDERS = 100_000
WANTED = 1_000_000
MINUTES = 60
BODY = """
AGGREGATE bidder_wcount(bidder_id, bid_time, num_min):(bcount)
{ TABLE bidders(b_id, btime);
  INITIALIZE : { INSERT INTO bidders VALUES (bidder_id, bid_time); INSERT INTO RETURN VALUES (1); }
  ITERATE : {
    INSERT INTO bidders VALUES (bidder_id, bid_time) WHERE bidder_id NOT IN (SELECT b_id FROM bidders);
    UPDATE bidders SET btime = bid_time WHERE bidder_id = b_id;
    DELETE FROM bidders WHERE bid_time > (btime + num_min MINUTES);
    INSERT INTO RETURN SELECT count(b_id) FROM bidders
  }
  TERMINATE : { } };
"""
ABOUT = f"""\
`bidder_wcount(bidder_id, bid_time, {MINUTES})` of the ESL paper (example 11) as a base aggregate, in the
kernel alone, on one core: {BIDDERS:,} bidders at random, each with a row in its table that is found by a
hash and moved to the end of an order with every bid. Batches of {AT_ONCE:,} tuples as arrow tables; after
each, what of the state has changed is asked for and written into chunks, as a micro-batch would. The times
with and without that are both shown."""


def measure(size: Size, directory: Path) -> Section:
    kernel = base(catalog_of(BODY), "bidder_wcount", [INT, TIMESTAMP, INT], ["id", "at", "minutes"])
    rng = np.random.default_rng(11)
    _batch(kernel, rng, 0, 1_000)  # compile before the measurement
    kernel.snapshot()
    running = writing = 0.0
    for start in range(1_000, size.rows, AT_ONCE):
        running += _batch(kernel, rng, start, min(AT_ONCE, size.rows - start))
        begun = time.perf_counter()
        kernel.snapshot()
        writing += time.perf_counter() - begun
    rate, with_state = size.rows / running, size.rows / (running + writing)
    table = [
        ["", "tuples/s", "ns for a tuple"],
        ["the kernel", f"{rate:,.0f}", f"{1e9 / rate:,.0f}"],
        ["with its state written", f"{with_state:,.0f}", f"{1e9 / with_state:,.0f}"],
    ]
    claim = Claim(
        f"at least {WANTED:,} tuples a second on a core, with {BIDDERS:,} bidders",
        f"{rate:,.0f}, {with_state:,.0f} with its state written; {kernel.rows:,} rows of state",
        rate >= WANTED,
    )
    return Section("Bidders of the last hour", ABOUT, [claim], [Figures("", table)])


def _batch(kernel: Kernel, rng: np.random.Generator, start: int, count: int) -> float:
    """Seconds for some bids, ten of them in a millisecond: about 400 of a bidder in an hour."""
    number = np.arange(start, start + count)
    columns = pa.table(
        {
            "id": rng.integers(0, BIDDERS, count).astype(np.int32),
            "at": pa.array(number * 100, pa.timestamp("us", "UTC")),
            "minutes": np.full(count, MINUTES, np.int32),
        }
    )
    tuples = Tuples(columns, number * 100, np.zeros(count, np.int32), number)
    begun = time.perf_counter()
    kernel.process(tuples, Frontier(int(number[-1]) * 100, 0))
    return time.perf_counter() - begun
