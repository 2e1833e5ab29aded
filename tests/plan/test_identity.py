"""Changes of a query that make its checkpoint another one, and changes that do not."""

from __future__ import annotations

import inspect
import json
from abc import ABC
from dataclasses import fields, replace
from typing import Any
from unittest.mock import MagicMock

import pytest

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.analysis.queries.call_nodes import AggregateCall, Bodies, RankCall
from millstream.analysis.queries.resolved_query import PatternClause
from millstream.catalog import Catalog, entries
from millstream.plan import nodes, plan_identity
from millstream.plan.plan_identity import KINDS, described, function_described, functions_in
from millstream.plan.planner import best_plan
from millstream.quantity import Duration
from millstream.syntax import parse_script
from millstream.windows import window_spec

STREAM = """CREATE STREAM Bid (item INT, price DOUBLE, note STRING, t TIMESTAMP)
    ORDER BY t SLACK INTERVAL 2 SECONDS
    USING csv OPTIONS (path 'bids', header 'true', maxFilesPerTrigger '1', password 'xyz');
CREATE STREAM Ask (item INT, price DOUBLE, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 'asks');
CREATE TABLE Item (item INT, name STRING) USING csv OPTIONS (path 'items');
CREATE FUNCTION twice(x DOUBLE) : DOUBLE AS x * 2;
CREATE FUNCTION often(x DOUBLE) : DOUBLE AS twice(twice(x));
"""
OVER = "SELECT item, sum(price * 2) OVER (PARTITION BY item ROWS 3 PRECEDING) AS s FROM Bid WHERE price > 3;"
QUERIES = [
    OVER,
    "SELECT item, count(*) AS n FROM Bid [RANGE 5 SECONDS SLIDE 1 SECOND] GROUP BY item HAVING sum(price)>3",
    "SELECT a.item FROM Bid [RANGE 5 SECONDS] AS a, Ask [ROWS 3] AS b WHERE a.item = b.item;",
    "SELECT DISTINCT item FROM Bid [UNBOUNDED];",
    "SELECT X.item AS i, sum(*Y.price) AS s FROM Bid AS (X, *Y) WHERE Y.price > Y.previous.price",
    "SELECT Bid.item, name FROM Bid, Item WHERE Bid.item = Item.item;",
    "SELECT item FROM Bid UNION ALL SELECT item FROM Ask;",
    "SELECT max(price) AS m FROM Bid [SESSION GAP 5 SECONDS];",
]


def lines(query: str, prelude: str = STREAM, *, exact_names: bool = False) -> tuple[str, ...]:
    catalog = Catalog()
    found: tuple[str, ...] = ()
    for statement in parse_script(prelude + query):
        meaning = analyse(statement, catalog).meaning
        if isinstance(meaning, RunQuery):
            found = described(best_plan(meaning.query), exact_names=exact_names)
    functions = functions_in(found, catalog.function)
    return (*found, *sorted(map(function_described, functions)))


@pytest.mark.parametrize("query", QUERIES)
def test_spaces_comments_and_capitals_of_keywords_do_not_count(query: str) -> None:
    spaced = query.replace(" ", "  \n ").replace("(", " ( ").replace(".", " . ").replace(";", " /* so */ ;")
    assert lines(spaced) == lines(query)
    small = query
    for word in ("SELECT", "FROM", "WHERE", "GROUP BY", "OVER", "RANGE", "ROWS", "UNION ALL", "DISTINCT"):
        small = small.replace(word, word.lower())
    assert lines(small) == lines(query)


def test_a_column_without_a_name_may_be_written_differently_unless_a_sink_has_its_name() -> None:
    one, other = "SELECT item+1 FROM Bid;", "SELECT item + 1 FROM Bid;"
    assert lines(one) == lines(other)
    assert lines(one, exact_names=True) != lines(other, exact_names=True)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("price * 2", "price * 3"),
        ("sum(", "avg("),
        ("price > 3", "price > 4"),
        ("price > 3", "note = 'a'"),
        ("ROWS 3", "ROWS 4"),
        ("ROWS 3", "RANGE INTERVAL 3 SECONDS"),
        ("PARTITION BY item ", ""),
        ("AS s", "AS z"),
        ("FROM Bid", "FROM Ask"),
    ],
)
def test_a_change_of_the_query_counts(before: str, after: str) -> None:
    assert before in OVER
    assert lines(OVER.replace(before, after)) != lines(OVER)


def test_letters_of_a_literal_count() -> None:
    assert lines("SELECT item FROM Bid WHERE note = 'A'") != lines("SELECT item FROM Bid WHERE note = 'a'")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SLACK INTERVAL 2 SECONDS", "SLACK INTERVAL 9 SECONDS"),
        ("price DOUBLE", "price FLOAT"),
        ("path 'bids'", "path 'others'"),
        ("header 'true'", "header 'false'"),
        ("note STRING", "note STRING AS (CAST(price AS STRING))"),
    ],
)
def test_a_change_of_a_stream_counts(before: str, after: str) -> None:
    assert lines(OVER, STREAM.replace(before, after, 1)) != lines(OVER)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("maxFilesPerTrigger '1'", "maxFilesPerTrigger '5'"),
        ("password 'xyz'", "password 'other'"),
        ("CREATE STREAM", "create stream"),
        ("INTERVAL 2 SECONDS", "INTERVAL 2000 MILLISECONDS"),
    ],
)
def test_speed_and_secrets_do_not_count(before: str, after: str) -> None:
    assert lines(OVER, STREAM.replace(before, after, 1)) == lines(OVER)
    assert "xyz" not in "".join(lines(OVER))


def test_functions_that_are_called_by_others_count() -> None:
    query = "SELECT often(price) AS p FROM Bid;"
    assert len(lines(query)) == len(lines("SELECT price AS p FROM Bid;")) + 2
    assert lines(query, STREAM.replace("x * 2", "x * 3")) != lines(query)
    assert lines(query, STREAM.replace("x * 2", "x*2")) == lines(query)
    assert lines(OVER, STREAM.replace("x * 2", "x * 3")) == lines(OVER)


TOTAL = """CREATE AGGREGATE inner_total(x DOUBLE) : DOUBLE { TABLE state(s DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (x); }
    ITERATE : { UPDATE state SET s = s + x; }
    TERMINATE : { INSERT INTO RETURN SELECT s FROM state; } };
CREATE AGGREGATE total(x DOUBLE) : DOUBLE { TABLE seen(v DOUBLE);
    INITIALIZE : { INSERT INTO seen VALUES (x); INSERT INTO RETURN SELECT inner_total(v) FROM seen; }
    ITERATE : { INSERT INTO seen VALUES (x); INSERT INTO RETURN SELECT inner_total(v) FROM seen; } };
"""
CALLS = [
    "SELECT item, total(price) AS s FROM Bid GROUP BY item;",
    "SELECT inner_total(price) AS s FROM Bid [RANGE 5 SECONDS SLIDE 5 SECONDS];",
    "SELECT inner_total(*Y.price) AS s FROM Bid AS (X, *Y) WHERE Y.price > Y.previous.price;",
]


@pytest.mark.parametrize("query", CALLS)
def test_bodies_of_aggregates_count_wherever_they_are_called(query: str) -> None:
    before = lines(query, STREAM + TOTAL)
    assert (
        lines(query, STREAM + TOTAL.replace("s + x", "s /* more */ +x").replace("UPDATE", "update")) == before
    )
    assert lines(query, STREAM + TOTAL.replace("s + x", "s + 2 * x")) != before
    assert lines(query, STREAM + TOTAL.replace("state(s DOUBLE)", "state(s FLOAT)")) != before


def concrete(class_: type) -> set[type]:
    below = {one for child in class_.__subclasses__() for one in concrete(child)}
    return below if ABC in class_.__bases__ else {class_, *below}


def test_every_operator_window_and_entry_has_a_name_of_its_own() -> None:
    # Other modules derive nodes that stand in for parts of a plan while it is lowered.
    modules = {nodes.__name__, window_spec.__name__}
    wanted = concrete(nodes.Node) | concrete(window_spec.Window)
    assert {one for one in wanted if one.__module__ in modules} <= KINDS.keys()
    promises = {
        one for one in vars(entries).values() if inspect.isclass(one) and one.__name__.endswith("Promise")
    }
    assert promises <= KINDS.keys()
    names = [name for name, _ in KINDS.values()]
    assert len(names) == len(set(names))


def test_names_of_classes_and_labels_are_no_part_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    before = [lines(query) for query in QUERIES]
    names = {class_: (class_.__name__, class_.__qualname__) for class_ in KINDS}
    try:
        for class_ in KINDS:
            class_.__name__ = class_.__qualname__ = "Renamed"
            if issubclass(class_, nodes.Node):
                monkeypatch.setattr(class_, "label", lambda node: "reworded")
        assert [lines(query) for query in QUERIES] == before
    finally:
        for class_, (name, qualified) in names.items():
            class_.__name__, class_.__qualname__ = name, qualified


def test_a_plan_is_written_as_ever() -> None:
    """These lines are in checkpoints: if they change, checkpoints of running queries are refused."""
    assert [json.loads(line) for line in lines(OVER)] == [
        [
            "project",
            1,
            {
                "outputs": [
                    {"kind": "column", "name": "item", "is": "BID . ITEM", "type": "int"},
                    {"kind": "column", "name": "s", "is": "__AGG0", "type": "double"},
                ]
            },
        ],
        [
            "aggregate over",
            1,
            {
                "calls": [
                    {
                        "kind": "over",
                        "call": {
                            "kind": "call",
                            "of": "sum",
                            "arguments": ["BID . PRICE * 2"],
                            "types": ["double"],
                            "type": "double",
                            "result": "__AGG0",
                        },
                        "partition": ["BID . ITEM"],
                        "frame": {"kind": "frame", "rows": True, "back": {"kind": "rows", "count": 3}},
                    }
                ]
            },
        ],
        ["filter", 1, {"where": ["BID . PRICE > 3"]}],
        [
            "stream",
            0,
            {
                "as": "bid",
                "of": {
                    "kind": "declared stream",
                    "name": "bid",
                    "columns": ["item int", "price double", "note string", "t timestamp"],
                    "from": {
                        "kind": "reader",
                        "format": "csv",
                        "options": [["header", "true"], ["path", "bids"]],
                    },
                    "time": {"kind": "timestamp", "kind of": "external", "column": "t", "type": "timestamp"},
                    "promises": [{"kind": "slack", "amount": {"kind": "time", "us": 2000000}}],
                },
            },
        ],
    ]


class Sum:
    """An aggregate in Python."""

    def init(self) -> float:
        return 0.0

    def add(self, state: float, x: float) -> float:
        return state + x


def test_an_aggregate_in_python_is_known_by_its_qualified_name() -> None:
    assert plan_identity._qualified(Sum) == f"{__name__}:Sum"
    assert plan_identity._qualified(Sum()) == f"{__name__}:Sum"
    assert plan_identity._qualified(concrete) == f"{__name__}:concrete"
    given = plan_identity.Functions({"init": Sum().init, "add": concrete})
    assert plan_identity._qualified(given) == {"add": f"{__name__}:concrete", "init": f"{__name__}:Sum.init"}


LEFT_OUT = {
    nodes.Generate: {"element"},  # it is named after the item of FROM
    entries.ScalarFunction: {"columns", "definition"},  # the type names them; the query is a part of others
    nodes.SparkQuery: {"tables", "fields", "span", "rows"},  # they follow from the text
    AggregateCall: {"text", "span", "constants"},  # the constants are among the arguments
    RankCall: {"text", "span"},
    Bodies: {"unfit"},
    PatternClause: {"returned", "unfit"},
    entries.Stream: {
        "late_into",
        "late_drop",
        "bad_into",
        "place",
    },  # what becomes of tuples that count nowhere
    entries.HeartbeatPromise: {"implied"},  # such a promise is left out
    entries.Table: {"place", "order"},  # a plan has the column where it needs an order
    entries.View: {"definition", "arrangement", "maintained"},  # a view has a checkpoint of its own
    entries.Derived: {"definition", "is_bounded"},
    entries.Rejected: {"is_bounded"},
    entries.Aggregate: {"blocking", "returns_row", "algebraic", "python", "definition"},  # see its program
}


class Recorder:
    """Stands for an object of a class, and notes which of its fields are looked at."""

    def __init__(self, class_: type) -> None:
        self.types = {field.name: str(field.type) for field in fields(class_)}
        self.seen: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        self.seen.add(name)
        kind = self.types[name]
        return "x" if kind.startswith("str") else () if kind.startswith("tuple") else MagicMock()


@pytest.mark.parametrize("class_", KINDS, ids=lambda class_: KINDS[class_][0])
def test_every_property_counts(class_: type) -> None:
    """A field that is forgotten here would let a query go on with the state of another one."""
    recorder = Recorder(class_)
    KINDS[class_][1](recorder)
    inputs = {name for name, kind in recorder.types.items() if kind == "Node"}
    assert (
        recorder.types.keys() - inputs - LEFT_OUT.get(class_, set()) == recorder.seen & recorder.types.keys()
    )


def test_windows_differ_by_each_of_their_properties() -> None:
    window = window_spec.RangeWindow("t", range=Duration(5), slide=Duration(1))
    others = [
        replace(window, attribute="u"),
        replace(window, partition_by=("k",)),
        replace(window, emit_every=Duration(1)),
        replace(window, range=Duration(6)),
        replace(window, slide=None),
        replace(window, origin="2026-01-01"),
    ]
    written = {json.dumps(plan_identity._written(one)) for one in (window, *others)}
    assert len(written) == 1 + len(others)


def test_the_implied_heartbeat_does_not_count_because_it_changes_no_state() -> None:
    stream = "CREATE STREAM s (v INT, current_time TIMESTAMP) ORDER BY current_time SOURCE 'port4445' {};"
    query = "SELECT sum(v) FROM s [TUMBLE 1 MINUTE];"
    assert lines(query, stream.format("")) == lines(query, stream.format("HEARTBEAT NONE"))
    assert lines(query, stream.format("")) != lines(query, stream.format("HEARTBEAT INTERVAL 5 SECONDS"))


def test_a_change_of_a_computed_column_counts() -> None:
    before = STREAM.replace("note STRING", "note STRING AS (CAST(price AS STRING))")
    after = STREAM.replace("note STRING", "note STRING AS (CAST(item AS STRING))")
    assert lines(OVER, before) != lines(OVER, after)
    assert lines(OVER, before) == lines(OVER, before.replace("CAST(price AS", "CAST( price  AS"))
