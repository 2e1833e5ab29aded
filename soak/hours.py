"""Hours of stream time: long silences, and windows that must close in them."""

from __future__ import annotations

import random
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

from soak.report import Finding, differences
from tests.recovery.bids import EPOCH, Bid, from_csv, text, write, write_file
from tests.recovery.processes import Child

RANGE_SECONDS = 60
SLIDE_SECONDS = 10
FILES = 24
_COLUMNS = "(item INT, price DOUBLE, bidder STRING, t TIMESTAMP) ORDER BY t"
_QUERY = f"""
SELECT item, window_end, count(*) AS bids, sum(price) AS total
FROM Bid [RANGE {RANGE_SECONDS} SECONDS SLIDE {SLIDE_SECONDS} SECONDS] GROUP BY item;
"""
_START_SECONDS = 40.0
_MARGIN_SECONDS = 20.0


def soak(
    directory: Path, hours: float, minutes: float, seed: int, say: Callable[[str], None]
) -> list[Finding]:
    chance = random.Random(seed)
    return [
        _replayed(directory / "replayed", hours, chance, say),
        _live(directory / "live", minutes, chance, say),
    ]


def _replayed(directory: Path, hours: float, chance: random.Random, say: Callable[[str], None]) -> Finding:
    """A stream without heartbeats: bursts, and silences of up to an hour that only the next burst ends."""
    began = time.monotonic()
    rows: list[Bid] = []
    at, end = EPOCH, EPOCH + timedelta(hours=hours)
    while at < end:
        for _ in range(chance.randrange(1, 200)):
            rows.append(_bid(chance, at))
            at += timedelta(seconds=chance.choice([0, 0, 0.25, 1, 5]))
        at += timedelta(seconds=chance.uniform(0, 3600) // 1)
    write(directory / "bids", rows, FILES)
    script = f"CREATE STREAM Bid {_COLUMNS} USING csv OPTIONS (path 'bids', maxFilesPerTrigger '1'); {_QUERY}"
    (directory / "script.esl").write_text(script)
    say(f"replaying {len(rows):,} rows of {hours:g} hours")
    child = _start(directory)
    code = child.wait(3600)
    return _finding(directory, child, code, rows, f"{hours:g} h of stream", "no heartbeats", began)


def _live(directory: Path, minutes: float, chance: random.Random, say: Callable[[str], None]) -> Finding:
    """A stream with heartbeats: the clock closes windows in silence, also the last ones."""
    began = time.monotonic()
    (directory / "bids").mkdir(parents=True)
    options = "(path 'bids', follow 'true')"
    # Slack for the time between the stamp of a row and the moment when its file is seen.
    clauses = "SLACK INTERVAL 10 SECONDS HEARTBEAT INTERVAL 2 SECONDS"
    script = f"CREATE STREAM Bid {_COLUMNS} USING csv OPTIONS {options} {clauses}; {_QUERY}"
    (directory / "script.esl").write_text(script)
    child = _start(directory)
    time.sleep(_START_SECONDS)
    rows: list[Bid] = []
    files = 0
    until = time.monotonic() + minutes * 60
    while time.monotonic() < until and not child.has_ended:
        now = datetime.now(UTC).replace(microsecond=0)
        burst = [_bid(chance, now) for _ in range(chance.randrange(1, 50))]
        write_file(directory / "bids", files, burst)
        files += 1
        rows += burst
        say(f"{len(rows):,} rows live")
        time.sleep(min(chance.choice([1, 2, 5, 30, 90]), max(until - time.monotonic(), 0)))
    # No more tuples come, and the stream is not ended.
    time.sleep(RANGE_SECONDS + SLIDE_SECONDS + 10 + _MARGIN_SECONDS)
    child.popen.send_signal(signal.SIGINT)
    code = child.wait(120)
    return _finding(directory, child, code, rows, f"{minutes:g} min live", f"{files} bursts", began)


def _bid(chance: random.Random, at: datetime) -> Bid:
    return Bid(chance.randrange(5), chance.randrange(400) / 4, f"b{chance.randrange(9)}", at)


def _start(directory: Path) -> Child:
    run = [sys.executable, "-m", "millstream", "run", "script.esl", "--out", "out"]
    return Child(run, directory, "run")


def _finding(
    directory: Path, child: Child, code: int, rows: list[Bid], size: str, detail: str, began: float
) -> Finding:
    child.kill()
    name = f"windows, {detail}"
    seconds = time.monotonic() - began
    if code != 0:
        return Finding(name, size, seconds, wrong=f"ended with {code}: {child.err.strip()[:200]}")
    found = from_csv((directory / "out" / "q1.csv").read_text())
    should = _windows(rows)
    lost, doubled = differences(found, should)
    wrong = "late tuples" if "late" in child.err else ""
    return Finding(name, size, seconds, lost, doubled, f"{len(rows):,} rows, {len(should):,} results", wrong)


def _windows(rows: list[Bid]) -> list[tuple[str, ...]]:
    """The results by definition: a row is in every window that ends after it and within the range."""
    counts: Counter[tuple[int, int]] = Counter()
    totals: Counter[tuple[int, int]] = Counter()
    for row in rows:
        microseconds = round(row.t.timestamp() * 1_000_000)
        slide = SLIDE_SECONDS * 1_000_000
        first = microseconds // slide + 1
        for end in range(first, first + RANGE_SECONDS // SLIDE_SECONDS):
            counts[row.item, end] += 1
            totals[row.item, end] += int(row.price * 4)
    return [
        (
            str(item),
            text(datetime.fromtimestamp(end * SLIDE_SECONDS, UTC)),
            str(count),
            str(totals[item, end] / 4),
        )
        for (item, end), count in counts.items()
    ]
