"""Tables with REFRESH EVERY: later micro-batches meet a change, and nothing is taken back (semantics, 3)."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.errors import MillstreamError
from millstream.runtime.queries.running_query import RunningQuery
from tests.runtime.growing import Growing, appear, until

pytestmark = pytest.mark.spark


@pytest.fixture
def growing(spark: SparkSession, tmp_path: Path) -> Growing:
    return Growing(ms.connect(spark), tmp_path / "bids")


def _table(growing: Growing, path: Path, refresh: str) -> None:
    growing.mill.execute(f"""
        CREATE TABLE names (item INT, name STRING) USING csv OPTIONS (path '{path}') REFRESH EVERY {refresh}
    """)


def _told(query: RunningQuery) -> list[tuple[object, ...]]:
    assert query.log is not None
    with query.log._changed:
        tables = [query.log._show(query.log._parts[batch].load()) for batch in query.log._batch_ids]
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def test_each_micro_batch_meets_the_table_as_it_is(growing: Growing, tmp_path: Path) -> None:
    names = tmp_path / "names.csv"
    appear(names, "1,one", "2,two")
    _table(growing, names, "1 HOUR")
    query = growing.mill.start("""
        SELECT b.item, name, price FROM Bid b LEFT JOIN names n ON b.item = n.item
        WHERE price NOT IN (SELECT item FROM names)
    """)
    growing.write("1,10,1", "3,11,2", "2,99,3")
    until(lambda: len(_told(query)) == 3, query)
    # The file is replaced by a longer one: what was given before stays.
    appear(names, "1,uno", "2,due", "3,a long name for tre", "13,thirteen")
    growing.mill.refresh("names")
    growing.write("3,12,4", "1,13,5", "1,14,6")
    until(lambda: len(_told(query)) == 5, query)
    assert _told(query)[:3] == [(1, "one", 10), (3, None, 11), (2, "two", 99)]
    assert _told(query)[3:] == [(3, "a long name for tre", 12), (1, "uno", 14)]

    # A table that is gone, or has become something else: the last good version counts.
    names.unlink()
    with pytest.raises(MillstreamError, match="there is no file or directory"):
        growing.mill.refresh("names")
    assert list(growing.mill.stale_tables) == ["names"]
    growing.write("2,15,7", "1,16,8")
    until(lambda: len(_told(query)) == 7, query)
    assert _told(query)[5:] == [(2, "due", 15), (1, "uno", 16)]
    growing.mill.stop()


def test_a_table_is_read_again_by_itself(growing: Growing, tmp_path: Path) -> None:
    """And below a window: the join of a window with a table is made when its tuples come."""
    (tmp_path / "names").mkdir()
    appear(tmp_path / "names" / "a.csv", "1,one")
    _table(growing, tmp_path / "names", "200 MILLISECONDS")
    query = growing.mill.start("""
        SELECT window_end, name, count(*) AS n FROM Bid [TUMBLE 10] b JOIN names n ON b.item = n.item
        GROUP BY name
    """)
    growing.write("1,0,1", "2,0,2", "1,0,5")
    until(lambda: query.progress.batches > 0, query)
    before = query.progress.rows_in
    appear(tmp_path / "names" / "b.csv", "2,two")
    files = growing.mill._live._tables["names"]
    until(lambda: len(files._state or ()) == 2, query)  # type: ignore[arg-type]
    assert before == 3
    growing.write("2,0,6", "1,0,7", "1,0,11")
    until(lambda: len(_told(query)) == 2, query)
    assert sorted(_told(query)) == [(10, "one", 3), (10, "two", 1)]
    growing.mill.stop()
