"""On a cluster, of which one process is killed, queries answer as they do on one machine alone."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

from tests.cluster.standalone import HOST, cluster
from tests.recovery.bids import QUERIES, bids, declared, expected, from_directory, write
from tests.recovery.processes import QUICK, Runs

pytestmark = [
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc"),
]

SETTINGS = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
}


def test_an_executor_dies_in_the_middle(tmp_path: Path) -> None:
    stream = bids(seed=5, count=240)
    script = declared("../bids") + QUERIES
    write(tmp_path / "bids", stream, files=6)
    with cluster(tmp_path / "cluster") as spark:
        settings = [part for key, value in SETTINGS.items() for part in ("--set", f"{key}={value}")]
        runs = Runs(tmp_path / "run", script, "--out", "out", *QUICK, *settings, "--master", spark.url)
        child = runs.start(environment={"SPARK_LOCAL_IP": HOST})
        try:
            assert child.wait_until(lambda: runs.batches >= 2), child.err
            executors = spark.executors()
            assert len(executors) == 2
            time.sleep(random.Random(6).uniform(0, 0.5))
            spark.kill(executors[0])
            assert child.wait() == 0, child.err
        finally:
            child.kill()
    # Local runs are held to the same answers in tests/recovery.
    assert from_directory(runs.directory / "out") == expected(script, stream)
    assert not [process for daemon in spark.workers for process in daemon.family()]
