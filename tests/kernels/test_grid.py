import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.kernels.base import END, Frontier
from millstream.kernels.grid import Grid

LEAST, MOST = -(2**63), 2**63 - 1


def extent(grid, window):
    """The definition, with the ids that users see."""
    end = grid.origin + (window + 1) * grid.slide
    return end - grid.range, end


lengths = st.one_of(st.integers(1, 30), st.integers(1, 2**62))
grids = st.builds(Grid, range=lengths, slide=lengths, origin=st.integers(LEAST, MOST))
times = st.one_of(st.integers(-100, 100), st.integers(LEAST, MOST), st.sampled_from([LEAST, LEAST + 1, MOST]))


@settings(deadline=None)
@given(grids, times)
def test_windows_of_a_time_are_those_whose_extent_has_it(grid, time):
    pane = grid.panes(np.array([time]))
    first, last = int(grid.first_windows(pane)[0]), int(grid.last_windows(pane)[0])
    if last - first < 1000:
        wids = [w - grid.shift for w in range(first, last + 1)]
    else:  # too many to look at all
        wids = [first - grid.shift, (first + last) // 2 - grid.shift]
        if last < MOST:
            wids.append(last - grid.shift)
    for wid in wids:
        start, end = extent(grid, wid)
        assert start <= time < end
    start, end = extent(grid, first - 1 - grid.shift)
    assert not start <= time < end
    if last < MOST:
        start, end = extent(grid, last + 1 - grid.shift)
        assert not start <= time < end


@settings(deadline=None)
@given(grids, times)
def test_edges_are_those_of_the_extent_or_the_nearest_there_are(grid, time):
    window = grid.first_windows(grid.panes(np.array([time])))
    start, end = extent(grid, int(window[0]) - grid.shift)
    assert int(grid.starts(window)[0]) == min(max(start, LEAST), MOST)
    assert int(grid.ends(window)[0]) == min(max(end, LEAST), MOST)


@settings(deadline=None)
@given(grids, times)
def test_windows_that_end_at_the_frontier_or_before_are_closed(grid, time):
    closed = grid.last_closed(Frontier(time, 0))
    if time < MOST:
        assert extent(grid, closed - grid.shift)[1] <= time < extent(grid, closed + 1 - grid.shift)[1]
        assert int(grid.first_after(np.array([time]))[0]) == closed + 1
    assert grid.last_closed(END) == MOST


@settings(deadline=None)
@given(grids, times, times)
def test_times_in_the_same_pane_are_in_the_same_windows(grid, one, other):
    same = grid.panes(np.array([one, other]))
    if same[0] == same[1]:
        one, other = one - grid.origin, other - grid.origin
        assert one // grid.slide == other // grid.slide
        assert (one + grid.range) // grid.slide == (other + grid.range) // grid.slide
