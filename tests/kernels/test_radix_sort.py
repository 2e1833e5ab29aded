import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.core.radix_sort import changes, merging, ordering

LIMITS = st.sampled_from([-(2**63), 2**63 - 1])
rows = st.lists(st.tuples(*[st.one_of(st.integers(-3, 3), LIMITS)] * 3), max_size=12)


def columns(made):
    return tuple(np.array([row[i] for row in made], np.int64) for i in range(3))


@settings(deadline=None)
@given(rows, st.booleans())
def test_rows_are_sorted_by_three_columns(made, by_middle):
    """Rows that are in the order of the middle column already are a case of its own."""
    made = sorted(made, key=lambda row: row[1]) if by_middle else made
    order = ordering(*columns(made))
    assert [made[i] for i in (range(len(made)) if order is None else order)] == sorted(made)


@settings(deadline=None)
@given(rows, rows)
def test_two_runs_in_order_become_one(one, other):
    one, other = sorted(one), sorted(other)
    order = merging(columns(one), columns(other))
    assert [(one + other)[i] for i in order] == sorted(one + other)


@settings(deadline=None)
@given(rows)
def test_changes_are_where_a_row_differs_from_the_one_before(made):
    expected = [i == 0 or made[i] != made[i - 1] for i in range(len(made))]
    assert changes(*columns(made)).tolist() == expected
