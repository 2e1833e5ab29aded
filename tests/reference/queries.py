"""Random queries over streams whose columns are known: the texts that `generate` makes scripts of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import strategies as st

Draw = st.DrawFn

KINDS = ("transducer", "over", "bracket", "union", "chain", "join")


@dataclass(frozen=True)
class Source:
    """Something to read from: its columns with their types, and the type of its timestamp."""

    name: str
    columns: Mapping[str, str]
    time_type: str

    def of(self, *families: str) -> list[str]:
        """Columns whose types belong to these families."""
        return [name for name, type_ in self.columns.items() if family(type_) in families]


@dataclass(frozen=True)
class Amounts:
    """Amounts along a timestamp, counted in the ticks in which times are generated."""

    type: str

    def interval(self, ticks: int) -> str:
        return f"INTERVAL {ticks} SECONDS" if self.type == "TIMESTAMP" else self.number(ticks)

    def length(self, ticks: int) -> str:
        return f"{ticks} SECONDS" if self.type == "TIMESTAMP" else self.number(ticks)

    def number(self, ticks: int) -> str:
        return f"{ticks / 4:.2f}" if self.type == "DOUBLE" else str(ticks)

    def origin(self, ticks: int) -> str:
        return f"'2026-01-01 12:00:{ticks:02}'" if self.type == "TIMESTAMP" else self.number(ticks)


def family(type_: str) -> str:
    """integer, double, decimal, string or time."""
    if type_ in ("INT", "BIGINT"):
        return "integer"
    return "time" if type_ == "TIMESTAMP" else type_.partition("(")[0].lower()


def united(left: str, right: str) -> str:
    """A type of the family that a UNION of two columns has."""
    wider = ["INT", "BIGINT", "DECIMAL(10, 2)", "DOUBLE"]
    return left if left == right else max(left, right, key=wider.index)


@st.composite
def query(
    draw: Draw, kind: str, source: Source, other: Source | None, slides: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Derived streams, and queries over them; ``other`` is there to be united with."""
    if kind != "chain":
        text, _ = draw(_one(kind, source, other, slides))
        return (), (text,)
    kinds = st.sampled_from(["transducer", "over", "bracket"])
    first = draw(kinds) if other is None else "union"
    text, derived = draw(_one(first, source, other, slides, name="d"))
    final, _ = draw(_one(draw(kinds), derived, None, slides))
    return (f"CREATE STREAM d AS {text}",), (final,)


def _one(
    kind: str, source: Source, other: Source | None, slides: bool, name: str = ""
) -> st.SearchStrategy[tuple[str, Source]]:
    match kind:
        case "transducer":
            return _transducer(source, name)
        case "over":
            return _over(source, name, slides)
        case "bracket":
            return _bracket(source, name)
        case "union":
            assert other is not None
            return _union(source, other, name)
        case _:
            return _join(source, name)


# ---------------------------------------------------------------- kinds of queries


@st.composite
def _transducer(draw: Draw, source: Source, name: str) -> tuple[str, Source]:
    kept = draw(st.lists(st.sampled_from(sorted(source.columns)), min_size=1, unique=True))
    outputs, columns = [], {}
    for column in kept:
        type_ = source.columns[column]
        text, columns[column] = draw(_changed(column, type_))
        outputs.append(text if text == column else f"{text} AS {column}")
    where = draw(_where(source))
    return f"SELECT {', '.join(outputs)} FROM {source.name}{where}", Source(name, columns, source.time_type)


@st.composite
def _over(draw: Draw, source: Source, name: str, slides: bool) -> tuple[str, Source]:
    amounts = Amounts(source.time_type)
    # With SLIDE all calls have the same partitions, as they have the same slide.
    slide, partition = "", None
    if slides and draw(st.booleans()):
        rows = draw(st.integers(1, 4))
        timed = source.time_type == "TIMESTAMP" and draw(st.booleans())
        slide = f" SLIDE INTERVAL {rows} SECONDS" if timed else f" SLIDE {rows}"
        partition = draw(_partition(source))
    outputs, columns = list(source.columns), dict(source.columns)
    for _ in range(draw(st.integers(1, 3))):
        call, type_ = draw(_aggregate(source))
        by = draw(_partition(source)) if partition is None else partition
        frame = draw(_frame(amounts))
        result = f"a{len(columns)}"
        outputs.append(f"{call} OVER ({by}{frame}{slide}) AS {result}")
        columns[result] = type_
    where = draw(_where(source))
    return f"SELECT {', '.join(outputs)} FROM {source.name}{where}", Source(name, columns, source.time_type)


@st.composite
def _bracket(draw: Draw, source: Source, name: str) -> tuple[str, Source]:
    amounts = Amounts(source.time_type)
    size, step = draw(st.integers(1, 20)), draw(st.integers(1, 10))
    sliding = f"RANGE {amounts.length(size)} SLIDE {amounts.length(step)}"
    window = draw(st.sampled_from([sliding, f"TUMBLE {amounts.length(size)}"]))
    if draw(st.booleans()):
        window += f" ORIGIN {amounts.origin(draw(st.integers(0, 9)))}"
    keys = draw(st.lists(_group_key(source), max_size=2, unique_by=lambda key: key[0]))
    pattr = not keys and "k" in source.columns and draw(st.booleans())
    if pattr:
        window += " PATTR k"
    outputs, columns = [], {}
    for i, (text, type_) in enumerate(keys if not pattr else [("k", source.columns["k"])]):
        key = text if text in source.columns else f"g{i}"
        outputs.append(text if key == text else f"{text} AS {key}")
        columns[key] = type_
    for _ in range(draw(st.integers(1, 3))):
        call, type_ = draw(_aggregate(source))
        result = f"b{len(columns)}"
        outputs.append(f"{call} AS {result}")
        columns[result] = type_
    for column, alias, type_ in (("window_end", "e", source.time_type), ("wid", "w", "BIGINT")):
        if draw(st.booleans()):
            outputs.append(f"{column} AS {alias}")
            columns[alias] = type_
    text = f"SELECT {', '.join(outputs)} FROM {source.name} [{window}]{draw(_where(source))}"
    if keys:
        text += f" GROUP BY {', '.join(key for key, _ in keys)}"
    text += draw(st.sampled_from(["", " HAVING count(*) > 1"]))
    return text, Source(name, columns, source.time_type)


@st.composite
def _union(draw: Draw, left: Source, right: Source, name: str) -> tuple[str, Source]:
    outputs = draw(st.sampled_from(["k, v, t", "k, v", "v", "k"]))
    all_ = draw(st.sampled_from([" ALL", ""]))
    sides = (f"SELECT {outputs} FROM {side.name}{draw(_where(side))}" for side in (left, right))
    columns = {c: united(left.columns[c], right.columns[c]) for c in outputs.split(", ")}
    return f" UNION{all_} ".join(sides), Source(name, columns, united(left.time_type, right.time_type))


@st.composite
def _join(draw: Draw, source: Source, name: str) -> tuple[str, Source]:
    kind = draw(st.sampled_from(["JOIN", "LEFT JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]))
    outputs = "s.k, v, t" if kind.endswith(("SEMI JOIN", "ANTI JOIN")) else "s.k, v, t, name"
    return f"SELECT {outputs} FROM {source.name} AS s {kind} names n ON s.k = n.k", source


# ---------------------------------------------------------------- parts


def _changed(column: str, type_: str) -> st.SearchStrategy[tuple[str, str]]:
    """A column, or something made of it that cannot overflow."""
    made = {
        "integer": [f"{column} % 7", f"coalesce({column}, 0)", f"CASE WHEN {column} > 0 THEN {column} END"],
        "double": [f"{column} * 2", f"coalesce({column}, 0.5D)", f"abs({column})"],
        "string": [f"upper({column})", f"{column} || 'x'", f"coalesce({column}, '')"],
        "decimal": [f"abs({column})", f"coalesce({column}, 1.25)"],
        "time": [],
    }[family(type_)]
    # The timestamp must stay itself where a window may be defined on it.
    return st.sampled_from([(text, type_) for text in [column, *(made if column != "t" else [])]])


@st.composite
def _where(draw: Draw, source: Source) -> str:
    if draw(st.integers(0, 2)) < 2:
        return ""
    first, second = draw(_condition(source)), draw(_condition(source))
    joined = draw(st.sampled_from([first, f"{first} AND {second}", f"{first} OR {second}", f"NOT ({first})"]))
    return f" WHERE {joined}"


@st.composite
def _condition(draw: Draw, source: Source) -> str:
    column = draw(st.sampled_from(sorted(source.columns)))
    n = draw(st.integers(-3, 3))
    special = {
        "integer": [f"{column} > {n}", f"{column} % 2 = 0", f"{column} IN (1, {n})"],
        "double": [f"{column} <= {n}", f"{column} BETWEEN -1 AND {n}"],
        "decimal": [f"{column} <> {n}", f"{column} < {n}.5"],
        "string": [f"{column} >= 'b'", f"length({column}) = 1"],
        "time": [f"{column} > TIMESTAMP '2026-01-01 12:00:10'"],
    }[family(source.columns[column])]
    return draw(st.sampled_from([f"{column} IS NULL", f"{column} IS NOT NULL", *special]))


@st.composite
def _aggregate(draw: Draw, source: Source) -> tuple[str, str]:
    column = draw(st.sampled_from(sorted(source.columns)))
    type_ = source.columns[column]
    sums = {
        "integer": [("sum", "BIGINT"), ("avg", "DOUBLE")],
        "double": [("sum", "DOUBLE"), ("avg", "DOUBLE")],
        "decimal": [("sum", "DECIMAL(20, 2)"), ("avg", "DECIMAL(14, 6)")],
    }.get(family(type_), [])
    plain = [("count", "BIGINT"), *((f, type_) for f in ("min", "max", "first", "last"))]
    function, result = draw(st.sampled_from([("count(*)", "BIGINT"), *plain, *sums]))
    call = function if function.endswith(")") else f"{function}({column})"
    condition = f" FILTER (WHERE {draw(_condition(source))})" if draw(st.integers(0, 3)) == 0 else ""
    return call + condition, result


@st.composite
def _partition(draw: Draw, source: Source) -> str:
    keys = draw(st.lists(_group_key(source), max_size=2, unique_by=lambda key: key[0]))
    return f"PARTITION BY {', '.join(key for key, _ in keys)} " if keys else ""


def _frame(amounts: Amounts) -> st.SearchStrategy[str]:
    return st.one_of(
        st.integers(0, 5).map(lambda n: f"ROWS {n} PRECEDING"),
        st.integers(1, 12).map(lambda n: f"RANGE {amounts.interval(n)} PRECEDING"),
        st.sampled_from(["ROWS UNBOUNDED PRECEDING", "RANGE UNBOUNDED PRECEDING"]),
    )


@st.composite
def _group_key(draw: Draw, source: Source) -> tuple[str, str]:
    column = draw(st.sampled_from(sorted(source.columns)))
    type_ = source.columns[column]
    if family(type_) == "integer" and draw(st.booleans()):
        return f"{column} % 2", type_
    return column, type_
