"""Bundled demos: each has a script, generated lines for its streams, and tables."""

from __future__ import annotations

import csv
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from importlib import resources
from pathlib import Path

from millstream.demo.arrivals import Arrival
from millstream.demo.auction import auction
from millstream.demo.sender import Sender
from millstream.demo.stocks import stocks
from millstream.demo.traffic import sections, traffic
from millstream.errors import ExecutionError

INPUT = "input"
"""Name of the card that shows what the streams are, and the lines that arrive."""
_PORT = re.compile(r"'port(\d+)'")
_TITLE = re.compile(r"^-- (\w+): (.*)\n", re.MULTILINE)

Listen = Callable[[int], int]
"""Opens a port, or a free one for 0, and returns its number."""


@dataclass(frozen=True)
class Demo:
    """A bundled demo. Titles in its script (``-- q1: bids by item``) begin the cards of its screen."""

    name: str
    title: str
    about: str
    arrivals: Callable[[datetime], Iterator[Arrival]]
    """Yields the lines that arrive at the streams, for the instant of the beginning."""
    tables: Mapping[str, Sequence[Sequence[object]]] = field(default_factory=dict)
    """Rows of the files that the script names, with a header."""

    @property
    def path(self) -> Path:
        """File of the script."""
        return Path(str(resources.files("millstream.demo") / f"{self.name}.esl"))

    @cached_property
    def script(self) -> str:
        return self.path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Card:
    """A part of the script that is shown with its result: the streams, or one query."""

    name: str
    title: str
    text: str

    @property
    def is_input(self) -> bool:
        return self.name == INPUT

    @property
    def height(self) -> int:
        return self.text.count("\n") + 1

    @property
    def width(self) -> int:
        return max(map(len, self.text.splitlines()))


@dataclass(frozen=True)
class PreparedDemo:
    """A demo whose ports are open and whose tables are written."""

    demo: Demo
    cards: Sequence[Card]
    text: str
    """Script with the numbers of the ports and the paths of the tables."""
    ports: Mapping[str, int]
    """Ports by stream."""

    def sender(self) -> Sender:
        """Return a sender whose beginning is now."""
        return Sender(self.demo.arrivals(datetime.now(UTC)), self.ports)


DEMOS = {
    demo.name: demo
    for demo in (
        Demo(
            "auction",
            "an auction site",
            "Bids: windows with early results, an aggregate in SQL, rushes as a pattern, a view of a join.",
            auction,
        ),
        Demo(
            "stocks",
            "a stock exchange",
            "Trades: average prices, the largest fall in a window, double bottoms, a join with quotes.",
            stocks,
        ),
        Demo(
            "traffic",
            "a motorway",
            "Cars: windows that slide by tuples, queues, sudden braking as a pattern, silent sensors.",
            traffic,
            {"sections.csv": sections()},
        ),
    )
}


def cards(script: str) -> list[Card]:
    r"""Divide a script at its titles; what stands before the first one declares the streams.

    >>> [(card.name, card.title) for card in cards("CREATE ...;\n-- q1: all\nSELECT * FROM s;\n")]
    [('input', 'streams, and the lines that arrive'), ('q1', 'all')]
    """
    parts = _TITLE.split(script)
    found = [Card(INPUT, "streams, and the lines that arrive", parts[0].strip())]
    return found + [
        Card(name, title, text.strip())
        for name, title, text in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    ]


@contextmanager
def prepared(demo: Demo, listen: Listen) -> Iterator[PreparedDemo]:
    """Open the ports of a demo, or others if they are taken, and write its tables to temporary files."""
    numbers = {int(number): _open(int(number), listen) for number in _PORT.findall(demo.script)}
    shown = _PORT.sub(lambda found: f"'port{numbers[int(found[1])]}'", demo.script)
    ports = {
        stream: int(number) for stream, number in re.findall(r"CREATE STREAM (\w+)[^;]*?'port(\d+)'", shown)
    }
    with tempfile.TemporaryDirectory(prefix="millstream-demo-") as directory:
        text = shown
        for name, rows in demo.tables.items():
            path = Path(directory, name)
            with path.open("w", newline="", encoding="utf-8") as file:
                csv.writer(file).writerows(rows)
            text = text.replace(f"'{name}'", f"'{_in_quotes(path)}'")
        yield PreparedDemo(demo, cards(shown), text, ports)


def _open(port: int, listen: Listen) -> int:
    try:
        return listen(port)
    except ExecutionError:
        return listen(0)


def _in_quotes(path: Path) -> str:
    return re.sub(r"([\\'])", r"\\\1", str(path))
