"""Runs that are interrupted while they start: lines that a port has received are not dropped in silence."""

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from millstream.runtime.connection import Mill
from millstream.runtime.script_run import RunEnd, RunOptions, ScriptRun
from millstream.spark.session import jvm

SCRIPT = "CREATE STREAM s (n INT, t TIMESTAMP) ORDER BY t SOURCE 'port{}'; SELECT n FROM s;"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def interrupted(
    monkeypatch: pytest.MonkeyPatch, lines: bytes, checkpoint: Path | None
) -> tuple[int, list[str]]:
    """Interrupt a run as Ctrl-C does when its port has received lines; return its port and its output."""
    port = free_port()
    said: list[str] = []
    run = ScriptRun(RunOptions(checkpoint=checkpoint), say=said.append)

    def start(mill: Mill, *statements: Any) -> None:
        mill.listen(port)
        with socket.create_connection(("127.0.0.1", port)) as client:
            client.sendall(lines)
        time.sleep(0.3)
        run.stop()

    monkeypatch.setattr(Mill, "perform_all", start)
    monkeypatch.setattr(jvm, "kill", lambda: None)
    assert run.run(SCRIPT.format(port), "s.esl") is RunEnd.COMPLETE
    return port, said


@pytest.mark.parametrize(
    ("lines", "warning"),
    [
        (b"1\n2\n3\n", "warning: 3 lines received by port {} were not processed"),
        (b"1\n", "warning: 1 line received by port {} was not processed"),
    ],
)
def test_lines_that_are_dropped_are_counted(
    lines: bytes, warning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, said = interrupted(monkeypatch, lines, None)
    assert said == [warning.format(port)]


def test_nothing_is_said_where_nothing_is_lost(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert interrupted(monkeypatch, b"", None)[1] == []
    port, said = interrupted(monkeypatch, b"1\n", tmp_path)
    assert said == []
    assert list((tmp_path / f"port{port}").glob("*.parquet")), "the next run reads it"
