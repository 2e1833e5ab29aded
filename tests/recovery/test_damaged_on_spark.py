"""A restart after damage: refused in words or with all rows; and files that have been read are gone."""

from __future__ import annotations

import json
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import ExecutionError
from millstream.runtime.queries import input_cleanup
from millstream.runtime.queries.running_query import RunningQuery
from tests.connectors.test_port import wait_until
from tests.recovery.bids import bids, declared, write

pytestmark = pytest.mark.spark

SUMS = "SELECT item, sum(price) OVER (PARTITION BY item ROWS 3 PRECEDING) AS s FROM Bid"

Damage = Callable[[Path], object]


@pytest.fixture(scope="module")
def ended(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str, list[object]]:
    """The checkpoint of a run that came to its end, its script, and its rows."""
    directory = tmp_path_factory.mktemp("ended")
    write(directory / "bids", bids(seed=1, count=20), files=1)
    script = declared(str(directory / "bids")) + SUMS
    return directory / "checkpoint", script, run(spark, directory / "checkpoint", script)


def run(spark: SparkSession, checkpoint: Path, script: str) -> list[object]:
    with ms.connect(spark, checkpoint=checkpoint) as mill:
        (query,) = mill.execute(script)
        return list(query.collect().to_pylist())


def last(directory: Path) -> Path:
    return max((path for path in directory.iterdir() if path.name.isdigit()), key=lambda path: int(path.name))


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda q: shutil.rmtree(q / "spark/offsets"), "the files in spark/offsets are missing"),
        (lambda q: shutil.rmtree(q / "spark/sources"), "entry 0 of a log in spark/sources is missing"),
        (lambda q: shutil.rmtree(q / "spark"), "but Spark's checkpoint ends at -1|is gone"),
        (lambda q: shutil.rmtree(q / "results"), "the directory is gone"),
        (lambda q: next((q / "results").glob("*.arrow")).write_bytes(b"ARROW1"), "is incomplete"),
        (lambda q: (q / "query.json").unlink(), "query.json is missing"),
        (lambda q: (q / "query.json").write_text(json.dumps({"format": 4})), "has format 4"),
        (lambda q: last(q / "spark/commits").write_text(""), None),
        (lambda q: shutil.rmtree(q / "spark/commits"), None),
        (lambda q: shutil.rmtree(q / "control"), None),
    ],
    ids=[
        "offsets",
        "sources",
        "spark",
        "results",
        "torn",
        "manifest",
        "format",
        "commit",
        "commits",
        "control",
    ],
)
def test_a_restart_after_damage(
    spark: SparkSession,
    tmp_path: Path,
    ended: tuple[Path, str, list[object]],
    damage: Damage,
    reason: str | None,
) -> None:
    before, script, rows = ended
    # Spark remembers files by their paths, so the copy takes the place of the original.
    aside = before.with_name("aside")
    shutil.copytree(before, aside)
    try:
        damage(before / "q1")
        if reason is None:
            assert run(spark, before, script) == rows
        else:
            with pytest.raises(ExecutionError, match=reason) as caught:
                run(spark, before, script)
            assert caught.value.hint
    finally:
        shutil.rmtree(before)
        aside.rename(before)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def test_lines_and_heartbeats_that_were_read_are_removed_and_never_missed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two queries read one port, one of them with a state; the run is stopped and goes on."""
    monkeypatch.setattr(input_cleanup.InputCleaner.__init__, "__defaults__", (0.1,))
    port = free_port()
    script = f"""
        CREATE STREAM s (a BIGINT, current_time TIMESTAMP) ORDER BY current_time SOURCE 'port{port}'
            HEARTBEAT INTERVAL 1 SECOND;
        CREATE SINK out USING json OPTIONS (path '{tmp_path / "sink"}');
        INSERT INTO out SELECT a FROM s;
        SELECT a, sum(a) OVER (ROWS UNBOUNDED PRECEDING) AS total FROM s;
    """
    number = 0

    def send_and_wait(query: RunningQuery) -> None:
        nonlocal number
        number += 1
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(b"%d\n" % number)
        wait_until(lambda: query.progress.rows_out == number, seconds=60)

    for _ in range(2):
        with ms.connect(spark, checkpoint=tmp_path / "checkpoint") as mill:
            sums = mill.execute(script)[-1]
            for _ in range(5):
                send_and_wait(sums)
            for files in ("port*/*.parquet", "q*/control/*.txt"):
                few = lambda files=files: len(list((tmp_path / "checkpoint").glob(files))) <= 3  # noqa: E731
                wait_until(few, seconds=60)
            assert sums.log is not None
            sums.stop()
            totals = [row["total"] for table in sums.log.read() for row in table.to_pylist()]
    assert totals == [n * (n + 1) // 2 for n in range(1, 11)]
    lines = [line for file in (tmp_path / "sink").glob("*.json") for line in file.read_text().splitlines()]
    written = [json.loads(line)["a"] for line in lines]
    assert sorted(written) == list(range(1, 11))
