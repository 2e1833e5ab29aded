"""Random sequence patterns: queries over a stream or a table whose columns are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.oracle.shapes import Draw, Source, condition, family

NUMBERS = ("integer", "double", "decimal")
OPERATORS = ("<", "<=", ">", ">=", "=", "<>")

AGGREGATES = """
CREATE AGGREGATE halved(Next DOUBLE) : DOUBLE {
    TABLE state(x DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET x = (x + Next) / 2; INSERT INTO RETURN SELECT x FROM state; }
};
CREATE AGGREGATE steps(Next DOUBLE) : INT {
    TABLE state(x DOUBLE, n INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 0); }
    ITERATE    : { UPDATE state SET n = n + 1 WHERE x < Next; UPDATE state SET x = Next; }
    TERMINATE  : { INSERT INTO RETURN SELECT n FROM state; }
}"""
"""One that is non-blocking, and one that is not."""


@dataclass(frozen=True)
class Variable:
    """An element of a pattern, in the way it is written in conditions."""

    name: str
    star: bool

    def tuple(self, column: str, back: int = 0) -> str:
        return f"{self.name}{'.previous' * back}.{column}"


@st.composite
def pattern_query(
    draw: Draw,
    source: Source,
    name: str,
    *,
    table: bool = False,
    beside: str | None = None,
    everything: bool = False,
) -> tuple[str, Source]:
    """A query, and what it returns as a source for another one.

    Args:
        draw: Hypothesis's.
        source: What is searched.
        name: What the result is to be called.
        table: Whether it is a table, and needs an order.
        beside: A table with columns ``k`` and ``name`` to be joined with.
        everything: Whether to use moving windows, aggregates of the user's and all kinds of built-in ones.
    """
    stars = draw(st.lists(st.booleans(), min_size=1, max_size=4))
    variables = [Variable("XYZU"[i], star) for i, star in enumerate(stars)]
    few = [column for column in ("k",) if column in source.columns]
    keys = draw(
        st.sampled_from([[], few])
        | st.lists(st.sampled_from(sorted(source.columns)), max_size=2, unique=True)
    )
    where: list[str] = []
    for position in range(len(variables)):
        conjunct = _conjunct(source, variables[: position + 1], everything)
        where += [draw(conjunct) for _ in range(draw(st.sampled_from([0, 0, 1, 1, 2])))]
    if beside is not None:
        key = draw(st.sampled_from(variables)).tuple("k")
        where.append(draw(st.sampled_from([f"{key} = n.k", f"{key} <=> n.k", "n.name >= 'a'"])))
    outputs, columns = draw(_outputs(source, variables, keys, everything))
    attributes = frozenset({"t"} & source.attributes)
    if "t" in source.columns and draw(st.booleans()):
        last = variables[-1]
        outputs.append(f"{draw(st.sampled_from([_ends(last, 't')[1], last.tuple('t')]))} AS t")
        columns["t"] = source.columns["t"]
    else:
        attributes = frozenset()
    if beside is not None:
        outputs.append("n.name")
        columns["name"] = "STRING"
    clauses = [f"PARTITION BY {', '.join(keys)}"] if keys else []
    clauses += [f"SEQUENCE BY {draw(st.sampled_from(['t', 't, v', 'v']))}"] if table else []
    elements = ", ".join(f"{'*' if variable.star else ''}{variable.name}" for variable in variables)
    clauses.append(f"AS ({elements})")
    text = f"SELECT {', '.join(outputs)} FROM {source.name} {' '.join(clauses)}"
    text += f", {beside} AS n" if beside is not None else ""
    text += f" WHERE {' AND '.join(draw(st.permutations(where)))}" if where else ""
    return text, Source(name, columns, source.time_type, attributes, source.extreme)


# ---------------------------------------------------------------- conditions


@st.composite
def _conjunct(draw: Draw, source: Source, variables: Sequence[Variable], everything: bool) -> str:
    """A condition that belongs to the last variable."""
    kinds = [_constant, _constant, _previous, _previous]
    kinds += [_earlier, _earlier] if len(variables) > 1 else []
    kinds += [_running, _running, _final, _final] if variables[-1].star else []
    one, other = (draw(draw(st.sampled_from(kinds))(source, variables, everything)) for _ in range(2))
    # Half of all values are NULL, and a pattern that never matches is no test.
    written = [one, one, f"({one}) IS NOT FALSE", f"({one}) IS NOT FALSE", f"({one} OR {other})"]
    return draw(st.sampled_from([*written, f"NOT ({one})"]))


def _constant(source: Source, variables: Sequence[Variable], everything: bool) -> st.SearchStrategy[str]:
    name = variables[-1].name
    return condition(Source("", {f"{name}.{column}": type_ for column, type_ in source.columns.items()}, ""))


@st.composite
def _previous(draw: Draw, source: Source, variables: Sequence[Variable], everything: bool) -> str:
    column, back = draw(st.sampled_from(sorted(source.columns))), draw(st.sampled_from([1, 1, 1, 2, 4]))
    own, before = variables[-1].tuple(column), variables[-1].tuple(column, back)
    if family(source.columns[column]) in NUMBERS and not source.extreme:
        before = draw(st.sampled_from([before, before, f"{before} + 2", f"2 * {before}", f"0.5 * {before}"]))
    return f"{own} {draw(st.sampled_from(OPERATORS))} {before}"


@st.composite
def _earlier(draw: Draw, source: Source, variables: Sequence[Variable], everything: bool) -> str:
    """A tuple beside one that was taken before, or beside an aggregate of those."""
    column = draw(st.sampled_from(sorted(source.columns)))
    other = draw(st.sampled_from(variables[:-1]))
    values = [other.tuple(column), other.tuple(column), other.tuple(column, 1)]
    if other.star:
        values += [*_ends(other, column), f"min(*{other.tuple(column)})", f"cmax({other.tuple(column)})"]
        if family(source.columns[column]) in NUMBERS and not source.extreme:
            values += [f"avg(*{other.tuple(column)})", f"csum({other.tuple(column)}) / 2"]
    return f"{variables[-1].tuple(column)} {draw(st.sampled_from(OPERATORS))} {draw(st.sampled_from(values))}"


@st.composite
def _running(draw: Draw, source: Source, variables: Sequence[Variable], everything: bool) -> str:
    column = draw(st.sampled_from(sorted(source.columns)))
    own = variables[-1].tuple(column)
    values = [f"cmin({own})", f"cmax({own})", f"FIRST({variables[-1].name}).{column}"]
    if family(source.columns[column]) in NUMBERS and not source.extreme:
        values += [f"cavg({own})", f"csum({own}) / 2"]
        values += [f"halved({own})"] if everything and family(source.columns[column]) != "decimal" else []
    if everything:
        calls = ["min", "max", "mode"]
        if family(source.columns[column]) in NUMBERS and not source.extreme:
            calls += ["avg", "sum", "median"]
            calls += ["steps", "halved"] if family(source.columns[column]) != "decimal" else []
        reach, wanted = draw(st.sampled_from(["0", "1", "2", "UNBOUNDED"])), draw(_wanted(source, variables))
        over = f"OVER (ROWS {reach} PRECEDING)"
        values += [f"{call}({own}) {over}" for call in calls]
        values += [f"{call}({own}){wanted} {over}" for call in calls]
        values += [f"{call}({own}){wanted}" for call in ("cmin", "cmax")]
        values += [f"max(DISTINCT {own}) {over}", f"any_value({own}) IGNORE NULLS {over}"]
    compared = f"{own} {draw(st.sampled_from(OPERATORS))} {draw(st.sampled_from(values))}"
    counts = [f"ccount({variables[-1].name})", f"ccount({own})"]
    counts += [count + draw(_wanted(source, variables)) for count in counts] if everything else []
    count = draw(st.sampled_from(counts))
    return draw(st.sampled_from([f"{count} <= {draw(st.integers(1, 4))}", compared]))


@st.composite
def _final(draw: Draw, source: Source, variables: Sequence[Variable], everything: bool) -> str:
    column = draw(st.sampled_from(sorted(source.columns)))
    star = variables[-1]
    own, n = star.tuple(column), draw(st.integers(1, 4))
    first, last = _ends(star, column)
    values = [first, f"min(*{own})", f"max(*{own})"]
    values += [draw(st.sampled_from(variables[:-1])).tuple(column)] if len(variables) > 1 else []
    if family(source.columns[column]) in NUMBERS and not source.extreme:
        values += [f"avg(*{own})", f"sum(*{own}) / 2"]
    choices = [f"count(*{star.name}) >= {n}", f"count(*{star.name}) < {n + 1}", f"count(*{own}) <> {n}"]
    choices += [f"{last} {draw(st.sampled_from(OPERATORS))} {draw(st.sampled_from(values))}"] * 3
    if everything:
        wanted = draw(_wanted(source, variables))
        choices += [f"count(*{star.name}){wanted} < {n}", f"count(DISTINCT *{own}){wanted} < {n}"]
        if family(source.columns[column]) in ("integer", "double") and not source.extreme:
            choices += [f"steps(*{own}) < {n}", f"halved(*{own}) < {n}", f"steps(*{own}){wanted} < {n}"]
    return draw(st.sampled_from(choices))


@st.composite
def _wanted(draw: Draw, source: Source, variables: Sequence[Variable]) -> str:
    """A FILTER: a condition of the tuple, or of the tuple and the one before it."""
    written = draw(_constant(source, variables, False) | _previous(source, variables, False))
    return f" FILTER (WHERE {written})"


def _ends(star: Variable, column: str) -> list[str]:
    """FIRST and LAST; a plain element is both."""
    if not star.star:
        return [star.tuple(column)] * 2
    return [f"FIRST({star.name}).{column}", f"LAST(*{star.name}).{column}"]


# ---------------------------------------------------------------- outputs


@st.composite
def _outputs(
    draw: Draw, source: Source, variables: Sequence[Variable], keys: Sequence[str], everything: bool
) -> tuple[list[str], dict[str, str]]:
    """Draw the selected columns, and the types of those that a further query may use."""
    outputs: list[str] = []
    columns: dict[str, str] = {}
    for i in range(draw(st.integers(1, 4))):
        variable = draw(st.sampled_from(variables))
        column = draw(st.sampled_from(sorted(source.columns)))
        type_ = source.columns[column]
        choices: list[tuple[str, str | None]] = [(key, source.columns[key]) for key in keys]
        choices += [(variable.tuple(column), type_), (variable.tuple(column, 1), type_)]
        if variable.star:
            choices += [(text, type_) for text in _ends(variable, column)]
            wanted = draw(_wanted(source, [variable])) if everything else ""
            choices += _of_star(variable, column, type_, wanted, source.extreme)
        text, known = draw(st.sampled_from(choices))
        outputs.append(f"{text} AS o{i}")
        if known is not None:
            columns[f"o{i}"] = known
    if not columns:
        outputs.append(f"{variables[-1].tuple('v' if 'v' in source.columns else column)} AS o")
        columns["o"] = source.columns["v" if "v" in source.columns else column]
    return outputs, columns


def _of_star(
    star: Variable, column: str, type_: str, wanted: str, extreme: bool
) -> list[tuple[str, str | None]]:
    own = star.tuple(column)
    found: list[tuple[str, str | None]] = [
        (f"count(*{star.name})", "BIGINT"),
        (f"count(*{own})", "BIGINT"),
        (f"min(*{own})", type_),
        (f"max(*{own})", type_),
    ]
    sums = {"integer": "DOUBLE", "double": "DOUBLE", "decimal": "DECIMAL(14, 6)"}
    if family(type_) in NUMBERS and not extreme:
        found += [(f"avg(*{own})", sums[family(type_)]), (f"sum(*{own})", None)]
    if wanted:
        found += [(f"collect_list(*{own})", None), (f"approx_count_distinct(*{own})", "BIGINT")]
        found += [(f"max_by(*{own}, *{own})", type_), (f"collect_list(DISTINCT *{own}){wanted}", None)]
        found += [(f"mode() WITHIN GROUP (ORDER BY *{own} DESC){wanted}", type_)]
        if family(type_) in NUMBERS and not extreme:
            found += [(f"stddev(*{own})", None), (f"median(*{own})", "DOUBLE")]
            found += [(f"percentile_cont(0.3) WITHIN GROUP (ORDER BY *{own}){wanted}", "DOUBLE")]
            found += [(f"sum(DISTINCT *{own})", None)]
        if family(type_) in ("integer", "double") and not extreme:
            found += [(f"steps(*{own})", "INT"), (f"halved(*{own})", "DOUBLE")]
            found += [(f"halved(*{own}){wanted}", "DOUBLE"), (f"steps(DISTINCT *{own})", "INT")]
        found += [(f"{call}{wanted}", known) for call, known in found[:6]]
    return found
