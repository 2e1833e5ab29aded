"""The answers of the kill soak, computed in plain Python, are those of the definitions."""

import re
from pathlib import Path

from oracle import Arrivals, Row
from oracle import answers as by_definition
from soak.disturbed import SCRIPT, SINKS, Bids, answers, shown


def test_answers(tmp_path: Path) -> None:
    bids = Bids(tmp_path / "bids", seed=3)
    bids.write(120)
    statements = re.split(r";\n(?! )", SCRIPT.format(port=4445))
    about_bids = [s for s in statements if s.strip() and not re.search(r"Line|lines|totals", s)]
    arrived = Arrivals([[Row(vars(bid)) for bid in bids.rows]])
    found = by_definition(";\n".join(about_bids), {"Bid": arrived})
    should = answers(bids.rows)
    for name in SINKS:
        assert sorted(tuple(map(shown, row)) for row in found[name].values) == sorted(should[name]), name
