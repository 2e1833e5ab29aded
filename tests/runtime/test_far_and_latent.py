"""Times of any year, latent tuples and narrow timestamps on Spark, which gives clocks and texts a form."""

import pytest

from millstream.errors import ExecutionError
from millstream.testing import Streams, table

pytestmark = pytest.mark.spark


def test_times_of_any_year_pass_and_are_shown(streams: Streams) -> None:
    streams.add(
        "CREATE STREAM s (a INT, t TIMESTAMP) ORDER BY t",
        """
        a | t
        1 | 0000-12-31 00:00:00
        2 | 2026-01-01 00:00:00
        3 | +12345-01-01 00:00:00
        """,
    )
    passed, counted = streams.run_all(
        "SELECT a, t FROM s; SELECT window_end, count(*) AS n FROM s [TUMBLE 1 DAY]"
    )
    assert passed == table(
        """
        a | t
        1 | 0000-12-31 00:00:00
        2 | 2026-01-01 00:00:00
        3 | +12345-01-01 00:00:00
        """
    )
    assert [row[0] for row in counted[1:]] == [
        "0001-01-01 00:00:00",
        "2026-01-02 00:00:00",
        "+12345-01-02 00:00:00",
    ]
    with pytest.raises(ExecutionError, match="column 't' has a time"):
        list(streams.engine.start("SELECT t FROM s").results())


def test_latent_tuples_and_narrow_timestamps(streams: Streams) -> None:
    streams.add("CREATE STREAM l (id INT, v INT)", "id | v \n 1 | 10 \n 2 | 20", "id | v \n 3 | 30 \n 4 | 40")
    streams.add("CREATE STREAM c (v INT, t TINYINT) ORDER BY t", "v | t \n 1 | -128 \n 2 | 126 \n 3 | 127")
    changes, ends = streams.run_all(
        "SELECT CHANGES v FROM l [ROWS 2]; SELECT window_end, count(*) AS n FROM c [TUMBLE 10]"
    )
    assert ["".join(row) for row in changes[1:]] == ["+10", "+20", "-10", "+30", "-20", "+40"]
    assert ends[1:] == [("-120", "1"), ("130", "2")]
