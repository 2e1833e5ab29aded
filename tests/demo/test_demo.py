from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from millstream.cli import terminal_views
from millstream.cli.check_command import check_script
from millstream.cli.demo_command import conclude, run_demo
from millstream.cli.terminal_views import DemoRun, DemoScreen, NewestRows
from millstream.demo.bundle import DEMOS, Card, Demo, prepared
from millstream.errors import MillstreamError
from millstream.runtime.connection import Mill
from millstream.runtime.queries.query_progress import Progress
from millstream.runtime.results.result_log import ResultLog

_START = datetime(2026, 5, 4, tzinfo=UTC)

every_demo = pytest.mark.parametrize("demo", DEMOS.values(), ids=list(DEMOS))


def test_an_unknown_demo_is_an_error_with_a_hint() -> None:
    with pytest.raises(MillstreamError, match=r"no demo 'action'\n.*did you mean 'auction'"):
        run_demo("action", 10)
    with pytest.raises(MillstreamError, match=r"no demo 'x'\n.*the demos are: auction, stocks, traffic"):
        run_demo("x", 10)


@every_demo
def test_a_script_is_right_and_fits_beside_its_results(demo: Demo, capsys: pytest.CaptureFixture) -> None:
    with prepared(demo, lambda port: port) as ready:
        check_script(ready.text, "demo.esl")
        assert "no mistakes" in capsys.readouterr().err
        assert {arrival.stream for arrival, _ in zip(demo.arrivals(_START), range(500), strict=False)} == set(
            ready.ports
        )
        names = [card.name for card in ready.cards]
        numbered = [name for name in names if name.startswith("q")]
        assert names[0] == "input"
        assert numbered == [f"q{i + 1}" for i in range(len(numbered))]
        assert all(card.title and card.width <= 66 for card in ready.cards)
        for shown in ("EMIT EVERY", "CREATE AGGREGATE", " AS (", "LATE INTO", "BAD INTO"):
            assert shown in ready.text


@every_demo
def test_a_script_has_ports_that_are_free(demo: Demo) -> None:
    own = {int(number) for number in re.findall(r"'port(\d+)'", demo.script)}
    with contextlib.ExitStack() as stack, Mill() as mill:
        for port in own:
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
        with prepared(demo, mill.listen) as ready:
            named = {int(number) for number in re.findall(r"'port(\d+)'", ready.text)}
            assert named == set(ready.ports.values())
            assert not named & own
            for port in named:
                socket.create_connection(("127.0.0.1", port)).close()


def test_nothing_stays_of_a_table() -> None:
    with prepared(DEMOS["traffic"], lambda port: port) as ready:
        found = re.search(r"path '([^']*)'", ready.text)
        assert found is not None
        assert Path(found[1]).read_text().startswith("section,place,speed_limit\n1,Harbour,100\n")
    assert not Path(found[1]).parent.exists()


# ---------------------------------------------------------------- screen


class _Sent:
    sent = 12

    def newest(self, count: int) -> list[tuple[str, str]]:
        return [("s", f"line {i}") for i in range(20)][-count:]


def _query(name: str, table: pa.Table | None = None, current: pa.Table | None = None) -> Any:
    log = None
    if table is not None:
        log = ResultLog(table.schema)
        log.append(0, table)
    return SimpleNamespace(
        name=name,
        log=log,
        schema=(table if table is not None else current).schema,
        is_active=True,
        snapshot=lambda: current,
        progress=Progress(rows_in=3, rows_out=2, late={"s": 1}, bad={"s": 2}),
    )


def _screen(run: DemoRun, width: int, height: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=height, force_terminal=True, record=True)
    console.print(DemoScreen(run))
    return console.export_text().splitlines()


def _run(*cards: Card) -> DemoRun:
    demo: Any = SimpleNamespace(demo=SimpleNamespace(title="a test"), cards=cards)
    return DemoRun(demo, _Sent(), 30, step="starting")  # type: ignore[arg-type]


def test_a_screen_has_input_queries_and_results_beside_each_other() -> None:
    run = _run(Card("input", "lines", "CREATE STREAM s ..."), Card("q1", "all", "SELECT a, b\nFROM s"))
    lines = _screen(run, 100, 20)
    assert "a test" in lines[0]
    assert "12 lines in" in lines[0]
    assert lines[2].split() == ["CREATE", "STREAM", "s", "...", "s", "line", "15"]
    assert any("SELECT a, b" in line and "not started yet" in line for line in lines)
    assert "starting" in lines[-1]

    run.follow([_query("q1", pa.table({"a": [1, 2], "b": ["x", "y"]}))])
    deadline = time.monotonic() + 10
    while not len(run.newest["q1"]):
        assert time.monotonic() < deadline
    lines = _screen(run, 100, 20)
    assert "late 1  bad 2" in lines[0]
    assert any(line.startswith("q1: all · 3 in, 2 out") for line in lines)
    rows = [line.split()[-2:] for line in lines if line.startswith(("SELECT", "FROM"))]
    assert rows == [["a", "b"], ["1", "x"]]


def test_a_narrow_screen_has_results_below_queries_and_turns_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = [Card(f"q{i}", "t", f"SELECT {i}\nFROM s") for i in range(1, 6)]
    run = _run(*cards)
    lines = _screen(run, 60, 20)
    assert [line.split(":")[0] for line in lines if "──" in line] == ["q1", "q2"]
    assert "page 1 of 3" in lines[-1]
    monkeypatch.setattr(terminal_views, "_PAGE_SECONDS", 1.0)
    # The last page is filled with the card before its own.
    run.live_since = time.monotonic() - 2.5
    assert [line.split(":")[0] for line in _screen(run, 60, 20) if "──" in line] == ["q4", "q5"]


def test_a_summary_has_the_queries_that_were_started(capsys: pytest.CaptureFixture) -> None:
    run = _run(
        Card("input", "lines", "CREATE ..."), Card("q1", "one", "SELECT 1"), Card("q2", "two", "SELECT 2")
    )
    run.demo.demo.path = DEMOS["auction"].path  # type: ignore[misc]
    run.follow([_query("q1", pa.table({"a": [1]}))])
    run.finish()
    console = Console(width=100, record=True)
    conclude(run, console, samples=True)
    text = console.export_text()
    assert "12 lines came in. 1 late and 2 bad ones were counted" in " ".join(text.split())
    assert re.search(r"^q1 +one +3 +2 *$", text, re.MULTILINE)
    assert "q2" not in text


def test_rows_of_a_view_are_replaced() -> None:
    query = _query("v", current=pa.table({"k": ["b", "a"], "n": [1, 2]}))
    rows = NewestRows(query)
    rows.update()
    assert len(rows) == 2
    query.snapshot = lambda: pa.table({"k": ["c"], "n": [3]})
    rows.update()
    console = Console(file=io.StringIO(), width=40, record=True)
    console.print(rows.table(5))
    assert console.export_text().split() == ["k", "n", "c", "3"]


def test_ctrl_c_while_spark_starts_ends_the_demo_in_order(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    class Interrupted(Mill):
        @property
        def spark(self) -> Any:
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr("millstream.cli.demo_command.Mill", Interrupted)
    before = signal.getsignal(signal.SIGINT)
    run_demo("auction", 10)
    out = capsys.readouterr().out
    assert "ending as soon as Spark has started" in out
    assert out.endswith("Ended before the first query was started.\n")
    assert signal.getsignal(signal.SIGINT) is before


# ---------------------------------------------------------------- with Spark


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_runs_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "millstream", "demo", "--seconds", "5"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    totals = re.findall(r"^(q\d|hot) +\S.*? {2,}([\d,]+) +([\d,]+) *$", done.stdout, re.MULTILINE)
    counts = {name: [int(count.replace(",", "")) for count in rest] for name, *rest in totals}
    assert list(counts) == ["q1", "q2", "q3", "hot", "q4"]
    assert all(rows_in > 0 for rows_in, _ in counts.values())
    # A rush with a pause behind it may be missing in a short demo.
    assert all(rows_out > 0 for name, (_, rows_out) in counts.items() if name != "q3")
    assert "CREATE AGGREGATE lead_changes" in done.stdout
