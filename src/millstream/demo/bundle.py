"""What a demo consists of: a script, the files and ports that it names, and events to play to it."""

from __future__ import annotations

import contextlib
import csv
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

from millstream.demo.auction import BID, CLOSED, OPEN, auction, sellers
from millstream.demo.sender import Sender
from millstream.errors import ExecutionError

PORTS = {CLOSED: 4445, OPEN: 4446, BID: 4447}
"""The ports as the script has them."""


Listen = Callable[[int], int]
"""Opens a port, or a free one for 0, and gives its number."""


@dataclass(frozen=True)
class AuctionDemo:
    """The auction, ready to be run."""

    title: str
    about: str
    path: Path
    """Where the script is."""
    shown: str
    """The script for people."""
    text: str
    """The same script, with the path of the table as it is."""
    titles: Mapping[str, str]
    """What each query is about."""
    ports: Mapping[str, int]

    def sender(self) -> Sender:
        """Somebody who plays the auction to the streams, beginning now."""
        return Sender(auction(datetime.now(UTC)), self.ports)


@contextmanager
def auction_demo(listen: Listen) -> Iterator[AuctionDemo]:
    """The auction with ports that were free, and with its table in a temporary file."""
    path = Path(str(resources.files("millstream.demo") / "auction.esl"))
    script = path.read_text(encoding="utf-8")
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="millstream-demo-")))
        ports = {stream: _open(port, listen) for stream, port in PORTS.items()}
        numbers = {PORTS[stream]: port for stream, port in ports.items()}
        shown = re.sub(r"'port(\d+)'", lambda found: f"'port{numbers[int(found[1])]}'", script)
        yield AuctionDemo(
            title="an auction, live",
            about=(
                "Sellers open auctions, bidders bid, auctions close: three streams, over TCP. The script "
                "declares them and asks five continuous queries, which Spark runs on this machine."
            ),
            path=path,
            shown=shown,
            text=shown.replace("sellers.csv", _in_quotes(_write_sellers(directory))),
            titles=dict(re.findall(r"^-- (q\d+): (.*)$", script, re.MULTILINE)),
            ports=ports,
        )


def _open(port: int, listen: Listen) -> int:
    """Open a port, or another one if somebody has it."""
    try:
        return listen(port)
    except ExecutionError:
        return listen(0)


def _write_sellers(directory: Path) -> Path:
    path = directory / "sellers.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(("sellerID", "name", "city"))
        rows.writerows(sellers())
    return path


def _in_quotes(path: Path) -> str:
    return re.sub(r"([\\'])", r"\\\1", str(path))
