"""Averages, variances and the like agree with a plain computation over the same values."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.types import DOUBLE, INT
from tests.library.running import base, content, often, over_rows, uncompiled

values = st.one_of(st.none(), st.floats(-1000, 1000).map(lambda x: round(x, 3)))
series = st.lists(values, min_size=1, max_size=30)
weights = st.floats(0.01, 1)


@pytest.fixture(autouse=True)
def _as_python():
    with uncompiled():
        yield


def windows(rows: list, size: int) -> list[list]:
    return [rows[max(0, i - size + 1) : i + 1] for i in range(len(rows))]


def known(rows: list) -> list:
    return [value for value in rows if value is not None]


@often
@given(series, weights)
def test_a_decayed_average_is_the_sum_of_fading_values(given: list, weight: float) -> None:
    found = base("decayed_avg", [DOUBLE, DOUBLE], [(value, weight) for value in given])
    for i, rows in enumerate(found):
        first, *others = known(given[: i + 1]) or [None]
        expected = first
        if first is not None:
            # The first value is not weighted: it is the average of what came before.
            n = len(others)
            expected = first * (1 - weight) ** n
            expected += sum(weight * (1 - weight) ** (n - 1 - j) * v for j, v in enumerate(others))
        assert rows == [(pytest.approx(expected),)]


@often
@given(series, weights)
def test_weighted_statistics_are_those_of_weighted_values(given: list, weight: float) -> None:
    found = base("weighted_stats", [DOUBLE, DOUBLE], [(value, weight) for value in given])
    for i, rows in enumerate(found):
        so_far = known(given[: i + 1])
        if not so_far:
            assert rows == [(None, 0)]
            continue
        n = len(so_far)
        shares = [(1 - weight) ** (n - 1)] + [weight * (1 - weight) ** (n - 1 - j) for j in range(1, n)]
        mean = sum(w * v for w, v in zip(shares, so_far, strict=True))
        variance = sum(w * (v - mean) ** 2 for w, v in zip(shares, so_far, strict=True))
        assert rows == [(pytest.approx(mean), pytest.approx(variance, abs=1e-6))]


@often
@given(series, st.integers(1, 5))
def test_a_tumbling_average_comes_with_the_last_of_its_tuples(given: list, size: int) -> None:
    found = base("tumbling_avg", [DOUBLE, INT], [(value, size) for value in given])
    for i, rows in enumerate(found):
        if (i + 1) % size:
            assert rows == []
        else:
            values = known(given[i + 1 - size : i + 1])
            assert rows == [(pytest.approx(statistics.fmean(values)) if values else None,)]


def variance(values: list) -> float | None:
    values = known(values)
    return statistics.variance(values) if len(values) > 1 else None


@often
@given(series, st.integers(1, 8), st.lists(st.integers(0, 30), max_size=3))
def test_a_moving_variance_is_that_of_the_window(given: list, size: int, cuts: list[int]) -> None:
    found = over_rows("moving_variance", [DOUBLE], [(value,) for value in given], size - 1, cuts)
    for rows, window in zip(found, windows(given, size), strict=True):
        expected = variance(window)
        assert rows == [(expected if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-6),)]


@often
@given(series)
def test_the_variance_of_a_whole_window_is_the_same(given: list) -> None:
    [(found,)] = content("moving_variance", [DOUBLE], [(value,) for value in given])
    expected = variance(given)
    assert found == (expected if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-6))


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_leaves_no_trace_in_a_variance(odd: float) -> None:
    rows = [(value,) for value in (1.0, odd, 2.0, 4.0, 3.0)]
    [*_, last] = over_rows("moving_variance", [DOUBLE], rows, 2)
    assert last == [(pytest.approx(statistics.variance([2.0, 4.0, 3.0])),)]
    pairs = [(value, 1.0 - value) for value in (1.0, odd, 2.0, 4.0, 3.0)]
    [*_, last] = over_rows("moving_covariance", [DOUBLE, DOUBLE], pairs, 2)
    assert last == [(pytest.approx(-statistics.variance([2.0, 4.0, 3.0])),)]


def test_large_values_that_have_left_leave_no_rounding_behind() -> None:
    rows = [(1e15,), *((float(i % 7),) for i in range(50))]
    [*_, last] = over_rows("moving_variance", [DOUBLE], rows, 6)
    assert last == [(pytest.approx(statistics.variance([float(i) for i in range(7)])),)]


def covariance(pairs: list) -> float | None:
    pairs = [(x, y) for x, y in pairs if x is not None and y is not None]
    return statistics.covariance(*zip(*pairs, strict=True)) if len(pairs) > 1 else None


@often
@given(st.lists(st.tuples(values, values), min_size=1, max_size=30), st.integers(1, 8))
def test_a_moving_covariance_is_that_of_the_window(given: list, size: int) -> None:
    found = over_rows("moving_covariance", [DOUBLE, DOUBLE], given, size - 1)
    for rows, window in zip(found, windows(given, size), strict=True):
        expected = covariance(window)
        assert rows == [(expected if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-5),)]
    [(whole,)] = content("moving_covariance", [DOUBLE, DOUBLE], given)
    expected = covariance(given)
    assert whole == (expected if expected is None else pytest.approx(expected, rel=1e-6, abs=1e-5))
