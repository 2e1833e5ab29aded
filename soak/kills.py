"""Random kills of drivers and Python workers: nothing may be lost, and nothing doubled."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

from tests.recovery import sinks
from tests.recovery.bids import SINKS, bids, declared, expected, from_csv, write
from tests.recovery.processes import Child, Runs

from soak.report import Finding, differences

FILES = 30
ROWS = 1_500
_MOST_BATCHES = 15
"""Finished by all queries together between two kills."""
_BATCH_SECONDS = 2.0
_START_SECONDS = 10.0


def soak(directory: Path, kills: int, seed: int, say: Callable[[str], None]) -> list[Finding]:
    """Streams are run to their end one after the other, with kills on the way, until there were enough."""
    chance = random.Random(seed)
    began = time.monotonic()
    counts = {"driver": 0, "worker": 0}
    lost = doubled = streams = 0
    wrong = ""
    while sum(counts.values()) < kills and not wrong:
        streams += 1
        round_ = _Round(directory / f"stream{streams}", chance, say)
        wrong = round_.run(kills - sum(counts.values()))
        for kind, count in round_.kills.items():
            counts[kind] += count
        if not wrong:
            missing, extra = round_.compare()
            lost, doubled = lost + missing, doubled + extra
        say(f"stream {streams}: {sum(counts.values())} kills so far, {lost} lost, {doubled} doubled {wrong}")
    detail = f"{counts['driver']} drivers, {counts['worker']} workers, {streams} streams"
    size = f"{sum(counts.values())} kills"
    return [Finding("kills", size, time.monotonic() - began, lost, doubled, detail, wrong)]


class _Round:
    """One stream, killed again and again until all of it has been read."""

    def __init__(self, directory: Path, chance: random.Random, say: Callable[[str], None]) -> None:
        self._chance = chance
        self._say = say
        self._rows = bids(chance.randrange(2**32), ROWS)
        self._script = declared("bids") + SINKS
        self.kills = {"driver": 0, "worker": 0}
        write(directory / "bids", self._rows, FILES)
        self._runs = Runs(directory, self._script, "--format", "csv")
        self._out = ""

    def run(self, most: int) -> str:
        """To the end; what went wrong, if anything did."""
        while True:
            child = self._runs.start()
            try:
                while not child.has_ended and sum(self.kills.values()) < most:
                    if not self._disturb(child):
                        break
                if child.popen.poll() == -9:
                    continue
                code = child.wait(1800)
            finally:
                child.kill()
            if code != 0:
                return f"a run ended with {code}: {child.err.strip().splitlines()[0]}"
            self._out = child.out
            return ""

    def _disturb(self, child: Child) -> bool:
        """Kill somebody at some moment; False if the run came to its end before."""
        if self._chance.random() < 0.1:
            # Also while Spark starts, when there is nothing to be lost yet, or something from before.
            time.sleep(self._chance.uniform(0, _START_SECONDS))
        else:
            finished = self._runs.batches + self._chance.randrange(_MOST_BATCHES)
            if not child.wait_until(lambda: self._is_at_work(child, finished), 600):
                return False
            time.sleep(self._chance.uniform(0, _BATCH_SECONDS))
        if child.has_ended:
            return False
        if self._chance.random() < 0.5:
            child.kill()
            kind = "driver"
        elif child.kill_python_worker(self._chance, 600):
            kind = "worker"
        else:
            return False
        self.kills[kind] += 1
        self._say(f"killed a {kind} after {self._runs.batches} micro-batches")
        return True

    def _is_at_work(self, child: Child, finished: int) -> bool:
        return self._runs.batches >= finished and bool(child.python_workers())

    def compare(self) -> tuple[int, int]:
        """How many rows were lost, and how many are there too often, in all results together."""
        should = expected(self._script, self._rows)
        found = {name: sinks.rows(self._runs.directory / name) for name in ("windows", "late")}
        found["q1"] = from_csv(self._out)
        pairs = [differences(found[name], should[name]) for name in should]
        return sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
