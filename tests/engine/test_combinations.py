"""Every window with every class of aggregates under every clause about disorder, as docs/windows.md has them.

The tables of that page say what there is to be tested and what to expect: its windows, calls and clauses are
made into scripts, and what stands in its cells must be true.
"""

from __future__ import annotations

import itertools
import random
import re
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from millstream.errors import AnalysisError
from millstream.kernels.kernel_specs import ReorderSpec
from millstream.plan import nodes
from millstream.plan.aggregate_strategies import strategy
from millstream.plan.refusals import why_not
from oracle import Arrivals, Heartbeat, Row, run
from tests.engine import simulated
from tests.engine.test_invariants import same
from tests.physical.planning import planned, stage_of

pytestmark = pytest.mark.usefixtures("uncompiled")

PAGE = Path(__file__).parents[2] / "docs" / "windows.md"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

Table = dict[str, dict[str, str]]


# ---------------------------------------------------------------- the page


@cache
def tables() -> dict[str, Table]:
    """The first table of each section by its heading: rows by first column, cells by names of columns."""
    found = {}
    sections = re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    for heading, text in sections:
        header, _, *rows = [
            [cell.strip().strip("`") for cell in line.strip("|").split("|")]
            for line in text[text.index("\n|") + 1 :].split("\n\n")[0].splitlines()
        ]
        found[heading] = {row[0]: dict(zip(header[1:], row[1:], strict=True)) for row in rows}
    return found


def declared(clause: str) -> str:
    """The stream of the page, with a clause, and its aggregates."""
    stream, aggregates = re.findall(r"^```sql\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return f"{stream.strip().rstrip(';')} {'' if clause == 'none' else clause};\n{aggregates}"


def calls(class_: str) -> list[str]:
    """Return the calls that represent a class of aggregates."""
    return re.findall(r"\w+\([^`]*\)", tables()["Aggregates"][class_]["such as"])


WINDOWS = list(tables()["Windows"])
CLASSES = [name for name, row in tables()["Aggregates"].items() if row["how"] != "refused"]
CLAUSES = list(tables()["Disorder"])
REFUSED = tables()["What is refused"]


# ---------------------------------------------------------------- scripts and streams


def script(window: str, asked: list[str], clause: str, *, grouped: bool = False) -> str:
    """Calls over a window, with all columns of the window."""
    shown = ["complete"] if "EMIT" in window else []
    if window.startswith("OVER"):
        outputs = ["k", "v", "t", *shown, *(f"{call} {window} AS r{i}" for i, call in enumerate(asked))]
        return f"{declared(clause)} SELECT {', '.join(outputs)} FROM s;"
    keys = ["k"] if grouped or "PATTR" in window else []
    outputs = [*keys, "window_start", "window_end", "wid", *shown]
    outputs += [f"{call} AS r{i}" for i, call in enumerate(asked)]
    by = " GROUP BY k" if grouped and "PATTR" not in window else ""
    return f"{declared(clause)} SELECT {', '.join(outputs)} FROM s {window}{by};"


def stream(clause: str, partitions: int, chance: random.Random) -> Arrivals:
    """Draw rows in a little disorder, some of them late, with punctuations or heartbeats on request."""
    return Arrivals([_partition(clause, chance) for _ in range(partitions)])


def _partition(clause: str, chance: random.Random) -> list[Row | Heartbeat]:
    found: list[Row | Heartbeat] = []
    now = chance.randint(0, 3)
    for _ in range(chance.randint(8, 16)):
        now += chance.choice([0, 0, 1, 1, 2, 4])
        if "HEARTBEAT" in clause and chance.random() < 0.15:
            found.append(Heartbeat(_at(now)))
        lag = chance.choice([0, 0, 0, 1, 2, 5])
        promises = "PUNCTUATED" in clause and chance.random() < 0.25
        found.append(
            Row(
                {
                    "k": chance.choice([1, 1, 2, 3, None]),
                    "v": chance.choice([None, -2, -1, 0, 1, 2, 3]),
                    "x": chance.choice([None, -1.5, 0.0, 0.25, 2.5]),
                    "a": _at(now),
                    "t": _at(now - lag),
                    "p": promises,
                }
            )
        )
    return found


def _at(second: int) -> datetime:
    return NOON + timedelta(seconds=second)


# ---------------------------------------------------------------- the cells


def listed(*cells: tuple[str, ...]) -> list[Any]:
    """Cells as parameters of a test; brackets in names of tests are for pytest."""
    return [pytest.param(*cell, id=" ".join(cell).replace("[", "(").replace("]", ")")) for cell in cells]


Rows = list[tuple[Any, ...]]


@cache
def outcome(window: str, clause: str) -> tuple[Rows, Rows]:
    """Return the results of the engine and of the oracle for the calls of all classes, with timestamps."""
    chance = random.Random(f"{window} {clause}")
    asked = [call for class_ in CLASSES for call in calls(class_)]
    text = script(window, asked, clause, grouped=chance.random() < 0.5)
    plan = planned(text)
    assert why_not(plan) is None
    one_partition = "row_num" in window or "HEARTBEAT" in clause
    given = stream(clause, 1 if one_partition else chance.choice([1, 1, 2]), chance)
    expected = [(row.time, *row.values) for row in run(plan, {"s": given}).rows]
    return simulated.run(plan, {"s": given}, chance), expected


def cells() -> list[Any]:
    """All of them; in `make test` a window has every third clause, and the next begins with another."""
    some = [
        (window, clause)
        for (i, window), (j, clause) in itertools.product(enumerate(WINDOWS), enumerate(CLAUSES))
        if (i + j) % 3 == 0
    ]
    return [
        param
        if (window, clause) in some
        else pytest.param(*param.values, id=param.id, marks=pytest.mark.soak)
        for param in listed(*itertools.product(WINDOWS, CLASSES, CLAUSES))
        for window, _, clause in [param.values]
    ]


@pytest.mark.parametrize(("window", "class_", "clause"), cells())
def test_a_cell(window: str, class_: str, clause: str) -> None:
    found, expected = outcome(window, clause)
    same(_of_class(class_, found), _of_class(class_, expected))


@pytest.mark.parametrize(("class_", "clause"), listed(*itertools.product(CLASSES, CLAUSES)))
def test_active_expiration(class_: str, clause: str) -> None:
    """It stands alone in its SELECT, so each call has a query of its own."""
    window = "OVER (PARTITION BY k RANGE INTERVAL 4 SECONDS PRECEDING ACTIVE EXPIRATION)"
    for call in calls(class_):
        chance = random.Random(f"{call} {clause}")
        plan = planned(script(window, [call], clause))
        assert why_not(plan) is None
        given = stream(clause, 1, chance)
        expected = [(row.time, *map(_plain, row.values)) for row in run(plan, {"s": given}).rows]
        found = simulated.run(plan, {"s": given}, chance)
        same([tuple(map(_plain, row)) for row in found], expected)


def _of_class(class_: str, rows: Rows) -> Rows:
    """Return the columns of the window, and the results of a class after them."""
    of_each = [len(calls(name)) for name in CLASSES]
    place = CLASSES.index(class_)
    first = sum(of_each[:place]) - sum(of_each)
    last = first + of_each[place]
    return [(*row[: -sum(of_each)], *map(_plain, row[first : last or None])) for row in rows]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple) else value


@pytest.mark.parametrize(("window", "class_"), listed(*itertools.product(WINDOWS, CLASSES)))
def test_tuples_are_taken_as_the_page_says(window: str, class_: str) -> None:
    said = tables()["Windows"][window][class_]
    stage = stage_of(script(window, calls(class_), "SLACK INTERVAL 3 SECONDS"))
    assert said in ("as they come", "in order")
    assert (ReorderSpec() in stage.kernels) == (said == "in order")


@pytest.mark.parametrize("class_", CLASSES)
def test_a_class_is_computed_as_the_page_says(class_: str) -> None:
    plan = planned(script(WINDOWS[0], calls(class_), "none"))
    node = next(n for n in plan.walk() if isinstance(n, nodes.WindowAggregate))
    for call in node.aggregates:
        assert str(strategy(call)) == tables()["Aggregates"][class_]["how"], call.name


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_refused_says_why(what: str) -> None:
    if what in tables()["Aggregates"]:
        scripts = [script(window, calls(what), "none") for window in WINDOWS]
    else:
        scripts = [script(what, calls(class_)[:1], clause) for class_ in CLASSES for clause in CLAUSES]
    for text in scripts:
        assert _refusal(text) == (REFUSED[what]["in these words"], REFUSED[what][""])


def _refusal(text: str) -> tuple[str | None, str]:
    try:
        reason = why_not(planned(text))
        return None if reason is None else reason.what, "not yet"
    except AnalysisError as error:
        return error.message, "no meaning"


@pytest.mark.parametrize(("window", "clause"), listed(*itertools.product(WINDOWS, CLAUSES)))
def test_late_tuples_are_counted_where_the_page_says(window: str, clause: str) -> None:
    """Late tuples are counted in these windows only; the cells above check the values."""
    stage = stage_of(script(window, ["count(*)"], clause))
    by_time = window.startswith(("[RANGE", "[TUMBLE", "[LANDMARK", "[UNBOUNDED")) and "ROW" not in window
    row = tables()["Disorder"][clause]
    first = by_time and ReorderSpec() not in stage.kernels
    said = row["late tuples of RANGE, TUMBLE and LANDMARK" if first else "of all others"]
    assert stage.sources[0].source.promises.generous == (said == "counted while they can be")
