"""Random queries over streams whose columns are known: the texts that `generate` makes scripts of."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.brackets import Bracket, brackets
from tests.oracle.calls import aggregate_calls
from tests.oracle.patterns import AGGREGATES, pattern_query
from tests.oracle.shapes import UNITS, Amounts, Source, condition, family, united

Draw = st.DrawFn

KINDS = ("transducer", "over", "bracket", "union", "chain", "join")
PATTERN_KINDS = ("pattern", "pattern chain", "pattern join", "pattern table")


@st.composite
def query(
    draw: Draw, kind: str, source: Source, other: Source | None, everything: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Derived streams, and queries over them; ``other`` is there to be united with."""
    if kind in PATTERN_KINDS:
        return draw(_patterns(kind, source, everything))
    if kind != "chain":
        text, _ = draw(_one(kind, source, other, everything))
        return (), (text,)
    kinds = st.sampled_from(["transducer", "over", "bracket"])
    first = draw(kinds) if other is None else "union"
    text, derived = draw(_one(first, source, other, everything, name="d"))
    final, _ = draw(_one(draw(kinds), derived, None, everything))
    return (f"CREATE STREAM d AS {text}",), (final,)


@st.composite
def _patterns(
    draw: Draw, kind: str, source: Source, everything: bool
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Patterns, also over what other queries return, and other queries over what patterns return."""
    aggregates = (AGGREGATES,) if everything else ()
    if kind != "pattern chain":
        beside = "names" if kind == "pattern join" else None
        table = kind == "pattern table"
        text, _ = draw(pattern_query(source, "", table=table, beside=beside, everything=everything))
        return aggregates, (text,)
    pattern_first = draw(st.booleans())
    other = draw(st.sampled_from(["transducer", "over", "bracket", "pattern"]))
    kinds = ("pattern", other) if pattern_first else (other, "pattern")
    text, derived = draw(_one(kinds[0], source, None, everything, name="d"))
    final, _ = draw(_one(kinds[1], derived, None, everything))
    return (*aggregates, f"CREATE STREAM d AS {text}"), (final,)


def _one(
    kind: str, source: Source, other: Source | None, everything: bool, name: str = ""
) -> st.SearchStrategy[tuple[str, Source]]:
    match kind:
        case "transducer":
            return _transducer(source, name)
        case "over":
            return _over(source, name, everything)
        case "bracket":
            return _bracket(source, name, everything)
        case "union":
            assert other is not None
            return _union(source, other, name)
        case "pattern":
            return pattern_query(source, name, everything=everything)
        case _:
            return _join(source, name)


# ---------------------------------------------------------------- kinds of queries


@st.composite
def _transducer(draw: Draw, source: Source, name: str) -> tuple[str, Source]:
    kept = draw(st.lists(st.sampled_from(sorted(source.columns)), min_size=1, unique=True))
    outputs, columns, attributes = [], {}, set()
    for column in kept:
        type_ = source.columns[column]
        text, columns[column] = draw(_changed(column, type_))
        outputs.append(text if text == column else f"{text} AS {column}")
        if text == column and column in source.attributes:
            attributes.add(column)
    text = f"SELECT {', '.join(outputs)} FROM {source.name}{draw(_where(source))}"
    return text, Source(
        name, columns, source.time_type, frozenset(attributes), source.extreme, source.arrives
    )


@st.composite
def _over(draw: Draw, source: Source, name: str, everything: bool) -> tuple[str, Source]:
    amounts = Amounts(source.time_type)
    # With SLIDE all calls have the same partitions, as they have the same slide.
    slide, partition, emits, timed = "", None, False, False
    if everything and draw(st.booleans()):
        rows, every = draw(st.integers(1, 6)), draw(st.integers(1, 4))
        timed = source.time_type in ("TIMESTAMP", "DATE") and draw(st.booleans())
        emits = draw(st.booleans())
        slide = f" SLIDE {amounts.interval(rows)}" if timed else f" SLIDE {rows}"
        if emits:
            slide += f" EMIT EVERY {amounts.interval(every)}" if timed else f" EMIT EVERY {every}"
        partition = draw(_partition(source))
    outputs, columns = list(source.columns), dict(source.columns)
    for i in range(draw(st.integers(1, 3))):
        call, type_ = draw(aggregate_calls(source, everything))
        by = draw(_partition(source)) if partition is None else partition
        frame = draw(_frame(amounts))
        if everything and draw(st.integers(0, 2)) == 0:
            # A tuple waits for the frames of one call only, so that it is clear how long.
            frame = draw(_frame_elsewhere(amounts, follows=not slide and i == 0))
        if everything and not slide and draw(st.integers(0, 3)) == 0:
            call, type_ = draw(_rank(source, follows=i == 0))
            frame = ""
        result = f"a{len(source.columns) + i}"
        outputs.append(f"{call} OVER ({by}{frame}{slide}) AS {result}")
        if type_ is not None:
            columns[result] = type_
    if emits and draw(st.booleans()):
        outputs.append("complete AS c")
    where = draw(_where(source))
    text = f"SELECT {', '.join(outputs)} FROM {source.name}{where}"
    # What is reported early at some instant has no column for it.
    attributes = frozenset[str]() if emits and timed else source.attributes & {"t"}
    return text, Source(name, columns, source.time_type, attributes, source.extreme)


@st.composite
def _bracket(draw: Draw, source: Source, name: str, everything: bool) -> tuple[str, Source]:
    window: Bracket = draw(brackets(source, everything))
    text = window.text
    keys = draw(st.lists(_group_key(source), max_size=2, unique_by=lambda key: key[0]))
    pattr = not keys and "k" in source.columns and draw(st.booleans())
    if pattr:
        text += " PATTR k"
    outputs, columns = [], {}
    for i, (key, type_) in enumerate(keys if not pattr else [("k", source.columns["k"])]):
        column = key if key in source.columns else f"g{i}"
        outputs.append(key if key == column else f"{key} AS {column}")
        columns[column] = type_
    for i in range(draw(st.integers(1, 3))):
        call, type_or_none = draw(aggregate_calls(source, everything))
        result = f"b{len(keys) + i}"
        outputs.append(f"{call} AS {result}")
        if type_or_none is not None:
            columns[result] = type_or_none
    if not columns:
        outputs.append("count(*) AS n")
        columns["n"] = "BIGINT"
    shown = {"window_end": ("e", window.edge_type), "wid": ("w", window.wid_type)}
    for column, (alias, type_) in shown.items():
        if draw(st.booleans()):
            outputs.append(f"{column} AS {alias}")
            columns[alias] = type_
    if everything and draw(st.booleans()):
        outputs.append("window_start AS b")
    if window.emits and draw(st.booleans()):
        outputs.append("complete AS c")
    text = f"SELECT {', '.join(outputs)} FROM {source.name} [{text}]{draw(_where(source))}"
    if keys:
        text += f" GROUP BY {', '.join(key for key, _ in keys)}"
    text += draw(st.sampled_from(["", " HAVING count(*) > 1"]))
    return text, Source(name, columns, window.time_type, extreme=source.extreme)


@st.composite
def _union(draw: Draw, left: Source, right: Source, name: str) -> tuple[str, Source]:
    texts = ["k, v, t", "k, v", "v", "k"]
    beside = [side.columns["a"] for side in (left, right) if "a" in side.columns]
    if len(beside) == 2 and (beside[0] == beside[1] or not set(beside) & set(UNITS)):
        texts += ["k, v, t, a", "k, v, a"]
    outputs = draw(st.sampled_from(texts))
    all_ = draw(st.sampled_from([" ALL", ""]))
    sides = (f"SELECT {outputs} FROM {side.name}{draw(_where(side))}" for side in (left, right))
    columns = {c: united(left.columns[c], right.columns[c]) for c in outputs.split(", ")}
    time_type = united(left.time_type, right.time_type)
    # Without ALL nothing is known of other attributes than the timestamp.
    attributes = frozenset({"a"} & set(columns) if all_ else ())
    return f" UNION{all_} ".join(sides), Source(
        name, columns, time_type, attributes, extreme=left.extreme or right.extreme
    )


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
        "date": [],
    }[family(type_)]
    # The timestamp must stay itself where a window may be defined on it.
    return st.sampled_from([(text, type_) for text in [column, *(made if column != "t" else [])]])


@st.composite
def _where(draw: Draw, source: Source) -> str:
    if draw(st.integers(0, 2)) < 2:
        return ""
    first, second = draw(condition(source)), draw(condition(source))
    joined = draw(st.sampled_from([first, f"{first} AND {second}", f"{first} OR {second}", f"NOT ({first})"]))
    return f" WHERE {joined}"


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
def _frame_elsewhere(draw: Draw, amounts: Amounts, follows: bool) -> str:
    """Draw a frame that does not end at the current tuple."""
    rows = draw(st.booleans())
    ends = sorted(draw(st.tuples(*[st.integers(-9, 6 if follows else -1)] * 2)))
    sides = [f"{'PRECEDING' if end < 0 else 'FOLLOWING'}" for end in ends]
    counts = [str(abs(end)) if rows else amounts.interval(abs(end)) for end in ends]
    bounds = [
        f"{count} {side}" if end else "CURRENT ROW"
        for end, count, side in zip(ends, counts, sides, strict=True)
    ]
    return f"{'ROWS' if rows else 'RANGE'} BETWEEN {bounds[0]} AND {bounds[1]}"


@st.composite
def _rank(draw: Draw, source: Source, follows: bool) -> tuple[str, str]:
    column = draw(st.sampled_from(sorted(source.columns)))
    number = draw(st.integers(1, 3))
    others = [f"lag({column}, {number})", f"lag({column}) IGNORE NULLS", f"nth_value({column}, {number})"]
    others += [f"lead({column}, {number})"] if follows else []
    return draw(
        st.sampled_from([("row_number()", "INT"), *((call, source.columns[column]) for call in others)])
    )


@st.composite
def _group_key(draw: Draw, source: Source) -> tuple[str, str]:
    column = draw(st.sampled_from(sorted(source.columns)))
    type_ = source.columns[column]
    if family(type_) == "integer" and draw(st.booleans()):
        return f"{column} % 2", type_
    return column, type_
