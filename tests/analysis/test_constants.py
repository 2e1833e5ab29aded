"""Constant arguments of aggregates are known, and checked, before a query runs."""

from fractions import Fraction

import pytest
from sqlglot import exp

from millstream.analysis.types.constants import NotConstantError, constant_value, parameters
from millstream.catalog.builtin_aggregates import BuiltinAggregate, builtin_aggregate
from millstream.errors import AnalysisError
from millstream.syntax import parse_script
from millstream.types import BINARY, DOUBLE, STRING


def expression(text: str) -> exp.Expr:
    (statement,) = parse_script(f"SELECT f({text}) FROM s;")
    call = statement.tree.expressions[0]
    return next(iter(call.expressions))


def row_of(name: str) -> BuiltinAggregate:
    row = builtin_aggregate(name)
    assert row is not None
    return row


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0.1", Fraction(1, 10)),
        ("5e-1", Fraction(1, 2)),
        ("-(3)", Fraction(-3)),
        ("1 - 0.05", Fraction(19, 20)),
        ("1 / 4", Fraction(1, 4)),
        ("CAST('0.5' AS DOUBLE)", Fraction(1, 2)),
        ("10L", Fraction(10)),
        ("', '", ", "),
        ("X'2C0A'", b",\n"),
        ("NULL", None),
        ("true", True),
        ("array(0.25, 0.75)", [Fraction(1, 4), Fraction(3, 4)]),
    ],
)
def test_literals_and_arithmetic_with_them_are_constants(text, value):
    assert constant_value(expression(text)) == value


@pytest.mark.parametrize("text", ["v", "sqrt(0.25)", "1 / 0", "CAST('x' AS DOUBLE)", "array(v)"])
def test_other_expressions_are_not(text):
    with pytest.raises(NotConstantError):
        constant_value(expression(text))


def test_percentages_are_taken_one_by_one():
    assert parameters(row_of("percentile"), [expression("array(0.25, 0.5)")], DOUBLE) == (0.25, 0.5)
    assert parameters(row_of("approx_percentile"), [expression("0.5"), expression("100")], DOUBLE) == (0.5,)
    assert parameters(row_of("median"), [], DOUBLE) == (0.5,)


def test_defaults_stand_for_constants_that_are_not_written():
    assert parameters(row_of("approx_top_k"), [], STRING) == (5,)
    assert parameters(row_of("listagg"), [], STRING) == ("",)
    assert parameters(row_of("listagg"), [expression("NULL")], BINARY) == (b"",)
    assert parameters(row_of("max_by"), [], STRING) == ()
    assert parameters(row_of("sum"), [], DOUBLE) == ()


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("percentile", "1.5", "a percentage of 'percentile' must be a number from 0 to 1, but this is 1.5"),
        ("percentile", "array(0.5, -1)", "a percentage of 'percentile' must be a number from 0 to 1"),
        ("percentile", "NULL", "a percentage of 'percentile' must be a number from 0 to 1, but this is NULL"),
        ("max_by", "0", "a number of values of 'max_by' must be a whole number from 1 to 100000"),
        ("histogram_numeric", "1", "a number of bins of 'histogram_numeric' must be a whole number from 2"),
        (
            "approx_top_k",
            "1.5",
            "a number of items of 'approx_top_k' must be a whole number from 1 to 1000000",
        ),
    ],
)
def test_constants_out_of_range_are_refused(name, text, message):
    with pytest.raises(AnalysisError) as caught:
        parameters(row_of(name), [expression(text)], DOUBLE)
    assert caught.value.message.startswith(message)
