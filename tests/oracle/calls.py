"""Random calls of aggregates."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.oracle.shapes import Draw, Source, condition, family


@st.composite
def aggregate_calls(draw: Draw, source: Source, everything: bool) -> tuple[str, str | None]:
    """A call and the type of its result; None for one that no further query should compute with."""
    column = draw(st.sampled_from(sorted(source.columns)))
    type_ = source.columns[column]
    sums = {
        "integer": [("sum", "BIGINT"), ("avg", "DOUBLE")],
        "double": [("sum", "DOUBLE"), ("avg", "DOUBLE")],
        "decimal": [("sum", "DECIMAL(20, 2)"), ("avg", "DECIMAL(14, 6)")],
    }.get(family(type_), [])
    plain = [("count", "BIGINT"), *((f, type_) for f in ("min", "max", "first", "last"))]
    known: list[tuple[str, str | None]] = [("count(*)", "BIGINT"), *plain, *sums]
    if everything and draw(st.booleans()):
        known = _more(column, draw(st.sampled_from(sorted(source.columns))), source)
    function, result = draw(st.sampled_from(known))
    call = function if function.endswith(")") else f"{function}({column})"
    chosen = f" FILTER (WHERE {draw(condition(source))})" if draw(st.integers(0, 3)) == 0 else ""
    return call + chosen, result


def _more(column: str, other: str, source: Source) -> list[tuple[str, str | None]]:
    """Aggregates that not every kernel knows."""
    type_, beside = source.columns[column], source.columns[other]
    found: list[tuple[str, str | None]] = [
        (f"count(DISTINCT {column})", "BIGINT"),
        (f"count({column}, {other})", "BIGINT"),
        (f"count(DISTINCT {column}, {other})", "BIGINT"),
        (f"approx_count_distinct({column})", "BIGINT"),
        (f"count_if({column} IS NULL)", "BIGINT"),
        (f"min_by({column}, {other})", type_),
        (f"max_by({column}, {other})", type_),
        (f"any_value({column})", type_),
        (f"mode({column})", type_),
        (f"bool_and({column} IS NOT NULL)", None),
        (f"bool_or({column} IS NULL)", None),
        (f"collect_list({column})", None),
        (f"collect_set({column})", None),
        (f"first({column}, true)", type_),
    ]
    numbers = ("integer", "double", "decimal")
    if family(type_) == "string":
        found += [(f"listagg({column}, '-')", "STRING"), (f"string_agg(DISTINCT {column})", "STRING")]
    if family(type_) == "integer":
        found += [(f"{name}({column})", type_) for name in ("bit_and", "bit_or", "bit_xor")]
    if family(type_) in numbers:
        found += [(f"approx_percentile({column}, 0.5)", type_), (f"sum(DISTINCT {column})", None)]
        found += [(f"median({column})", "DOUBLE"), (f"percentile({column}, 0.25)", "DOUBLE")]
    # Doubles that are added to what is immensely larger are no test of anything.
    if family(type_) in numbers and not source.extreme:
        one = ("stddev", "stddev_pop", "variance", "var_pop", "skewness", "kurtosis")
        found += [(f"{name}({column})", None) for name in one]
        if family(beside) in numbers:
            two = ("corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2", "regr_sxy")
            found += [(f"{name}({column}, {other})", None) for name in two]
            found += [(f"regr_count({column}, {other})", "BIGINT")]
    return found
