"""Values that have a place in an order, by type."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from millstream.kernels.windows.time_codec import OUTERMOST, has_value


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.int64(), [None, *OUTERMOST]),
        (pa.float64(), [None, float("nan"), float("inf"), float("-inf")]),
        (pa.int32(), [None]),
        (pa.timestamp("us"), [None]),
    ],
)
def test_null_and_infinite_values_have_no_place_in_an_order(kind: pa.DataType, values: list[Any]) -> None:
    array = pa.array([0, *values, 1], kind)
    expected = [True, *(False for _ in values), True]
    assert has_value(array).to_pylist() == expected
    assert has_value(pa.chunked_array([array, array])).to_pylist() == expected * 2
