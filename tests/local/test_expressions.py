"""Expressions of the local engine: the values that the oracle and Spark have, or a refusal by name."""

import pyarrow as pa
import pytest

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.errors import ExecutionError, NotExecutableError
from millstream.kernels.core.arrow_types import arrow_type
from millstream.local.expressions import compile_expression
from millstream.types import BIGINT, BOOLEAN, DATE, DOUBLE, FLOAT, INT, STRING, TIMESTAMP, decimal
from tests.oracle.test_values import EXPRESSIONS, ROW

TYPES = {
    "i": INT, "l": BIGINT, "x": DOUBLE, "f": FLOAT, "d": decimal(10, 2), "s": STRING, "b": BOOLEAN,
    "ts": TIMESTAMP, "dt": DATE, "t": INT,
}  # fmt: skip
SCHEMA = [ColumnRef("", name, type_) for name, type_ in TYPES.items()]
COLUMNS = [pa.array([ROW[name]], arrow_type(type_)) for name, type_ in TYPES.items()]


def value(text: str) -> object:
    [found] = compile_expression(Expr((text,)), SCHEMA)(COLUMNS, 1).to_pylist()
    return found


REFUSED = {
    "INTERVAL 2 YEARS": "an interval of year",
    "ts - INTERVAL 1 MONTH": "an interval of month",
    "ts + INTERVAL 1 MONTH": "an interval of month",
    "dt + INTERVAL 1 MONTH": "an interval of month",
    "uuid()": "the function 'uuid'",
    "ts.year": "'ts.year'",
}


@pytest.mark.parametrize("text", [text for text in EXPRESSIONS if text not in REFUSED])
def test_expression(text: str) -> None:
    found, expected = value(text), EXPRESSIONS[text]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("text", REFUSED)
def test_an_expression_that_only_spark_can_compute_is_refused_by_name(text: str) -> None:
    with pytest.raises(NotExecutableError, match=f"{REFUSED[text]} cannot be used by the local engine"):
        value(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("i + 2147483647", "does not fit"),
        ("l * 9223372036854775807", "does not fit"),
        ("CAST(1e10 AS INT)", "does not fit"),
        ("CAST(d AS DECIMAL(2, 2))", "does not fit"),
        ("i / 0", "division by zero"),
        ("d / 0", "division by zero"),
        ("CAST('1.5' AS INT)", "cannot be converted"),
        ("CAST('soon' AS TIMESTAMP)", "cannot be converted"),
    ],
)
def test_an_error_stops_the_query(text: str, message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        value(text)


def test_columns_of_relations_and_nulls() -> None:
    schema = [ColumnRef("a", "v", INT), ColumnRef("b", "v", INT)]
    both = compile_expression(Expr(("`a`.`v` + `b`.`v`",)), schema)
    assert both([pa.array([1, None, 3]), pa.array([10, 20, None])], 3).to_pylist() == [11, None, None]


def test_names_of_columns_are_not_those_of_intermediate_values() -> None:
    """A NULL in the first column hid the value of the third, which is called n2 in source."""
    schema = [ColumnRef("", name, INT) for name in "abc"]
    chosen = compile_expression(
        Expr(("CASE WHEN a = 0 THEN 0 ELSE a END IS NULL AND b IS NULL AND c > 0",)), schema
    )
    columns = [pa.array([None], pa.int32()), pa.array([None], pa.int32()), pa.array([5], pa.int32())]
    assert chosen(columns, 1).to_pylist() == [True]


def test_a_constant_needs_no_columns() -> None:
    assert compile_expression(Expr(("1 + 1",)), ())([], 2).to_pylist() == [2, 2]


def test_structs_and_their_parts() -> None:
    pair = compile_expression(Expr(("named_struct('low', i, 'high', l)",)), SCHEMA)
    made = pair(COLUMNS, 1)
    assert made.to_pylist() == [{"low": 7, "high": -3}]
    part = compile_expression(Expr(("`r`.`high` + 1",)), [ColumnRef("", "r", pair.type)])
    assert part([made], 1).to_pylist() == [-2]


def test_names_of_columns_and_of_computed_values_differ() -> None:
    schema = [ColumnRef("", "v", INT), ColumnRef("", "c", STRING), ColumnRef("", "p", INT)]
    either = compile_expression(Expr(("CAST(v AS STRING) = c OR p IS NULL",)), schema)
    columns = [pa.array([1, 2, 3]), pa.array(["x", "2", "x"]), pa.array([None, 5, 5])]
    assert either(columns, 3).to_pylist() == [True, True, False]
