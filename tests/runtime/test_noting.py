"""Notes on statements, which `check` prints, are warnings in Python."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.runtime.connection import Mill

PRELUDE = """
CREATE STREAM line (value STRING) USING text OPTIONS (path 'log');
CREATE STREAM hit AS SELECT to_timestamp(value) AS at FROM line;
"""
ARRIVAL = "'hit' has no timestamp, so the window is on arrival; if 'at' is its time, write WATTR at"


@pytest.fixture
def mill() -> Iterator[Mill]:
    """A connection that never starts Spark."""
    with ms.connect() as mill:
        mill.execute(PRELUDE)
        yield mill


def test_execute_warns_with_the_place_at_the_line_of_the_caller(mill: Mill) -> None:
    text = "CREATE STREAM n AS SELECT count(*) AS n FROM hit [TUMBLE 1 MINUTE]"
    with pytest.warns(ms.NoteWarning) as warned:
        mill.execute(text, "n.esl")
    assert [str(one.message) for one in warned] == [f"n.esl:1:46: {ARRIVAL}"]
    assert [one.filename for one in warned] == [__file__]


@pytest.mark.parametrize("call", ["start", "sql"])
def test_a_warning_that_is_made_an_error_comes_before_the_query(mill: Mill, call: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ms.NoteWarning)
        with pytest.raises(ms.NoteWarning) as caught:
            getattr(mill, call)("SELECT count(*) AS n FROM hit [TUMBLE 1 MINUTE]")
    assert str(caught.value) == f"<query>:1:27: {ARRIVAL}"


def test_a_script_whose_warning_is_made_an_error_changes_nothing(mill: Mill) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", ms.NoteWarning)
        with pytest.raises(ms.NoteWarning):
            mill.execute("CREATE STREAM n AS SELECT count(*) AS n FROM hit [TUMBLE 1 MINUTE]")
    assert mill.catalog.relation("n") is None


def test_warnings_are_filtered_by_the_family_of_millstream(mill: Mill) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", ms.MillstreamWarning)
        mill.execute("CREATE STREAM n AS SELECT count(*) AS n FROM hit [TUMBLE 1 MINUTE]")
    assert issubclass(ms.RejectedTuplesWarning, ms.MillstreamWarning)


def test_a_stream_that_python_has_registered_is_to_be_registered_with_its_time(mill: Mill) -> None:
    frame = pd.DataFrame({"v": [1], "at": pd.to_datetime(["2026-01-01"])})
    mill.register_stream("given", frame)
    with pytest.warns(ms.NoteWarning, match="if 'at' is its time, register the stream with order_by='at'"):
        mill.execute("CREATE STREAM n AS SELECT count(*) AS n FROM given [TUMBLE 1 MINUTE]")


@pytest.mark.spark
def test_a_query_is_warned_about_when_it_starts_and_not_again(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("1,2026-01-01 10:00:00\n")
    with ms.connect(spark) as mill:
        mill.execute(f"CREATE STREAM s (v INT, at TIMESTAMP) USING csv OPTIONS (path '{tmp_path}/s.csv')")
        with pytest.warns(ms.NoteWarning) as warned:
            query = mill.start("SELECT sum(v) AS v FROM s [TUMBLE 1 MINUTE]")
        assert len(warned) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert query.collect().to_pydict() == {"v": [1]}
