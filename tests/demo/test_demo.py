from __future__ import annotations

import contextlib
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from millstream.cli.check_command import check_script
from millstream.cli.demo_command import run_demo
from millstream.demo.bundle import PORTS, auction_demo
from millstream.errors import MillstreamError
from millstream.runtime.connection import Mill


def test_an_unknown_demo_is_an_error_that_lists_the_demos() -> None:
    with pytest.raises(MillstreamError, match=r"no demo 'action'\n.*auction"):
        run_demo("action", 10)


def test_the_script_is_right_and_fits_a_terminal() -> None:
    with auction_demo(lambda port: port) as demo:
        check_script(demo.text, "auction.esl")
        assert list(demo.titles) == ["q1", "q2", "q3", "q4", "q5"]
        assert max(map(len, demo.shown.splitlines())) < 80


def test_the_script_has_ports_that_are_free() -> None:
    with contextlib.ExitStack() as stack, Mill() as mill:
        for port in PORTS.values():
            with contextlib.suppress(OSError):
                stack.enter_context(socket.create_server(("127.0.0.1", port)))
        with auction_demo(mill.listen) as demo:
            assert not set(demo.ports.values()) & set(PORTS.values())
            named = {int(number) for number in re.findall(r"'port(\d+)'", demo.text)}
            assert named == set(demo.ports.values())
            for port in named:
                socket.create_connection(("127.0.0.1", port)).close()


def test_nothing_stays_of_the_table() -> None:
    with auction_demo(lambda port: port) as demo:
        found = re.search(r"path '([^']*)'", demo.text)
        assert found is not None
        assert Path(found[1]).read_text().startswith("sellerID,name,city\ns01,")
    assert not Path(found[1]).parent.exists()


@pytest.mark.spark
@pytest.mark.slow
def test_the_demo_runs_without_a_terminal() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "millstream", "demo", "--seconds", "8"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    totals = re.findall(r"^(q\d) +\S.*? {2,}([\d,]+) +([\d,]+) +([\d,]+) *$", done.stdout, re.MULTILINE)
    counts = {name: [int(count.replace(",", "")) for count in rest] for name, *rest in totals}
    assert list(counts) == ["q1", "q2", "q3", "q4", "q5"]
    assert all(rows_in > 0 and rows_out > 0 for rows_in, rows_out, _ in counts.values())
    assert counts["q5"][1] == counts["q5"][2], "bad records are the rows of q5"
