"""Random scripts with random input: Hypothesis strategies for everything that is tested against the oracle.

    @given(script_and_inputs())
    def test_the_engine_gives_the_same(case: Case) -> None:
        assert engine(case.script_reading(sources), case.inputs) == answers(case.script, case.inputs)

Streams have a key `k`, a value `v` and a timestamp `t`, and whatever promise; where everything is wanted also
another attribute `a` with a promise of its own. Times are close together, so that ties, disorder and late
tuples are common. Amounts on doubles are multiples of 1/4, which doubles hold
exactly. A query may fail with an Overflow, where the values of a stream are extreme.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from oracle import Arrivals, Heartbeat, Input, Row
from tests.oracle.queries import KINDS, query
from tests.oracle.shapes import UNITS, Amounts, Source

TIME_TYPES = ("TIMESTAMP", "INT", "BIGINT", "DOUBLE")
ALL_TIME_TYPES = (*TIME_TYPES, "DATE", "DECIMAL(10, 2)")
KEY_TYPES = ("INT", "STRING")
VALUE_TYPES = ("INT", "BIGINT", "DOUBLE", "DECIMAL(10, 2)", "STRING")
PROMISES = ("none", "slack", "slack rows", "ordered per", "punctuated")
"""What a stream may promise; `heartbeat` may be added to any of them."""

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
Draw = st.DrawFn


@dataclass(frozen=True)
class StreamDeclaration:
    """CREATE STREAM, with room for where it is read from."""

    name: str
    columns: str
    order_by: str
    clauses: str

    def text(self, reading: str = "") -> str:
        parts = (f"CREATE STREAM {self.name} ({self.columns})", self.order_by, reading, self.clauses)
        return " ".join(part for part in parts if part)


@dataclass(frozen=True)
class TableDeclaration:
    name: str
    columns: str

    def text(self, reading: str = "") -> str:
        return f"CREATE TABLE {self.name} ({self.columns}) {reading}".rstrip()


@dataclass(frozen=True)
class Case:
    """A script, its input, and the texts of its queries, whose answers are called q1, q2, ..."""

    declarations: tuple[StreamDeclaration | TableDeclaration, ...]
    derived: tuple[str, ...]
    queries: tuple[str, ...]
    inputs: Mapping[str, Input]

    @property
    def script(self) -> str:
        return self.script_reading({})

    def script_reading(self, sources: Mapping[str, str]) -> str:
        """The script with ``USING ...`` clauses by the name of the stream or table that they are for."""
        declared = (declaration.text(sources.get(declaration.name, "")) for declaration in self.declarations)
        return ";\n".join((*declared, *self.derived, *self.queries))

    def __repr__(self) -> str:
        shown = "\n".join(f"{name}: {given!r}" for name, given in self.inputs.items())
        return f"Case:\n{self.script}\n{shown}"


@st.composite
def script_and_inputs(
    draw: Draw,
    *,
    kinds: Collection[str] = KINDS,
    promises: Collection[str] = PROMISES,
    time_types: Collection[str] = TIME_TYPES,
    everything: bool = False,
    max_rows: int = 20,
    max_partitions: int = 3,
) -> Case:
    """A script and its input.

    Args:
        draw: Hypothesis's.
        kinds: Kinds of queries, of `KINDS` and `PATTERN_KINDS`.
        promises: Kinds of promises, of `PROMISES`.
        time_types: Types of the timestamp, of `TIME_TYPES`.
        everything: Whether to use what not every engine knows: all kinds of windows, SLIDE in OVER, EMIT
            EVERY, windows on attributes that are not the timestamp, all aggregates.
        max_rows: How many arrivals a source partition has at most.
        max_partitions: How many source partitions a stream has at most.
    """
    kind = draw(st.sampled_from(sorted(kinds)))
    size = (max_rows, max_partitions)
    time_type = draw(st.sampled_from(sorted(time_types)))
    key_type = draw(st.sampled_from(KEY_TYPES))
    value_type = draw(st.sampled_from(VALUE_TYPES))
    types = key_type, value_type, time_type
    declaration, source, arrivals = draw(_stream("s", types, promises, size, everything))
    declarations: list[StreamDeclaration | TableDeclaration] = [declaration]
    inputs: dict[str, Input] = {"s": arrivals}
    other = None
    if kind == "union" or (kind == "chain" and draw(st.booleans())):
        types = key_type, draw(_value_type_beside(value_type)), draw(_time_type_beside(time_type, time_types))
        declaration, other, inputs["r"] = draw(_stream("r", types, promises, size, everything))
        declarations.append(declaration)
    if kind == "pattern table":
        declarations = [TableDeclaration("s", declaration.columns)]
        rows = [row for partition in arrivals.partitions for row in partition if isinstance(row, Row)]
        inputs = {"s": [row.values for row in rows]}
    if kind in ("join", "pattern join"):
        keys = st.fixed_dictionaries({"k": _key(key_type), "name": st.none() | st.sampled_from(["a", "b"])})
        declarations.append(TableDeclaration("names", f"k {key_type}, name STRING"))
        inputs["names"] = draw(st.lists(keys, max_size=4))
    derived, queries = draw(query(kind, source, other, everything))
    if "LATE INTO s_late" in declarations[0].text() and draw(st.booleans()):
        queries = (*queries, "SELECT k, v, t FROM s_late")
    return Case(tuple(declarations), derived, queries, inputs)


def _value_type_beside(value_type: str) -> st.SearchStrategy[str]:
    """A type that goes together with another in a UNION."""
    if value_type == "STRING":
        return st.just("STRING")
    return st.sampled_from([type_ for type_ in VALUE_TYPES if type_ != "STRING"])


def _time_type_beside(time_type: str, time_types: Collection[str]) -> st.SearchStrategy[str]:
    if time_type in UNITS:
        return st.just(time_type)
    return st.sampled_from(sorted(set(time_types) - set(UNITS)))


# ---------------------------------------------------------------- streams


@st.composite
def _stream(
    draw: Draw,
    name: str,
    types: tuple[str, str, str],
    promises: Collection[str],
    size: tuple[int, int],
    everything: bool,
) -> tuple[StreamDeclaration, Source, Arrivals]:
    key_type, value_type, time_type = types
    amounts = Amounts(time_type)
    promise = draw(st.sampled_from(sorted(promises)))
    heartbeat = time_type == "TIMESTAMP" and draw(st.booleans())
    clauses = [draw(_promise(promise, amounts))]
    if heartbeat:
        clauses.append("HEARTBEAT INTERVAL 1 SECOND")
    attribute = draw(st.sampled_from(ALL_TIME_TYPES)) if everything and draw(st.booleans()) else None
    beside = draw(st.sampled_from(PROMISES[1:]))
    if attribute is not None:
        clauses.append(f"{draw(_promise(beside, Amounts(attribute), 'q'))} ON a")
    clauses.append(draw(st.sampled_from(["", f"LATE INTO {name}_late", "LATE DROP"])))
    columns = {"k": key_type, "v": value_type, "t": time_type}
    if attribute is not None:
        columns["a"] = attribute
    marks = [name for name, kind in (("p", promise), ("q", beside)) if kind == "punctuated"]
    marks = [name for name in marks if name == "p" or attribute is not None]
    declared = {**columns, **dict.fromkeys(marks, "BOOLEAN")}
    text = ", ".join(f"{column} {type_}" for column, type_ in declared.items())
    declaration = StreamDeclaration(name, text, "ORDER BY t", " ".join(filter(None, clauses)))
    extreme = draw(st.integers(0, 3)) == 0
    arrival = _arrival(types, extreme=extreme, marks=marks, heartbeat=heartbeat)
    max_rows, max_partitions = size
    # Left to itself Hypothesis makes short lists; long ones have more disorder in them.
    least = draw(st.sampled_from([0, max_rows // 2]))
    partition = st.lists(arrival, min_size=least, max_size=max_rows)
    drawn = draw(st.lists(partition, min_size=1, max_size=max_partitions))
    attributes = frozenset(columns) & {"t", "a"}
    source = Source(name, columns, time_type, attributes, extreme, arrives=len(drawn) == 1)
    return declaration, source, Arrivals([_timed(partition, time_type, attribute) for partition in drawn])


def _promise(kind: str, amounts: Amounts, mark: str = "p") -> st.SearchStrategy[str]:
    mode = st.sampled_from(["", " CONSISTENT", " GENEROUS"])
    match kind:
        case "slack":
            return st.builds(lambda n, m: f"SLACK {amounts.interval(n)}{m}", st.integers(1, 10), mode)
        case "slack rows":
            return st.builds(lambda n, m: f"SLACK {n} ROWS{m}", st.integers(1, 5), mode)
        case "ordered per":
            idle = st.integers(1, 10).map(lambda n: f" IDLE AFTER INTERVAL {n} SECONDS")
            ending = st.just("") | idle if amounts.type == "TIMESTAMP" else st.just("")
            return ending.map(lambda text: f"ORDERED PER (k){text}")
        case "punctuated":
            return st.sampled_from([f"PUNCTUATED BY ({mark})", f"PUNCTUATED BY ({mark}) PER (k)"])
        case _:
            return st.just("")


# ---------------------------------------------------------------- arrivals


def _arrival(
    types: tuple[str, str, str], *, extreme: bool, marks: Collection[str], heartbeat: bool
) -> st.SearchStrategy[dict[str, Any]]:
    """A tuple whose time is still a step from the one before, and how far it lags behind."""
    key_type, value_type, _ = types
    # Most tuples are on their way forward; some lag behind.
    time = {"step": st.integers(0, 6), "lag": st.just(0) | st.integers(0, 12), "beside": st.integers(-4, 4)}
    columns = {"k": _key(key_type), "v": _value(value_type, extreme)}
    missing = {"missing": st.integers(0, 19).map(lambda n: n == 0)}
    row: dict[str, st.SearchStrategy[Any]] = {**time, **columns, **missing}
    for mark in marks:
        row[mark] = st.sampled_from([None, False, False, False, True])
    tuple_ = st.fixed_dictionaries(row)
    if not heartbeat:
        return tuple_
    beat = st.fixed_dictionaries({**time, "heartbeat": st.just(True)})
    return st.one_of(tuple_, tuple_, tuple_, beat)


def _timed(partition: list[dict[str, Any]], time_type: str, attribute: str | None) -> list[Row | Heartbeat]:
    """Steps and lags as times; another attribute goes along with them, more or less."""
    arrivals: list[Row | Heartbeat] = []
    now = 0
    for drawn in partition:
        now += drawn["step"]
        time = _time(now - drawn["lag"], time_type)
        if drawn.get("heartbeat"):
            arrivals.append(Heartbeat(time))
            continue
        columns = {name: value for name, value in drawn.items() if name in ("k", "v", "p", "q")}
        # A punctuation without a time ends a source partition, and its earlier progress is unknown.
        if attribute is not None:
            columns["a"] = _time(now + 2 * drawn["beside"], attribute)
            if drawn["beside"] == 4 and not drawn.get("q"):
                columns["a"] = float("nan") if attribute == "DOUBLE" and drawn["step"] == 3 else None
        missing = drawn["missing"] and not drawn.get("p")
        arrivals.append(Row({**columns, "t": None if missing else time}))
    return arrivals


def _time(tick: int, time_type: str) -> object:
    match time_type:
        case "TIMESTAMP":
            return NOON + timedelta(seconds=tick)
        case "DOUBLE":
            return tick / 4
        case "DATE":
            return (NOON + timedelta(days=tick)).date()
        case "DECIMAL(10, 2)":
            return Decimal(25 * tick).scaleb(-2)
        case _:
            return tick


def _key(key_type: str) -> st.SearchStrategy[Any]:
    return st.sampled_from([None, 1, 2, 3] if key_type == "INT" else [None, "a", "b", "é"])


def _value(value_type: str, extreme: bool) -> st.SearchStrategy[Any]:
    usual: st.SearchStrategy[Any]
    match value_type:
        case "INT" | "BIGINT":
            bits = 31 if value_type == "INT" else 63
            usual, rare = st.integers(-9, 9), [2**bits - 1, -(2**bits), 2**bits - 2]
        case "DOUBLE":
            usual = st.integers(-9, 9).map(lambda n: n / 4)
            rare = [float("nan"), float("inf"), float("-inf"), 1e300, -1e300, 1e-300, -0.0, 0.1]
        case "STRING":
            usual, rare = st.sampled_from(["", "a", "b", "ab"]), ["é", "Z", "\U0001f300", " a "]
        case _:
            usual = st.integers(-900, 900).map(lambda n: Decimal(n).scaleb(-2))
            rare = [Decimal("99999999.99"), Decimal("-99999999.99")]
    values = st.none() | usual
    return values | st.sampled_from(rare) if extreme else values
