"""The terminal of a run: rows stay on the screen, and one line of status is below them."""

import io
import re
from types import SimpleNamespace
from typing import Any

import pytest

from millstream.cli import terminal
from millstream.cli.terminal import Terminal
from millstream.runtime.queries.query_progress import Progress


class Screen(io.StringIO):
    """Standard output and standard error as one screen, which honours the codes that are used."""

    @property
    def buffer(self) -> Any:
        return SimpleNamespace(write=lambda piece: self.write(piece.decode()), flush=self.flush)

    def isatty(self) -> bool:
        return True

    def lines(self) -> list[str]:
        """Lines as a person sees them: only what was written after they were last erased."""
        return [re.split(r"\r\x1b\[2K", line)[-1] for line in self.getvalue().split("\n")]


def query(**progress: Any) -> Any:
    return SimpleNamespace(
        name="q1", is_bounded=False, is_active=True, seconds=1.0, progress=Progress(**progress)
    )


def test_rows_are_above_the_status_and_none_is_overwritten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "_REFRESH_SECONDS", 0.001)
    screen = Screen()
    shown = Terminal(screen.buffer, screen)
    with shown.showing([query(rows={"s": 12}, rows_out=12)]):
        for number in range(50):
            shown.write(f"{number}\n".encode())
            shown.flush()
            if number % 10 == 0:
                while "12 rows in" not in screen.lines()[-1]:
                    pass
        shown.say("warning: something")
    assert screen.lines() == [*map(str, range(50)), "warning: something", ""]


def test_the_status_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    status = terminal.status([query(rows={"s": 12_345}, rows_out=7, late={"s": 3})], terminal.RateMeter(10.0))
    assert status == "1 running  12,345 rows in  7 out  0 rows/s  late 3  bad 0  Ctrl-C ends"
    monkeypatch.setenv("COLUMNS", "20")
    screen = Screen()
    Terminal(screen.buffer, screen)._draw(status)
    assert screen.lines() == ["1 running  12,34..."]


def test_the_status_counts_each_source_once() -> None:
    read = {"rows": {"s": 61}, "late": {"s": 1}, "bad": {"s": 1}, "rows_in": 61, "rows_out": 5}
    other = {"rows": {"s": 40, "u": 9}, "rows_in": 49, "bad": {"u": 2}}
    status = terminal.status([query(**read)] * 3 + [query(**other)], terminal.RateMeter(10.0))
    assert status == "4 running  70 rows in  15 out  0 rows/s  late 1  bad 3  Ctrl-C ends"


def test_a_terminal_shows_that_spark_starts_until_there_is_more_to_say() -> None:
    screen = Screen()
    shown = Terminal(screen.buffer, screen)
    with shown.starting():
        assert screen.lines() == ["starting Spark ...  Ctrl-C ends"]
        shown.compiling("top_k", None)
        shown.compiling("top_k", 1.25)
    assert screen.lines() == ["compiling top_k ... 1.2 s", ""]
    err = io.StringIO()
    with Terminal(io.BytesIO(), err).starting():
        pass
    assert err.getvalue() == ""


def test_nothing_is_drawn_where_there_is_no_terminal() -> None:
    out, err = io.BytesIO(), io.StringIO()
    shown = Terminal(out, err)
    with shown.showing([query()]):
        shown.write(b"1\n")
    assert (out.getvalue(), err.getvalue()) == (b"1\n", "")
