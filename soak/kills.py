"""Disturbances of one script: nothing may be lost or doubled, and nothing may stay behind."""

from __future__ import annotations

import csv
import json
import os
import random
import signal
import socket
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from soak.disturbed import FLUSH_ITEM, QUERIES, SCRIPT, SINKS, Bids, Rows, answers, shown
from soak.report import Finding, differences
from soak.sender import Sender
from tests.recovery import sinks
from tests.recovery.processes import QUICK, Child, Runs, processes

_KINDS = {"worker": 50, "driver": 16, "parent": 9, "jvm": 9, "SIGTERM": 8, "SIGINT": 8}
"""Disturbances and how often each of them comes. A run survives the death of a worker, so these are quick."""
_DURING_START = 0.1
_START_SECONDS = 10.0
_ROWS = 40
_PAUSE_SECONDS = 1.5
"""A file with so many rows is written every so often."""
_PATIENCE_SECONDS = 240.0
_END_SECONDS = 60.0


def soak(directory: Path, kills: int, seed: int, say: Callable[[str], None]) -> list[Finding]:
    """Disturb a run so many times; in between, every query finishes a batch."""
    began = time.monotonic()
    disturbed = _Disturbed(directory, seed, say)
    disturbed.run(kills)
    findings = disturbed.compare()
    detail = ", ".join(f"{count} {kind}" for kind, count in disturbed.counts.items())
    wrong = "; ".join([*disturbed.wrong[:3], *disturbed.leftovers()])
    total = Finding(
        "kills",
        f"{disturbed.counts.total()} kills",
        time.monotonic() - began,
        sum(finding.lost for finding in findings),
        sum(finding.doubled for finding in findings),
        detail,
        wrong,
    )
    return [*findings, total]


class _Disturbed:
    """One script, run again and again on input that grows."""

    def __init__(self, directory: Path, seed: int, say: Callable[[str], None]) -> None:
        self._chance = random.Random(seed)
        self._say = say
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._disturbed_at: list[float] = []
        self._sessions: list[int] = []
        self._shared_before = _shared()
        self._bids = Bids(directory / "bids", seed)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._runs = Runs(directory, SCRIPT.format(port=port), "--format", "csv", *QUICK)
        self._sender = Sender(port)
        self._output = ""
        self._stop_writing = threading.Event()

    def run(self, kills: int) -> None:
        """Disturb, then let the last run come to its end."""
        writer = threading.Thread(target=self._write, daemon=True)
        writer.start()
        self._sender.start()
        self._let_all_have_results()
        while self.counts.total() < kills:
            self._one_run(kills)
        self._stop_writing.set()
        writer.join()
        self._last_run()
        self._sender.stop()

    def _write(self) -> None:
        while not self._stop_writing.wait(_PAUSE_SECONDS):
            self._bids.write(_ROWS)

    # ------------------------------------------------------------ runs

    def _start(self) -> Child:
        child = self._runs.start()
        self._sessions.append(child.popen.pid)
        return child

    def _let_all_have_results(self) -> None:
        """No disturbance before every sink has rows, and so every query has state that can be lost."""
        child = self._start()
        try:
            child.wait_until(self._all_have_results, _PATIENCE_SECONDS)
            self._say("all queries have committed results")
        finally:
            self._stop(child, signal.SIGTERM)

    def _all_have_results(self) -> bool:
        time.sleep(1)
        return all(self._rows_of(name) for name in (*SINKS, "lines")) and self._commits("totals") > 0

    def _one_run(self, kills: int) -> None:
        """A run and its disturbances: the deaths of workers, and then one that ends it."""
        before = {name: self._commits(name) for name in QUERIES}
        began = time.monotonic()
        child = self._start()
        if self._chance.random() < _DURING_START:
            time.sleep(self._chance.uniform(0, _START_SECONDS))
            self._disturb(child, self._kind(ends=True), "while it started")
            return
        while self.counts.total() < kills:
            if not self._all_went_on(child, before):
                self.wrong.append(f"a run ended by itself: {child.err.strip()[:200]}")
                child.kill()
                return
            time.sleep(self._chance.uniform(0, 2))
            kind = self._kind()
            self._disturb(child, kind, f"after {time.monotonic() - began:.0f} s")
            if kind != "worker":
                return
            before = {name: self._commits(name) for name in QUERIES}
        self._stop(child, signal.SIGTERM)

    def _all_went_on(self, child: Child, before: dict[str, int]) -> bool:
        """Wait until every query has finished a batch; False if the run ended."""

        def reached() -> bool:
            time.sleep(0.2)
            return all(self._commits(name) > count for name, count in before.items())

        try:
            return child.wait_until(reached, _PATIENCE_SECONDS)
        except TimeoutError:
            behind = [name for name, count in before.items() if self._commits(name) <= count]
            self.wrong.append(f"no batch of {', '.join(behind)} in {_PATIENCE_SECONDS:.0f} s")
            return True

    def _last_run(self) -> None:
        self._bids.flush()
        should = answers(self._bids.rows)
        child = self._start()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < deadline and not child.has_ended:
            time.sleep(2)
            if all(len(self._real_rows(name)) >= len(should[name]) for name in SINKS):
                break
        time.sleep(5)
        self._stop(child, signal.SIGINT)
        self._expect_no_family(child, "SIGINT at the end")
        self._output = child.out

    # ------------------------------------------------------------ disturbances

    def _kind(self, *, ends: bool = False) -> str:
        kinds = [kind for kind in _KINDS if not ends or kind != "worker"]
        return self._chance.choices(kinds, [_KINDS[kind] for kind in kinds])[0]

    def _disturb(self, child: Child, kind: str, when: str) -> None:
        self._disturbed_at.append(time.monotonic())
        match kind:
            case "worker":
                if not child.kill_python_worker(self._chance):
                    return
            case "driver":
                child.kill()
            case "parent":
                os.kill(child.popen.pid, signal.SIGKILL)
                child.popen.wait()
            case "jvm":
                self._kill_jvm(child)
            case _:
                self._stop(child, signal.Signals[kind])
        self.counts[kind] += 1
        if kind != "worker":
            self._expect_no_family(child, kind)
        self._say(f"{self.counts.total()}: {kind} {when}, {self._runs.batches} batches so far")

    def _kill_jvm(self, child: Child) -> None:
        found = [p.pid for p in child.family() if p.parent == child.popen.pid and "SparkSubmit" in p.command]
        if not found:
            child.kill()
            return
        os.kill(found[0], signal.SIGKILL)
        code = self._code(child)
        if code != 1 or "Traceback" in child.err or "JVM" not in child.err:
            self.wrong.append(f"the JVM died: {code}, {child.err.strip()[:200]}")

    def _stop(self, child: Child, number: signal.Signals) -> None:
        child.popen.send_signal(number)
        code = self._code(child)
        # Before the handlers are there, a signal ends the process as it ends any other.
        if code not in (0, -number, 128 + number) or "Traceback" in child.err:
            self.wrong.append(f"{number.name}: {code}, {child.err.strip()[:200]}")

    def _code(self, child: Child) -> int | None:
        try:
            return child.wait(_END_SECONDS)
        except subprocess.TimeoutExpired as error:
            self.wrong.append(f"still there after {_END_SECONDS:.0f} s: {error}")
            child.kill()
            return None

    def _expect_no_family(self, child: Child, kind: str) -> None:
        deadline = time.monotonic() + 20
        while child.family() and time.monotonic() < deadline:
            time.sleep(0.1)
        if orphans := child.family():
            self.wrong.append(f"{len(orphans)} processes left by {kind}")
            child.kill()

    # ------------------------------------------------------------ inspection

    def _commits(self, name: str) -> int:
        """Number of finished batches of a query; Spark removes the notes of those that are long past."""
        commits = (self._runs.checkpoint / name / "spark/commits").glob("*")
        return max((int(p.name) + 1 for p in commits if p.name.isdigit()), default=0)

    def _rows_of(self, name: str) -> Rows:
        directory = self._runs.directory / name
        if not (directory / "_spark_metadata").exists():
            return []
        return [row for path in sinks.committed(directory) for row in _read(path)]

    def _real_rows(self, name: str) -> Rows:
        """Without those of the rows that only move time on: their numbers and items are negative."""
        return [row for row in self._rows_of(name) if not row[0].startswith("-")]

    def compare(self) -> list[Finding]:
        """Rows lost and doubled, by sink."""
        should = answers(self._bids.rows)
        found = {name: self._real_rows(name) for name in SINKS}
        shown_ = [tuple(row) for row in csv.reader(self._output.splitlines())]
        found["totals"] = [row for row in shown_[1:] if row[0] != str(FLUSH_ITEM)]
        findings = []
        for name, rows in should.items():
            lost, doubled = differences(found[name], rows)
            findings.append(Finding(name, f"{len(rows):,} rows", 0, lost, doubled))
        lines = self._sender.judge(self._rows_of("lines"), self._disturbed_at)
        wrong = f"{lines.wrong_counts} wrong counts" if lines.wrong_counts else ""
        detail = f"{lines.lost_at_ends} lost within a second of an end, as documented"
        size = f"{len(self._sender.sent):,} lines"
        return [*findings, Finding("port", size, 0, lines.lost, lines.doubled, detail, wrong)]

    def leftovers(self) -> list[str]:
        """Return everything that should have been removed."""
        left = []
        alive = [p for p in processes() if p.session in self._sessions]
        scratch = list((self._runs.directory / "scratch").iterdir())
        # A message may name the log of a run whose JVM was killed.
        scratch = [path for path in scratch if not (path / "kept").exists()]
        parts = [
            path
            for name in (*SINKS, "lines")
            for path in (self._runs.directory / name).glob("part-*")
            if path not in sinks.committed(self._runs.directory / name)
        ]
        for what, found in (
            ("processes", alive),
            ("temporary directories", scratch),
            ("directories in shared memory", _shared() - self._shared_before),
            ("part files", parts),
        ):
            if found:
                left.append(f"{len(found)} {what} left")
        return left


def _shared() -> set[str]:
    root = Path(f"/dev/shm/millstream-{os.getuid()}")
    return {path.name for path in root.iterdir()} if root.exists() else set()


def _read(path: Path) -> Rows:
    if path.suffix == ".parquet":
        records: list[dict[str, Any]] = pq.ParquetFile(path).read().to_pylist()
    elif path.suffix == ".json":
        records = [json.loads(line) for line in path.read_text().splitlines()]
    else:
        return [tuple(row) for row in csv.reader(path.read_text().splitlines())]
    return [tuple(map(shown, record.values())) for record in records]
