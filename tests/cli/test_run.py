"""`millstream run` in a process of its own: what it prints, writes and answers to the shell."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.recovery.processes import QUICK

pytestmark = [pytest.mark.spark, pytest.mark.slow]

BIDS = """\
itemID,price,t
1,500.0,2026-01-01 10:00:03
2,1500.0,2026-01-01 10:00:01
oops,1,2026-01-01 10:00:02
3,7.5,2026-01-01 10:00:02
"""
SCRIPT = """\
CREATE STREAM Bid (itemID INT, price DOUBLE, t TIMESTAMP) ORDER BY t
    USING csv OPTIONS (path 'bids.csv', header 'true') SLACK INTERVAL 5 SECONDS LATE DROP;
CREATE SINK dear USING csv OPTIONS (path 'sink');
SELECT itemID, price FROM Bid WHERE price > 10;
INSERT INTO dear SELECT itemID, t FROM Bid WHERE price > 1000;
SELECT itemID * 2 AS twice FROM Bid;
"""


def millstream(directory: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "millstream", *arguments],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TERM": "dumb"},
    )


def test_results_go_to_stdout_and_all_else_to_stderr(tmp_path: Path) -> None:
    (tmp_path / "bids.csv").write_text(BIDS)
    (tmp_path / "auction.esl").write_text(SCRIPT)
    process = millstream(tmp_path, "run", "auction.esl", "--format", "csv", *QUICK)
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    assert out == "-- q1\nitemID,price\n2,1500.0\n1,500.0\n-- q2\ntwice\n4\n6\n2\n"
    assert err == (
        "warning: 1 bad record in stream Bid (BAD INTO makes a stream of them)\n"
        "  'oops,1,2026-01-01 10:00:02': column 'itemID' int cannot be read from 'oops'; declare it STRING\n"
    )
    assert len(list((tmp_path / "sink").glob("*.csv"))) >= 1

    process = millstream(tmp_path, "run", "auction.esl", "--out", "results", *QUICK)
    out, err = process.communicate(timeout=200)
    assert (process.returncode, out) == (0, ""), err
    assert {p.name: p.read_text() for p in (tmp_path / "results").iterdir()} == {
        "q1.csv": "itemID,price\n2,1500.0\n1,500.0\n",
        "q2.csv": "twice\n4\n6\n2\n",
        "dear.csv": "itemID,t\n2,2026-01-01 10:00:01\n",
    }


def test_a_live_stream_from_a_port_until_ctrl_c(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "live.esl").write_text(
        "CREATE STREAM s (n INT, name STRING, current_time TIMESTAMP) ORDER BY current_time\n"
        f"SOURCE 'port{port}';\n"
        "SELECT n * 10 AS m, name, current_time IS NOT NULL AS stamped FROM s WHERE n > 0;\n"
    )
    process = millstream(tmp_path, "run", "live.esl", "--format", "json")
    client = _connect(port, process)
    client.sendall(b'1,"a, b"\n{"n": 2, "name": "c"}\nnonsense\n0,zero\n')
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert lines == [
        {"m": 10, "name": "a, b", "stamped": True},
        {"m": 20, "name": "c", "stamped": True},
    ]
    client.sendall(b"3,last\n")
    assert json.loads(process.stdout.readline())["m"] == 30
    client.close()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert out == ""
    assert err == (
        "warning: a bad record in stream s\n"
        "  'nonsense': it has 1 field, and the stream has 2 columns\n"
        "warning: 1 bad record in stream s (BAD INTO makes a stream of them)\n"
    )


def test_a_view_over_a_live_stream_is_shown_when_the_run_is_stopped(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("5,1\n6,2\n7,3\n")
    (tmp_path / "view.esl").write_text(
        "CREATE STREAM s (n INT, t INT) ORDER BY t USING csv OPTIONS (path 'in', follow 'true');\n"
        "CREATE VIEW v AS SELECT count(*) AS c, max(n) AS most FROM s [UNBOUNDED];\n"
        "SELECT c, most FROM v;\n"
    )
    process = millstream(tmp_path, "run", "view.esl", "--format", "json", "--checkpoint", "kept", *QUICK)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("kept/v/current/*.arrow")):
        assert process.poll() is None, process.stderr and process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    # More of 3 may come, so that all is known of 1 and 2.
    assert json.loads(out) == {"c": 2, "most": 6}


def _connect(port: int, process: subprocess.Popen[str]) -> socket.socket:
    """The port is open when the query has been started."""
    deadline = time.monotonic() + 120
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except OSError:
            assert process.poll() is None, process.stderr and process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.2)
