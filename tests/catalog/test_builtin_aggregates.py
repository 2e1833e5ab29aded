"""The table of built-in aggregates fits Spark's list of functions, and the accumulators that there are."""

import pyarrow as pa
import pytest

from millstream.catalog.builtin_aggregates import (
    AGGREGATES,
    RUNNING_NAMES,
    TABLE,
    Arguments,
    BuiltinAggregate,
    Family,
    accumulator_functions,
    accumulator_row,
    builtin_aggregate,
    function_of,
)
from millstream.catalog.functions import FunctionKind, builtin
from millstream.kernels.aggregates.accumulator_selection import drops_copies, family_of, plan
from millstream.kernels.specs import AggregateSpec


def _id(row: BuiltinAggregate) -> str:
    return row.name


def test_every_name_is_an_aggregate_of_spark_with_a_signature():
    for name in AGGREGATES:
        function = builtin(name)
        assert function is not None
        assert function.kind is FunctionKind.AGGREGATE
        assert function.parameters


def test_a_name_stands_in_one_row():
    names = [name for row in TABLE for name in row.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("row", TABLE, ids=_id)
def test_every_row_leads_to_an_accumulator(row):
    assert function_of(row, 1) in accumulator_functions()
    assert accumulator_row(function_of(row, 1)).family is row.family or row.distinct
    if row.content_form is not None:
        assert row.content_form[1] in accumulator_functions()


@pytest.mark.parametrize("function", sorted(accumulator_functions()))
def test_every_function_has_an_accumulator(function):
    row = accumulator_row(function)
    numbers = pa.int64() if row.family is Family.BITS else pa.float64()
    pairs = row.family in (Family.PAIR, Family.MIN_MAX_BY) or row.arguments is Arguments.VALUES_AND_COUNTS
    spec = AggregateSpec(function, "a", "r", numbers, others=("b",) if pairs else ())
    accumulators, _ = plan([spec], pa.schema({"a": numbers, "b": numbers}), in_order=True)
    assert accumulators


def test_constants_are_arguments_of_the_signature():
    for row in TABLE:
        if row.constants:
            function = builtin(row.name)
            assert function is not None
            assert function.max_args is not None
            assert row.last_constant <= function.max_args


def test_distinct_changes_nothing_about_one_value_but_something_about_several():
    one = AggregateSpec("max_by", "a", "r", pa.int64(), others=("b",), distinct=True)
    several = AggregateSpec("max_by", "a", "r", pa.list_(pa.int64()), ("b",), parameters=(3,), distinct=True)
    assert not drops_copies(one)
    assert family_of(several) is Family.CONTENT
    assert drops_copies(several)


def test_aliases_share_a_row():
    assert builtin_aggregate("std") is builtin_aggregate("STDDEV_SAMP")
    assert builtin_aggregate("percentile_of_counts") is None
    assert RUNNING_NAMES["cavg"] == "avg"
