"""The log of a query's results: exactly once, in order, in bounded memory, read live or at the end."""

from __future__ import annotations

import errno
import math
import threading
import time
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import ExecutionError
from millstream.runtime.results import external_sort, result_log
from millstream.runtime.results.result_log import ResultLog

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

EVERYTHING_ON_DISK = 0


def rows(tables: Iterable[pa.Table]) -> list[dict[str, object]]:
    return [row for table in tables for row in table.to_pylist()]


def numbers(*values: int | None) -> pa.Table:
    return pa.table({"x": pa.array(values, pa.int64())})


def values(tables: Iterable[pa.Table]) -> list[object]:
    return [row["x"] for row in rows(tables)]


@pytest.fixture(params=[result_log.MEMORY_LIMIT, EVERYTHING_ON_DISK], ids=["memory", "disk"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> Iterable[ResultLog]:
    with ResultLog(memory_limit=request.param, directory=tmp_path) as log:
        yield log


class TestBatches:
    def test_they_are_read_in_their_order(self, log: ResultLog) -> None:
        log.append(1, numbers(3, 4))
        log.append(0, numbers(1, 2))
        log.append(2, numbers())
        log.finish()
        assert values(log.read()) == [1, 2, 3, 4]
        assert values(log.follow()) == [1, 2, 3, 4]
        assert log.rows == 4

    def test_a_repeated_batch_replaces_itself(self, log: ResultLog) -> None:
        log.append(0, numbers(1))
        log.append(1, numbers(2, 3))
        log.append(1, numbers(2, 3, 4))
        log.append(0, numbers())
        log.finish()
        assert values(log.read()) == [2, 3, 4]
        assert log.rows == 3

    def test_they_all_get_the_schema_of_the_first(self, log: ResultLog) -> None:
        log.append(0, numbers(1))
        log.append(1, pa.table({"x": pa.array([2], pa.int32())}))
        log.finish()
        assert pa.concat_tables(log.read()).schema == pa.schema({"x": pa.int64()})

    def test_no_batch_at_all(self, log: ResultLog) -> None:
        log.finish()
        assert list(log.read()) == []
        assert list(log.follow()) == []
        assert log.schema is None

    def test_columns_may_share_a_name(self, log: ResultLog) -> None:
        log.append(0, pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]))
        log.finish()
        assert [table.columns[1].to_pylist() for table in log.read()] == [[2]]


class TestOrder:
    """Streams of (t, k, x): x says where a row should end up."""

    def test_keys_sort_over_batches_and_are_hidden(self) -> None:
        log = ResultLog(keys=["t", "k"], hidden=["t"])
        log.append(0, pa.table({"t": [5, 1, 9], "k": ["a", "b", "a"], "x": [4, 1, 6]}))
        log.append(1, pa.table({"t": [1, 5, 5], "k": ["c", "a", "b"], "x": [2, 4, 5]}))
        log.finish()
        assert values(log.read()) == [1, 2, 4, 4, 5, 6]
        assert log.schema is not None
        assert log.schema.names == ["k", "x"]

    def test_a_batch_is_in_order_when_it_is_followed(self) -> None:
        log = ResultLog(keys=["x"])
        log.append(0, numbers(3, None, 1))
        log.finish()
        assert values(log.follow()) == [None, 1, 3]

    def test_null_first_and_nan_last(self) -> None:
        log = ResultLog(keys=["x"])
        log.append(0, pa.table({"x": [math.nan, 1.0, None, math.inf, -math.inf]}))
        log.append(1, pa.table({"x": [0.5, None, math.nan]}))
        log.finish()
        assert [repr(x) for x in values(log.read())] == [
            "None",
            "None",
            "-inf",
            "0.5",
            "1.0",
            "inf",
            "nan",
            "nan",
        ]

    def test_what_is_in_order_already_is_not_sorted(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(external_sort, "argsort", lambda keys: pytest.fail("sorted"))
        log = ResultLog(keys=["x"])
        log.append(0, numbers(None, 1, 2))
        log.append(1, numbers(2, 5))
        log.finish()
        assert values(log.read()) == [None, 1, 2, 2, 5]

    @pytest.mark.parametrize(
        "column",
        [
            pa.array([[2], [1], None, []], pa.list_(pa.int64())),
            pa.array([{"a": 2}, {"a": 1}, None, {"a": None}], pa.struct({"a": pa.int64()})),
            pa.array(["b", "a", None, "c"]).dictionary_encode(),
            pa.nulls(4),
        ],
        ids=str,
    )
    def test_keys_of_any_type(self, column: pa.Array) -> None:
        log = ResultLog(keys=["k"])
        log.append(0, pa.table({"k": column}))
        log.append(1, pa.table({"k": column}))
        log.finish()
        assert next(log.read()).column("k")[0].as_py() is None


KEYS = {
    "i": (pa.int64(), st.none() | st.integers(-3, 3)),
    "f": (pa.float64(), st.none() | st.sampled_from([math.nan, math.inf, -0.0, 0.0, 1.5, -2.0])),
    "s": (pa.string(), st.none() | st.sampled_from(["", "a", "B", "ä", "aa"])),
    "t": (pa.timestamp("us"), st.none() | st.integers(-2, 2)),
}


@st.composite
def batches(draw: st.DrawFn) -> list[pa.Table]:
    """Some batches of rows with keys of several types; n is the row's number."""
    tables = []
    count = 0
    for size in draw(st.lists(st.integers(0, 12), max_size=5)):
        columns = {
            name: pa.array(draw(st.lists(some, min_size=size, max_size=size)), kind)
            for name, (kind, some) in KEYS.items()
        }
        tables.append(pa.table({**columns, "n": pa.array(range(count, count + size), pa.int64())}))
        count += size
    return tables


def sql_order(row: dict[str, object], keys: list[str]) -> list[tuple[bool, bool, object]]:
    """NULL, then numbers, then NaN; Python compares the rest as SQL does."""
    order = []
    for key in keys:
        value = row[key]
        nan = isinstance(value, float) and math.isnan(value)
        order.append((value is not None, nan, 0 if value is None or nan else value))
    return order


@given(batches(), st.lists(st.sampled_from(sorted(KEYS)), unique=True), st.sampled_from([0, 20_000, 10**9]))
def test_read_is_a_stable_sort(tables: list[pa.Table], keys: list[str], memory_limit: int) -> None:
    with pytest.MonkeyPatch.context() as patch, ResultLog(keys=keys, memory_limit=memory_limit) as log:
        patch.setattr(result_log, "CHUNK_ROWS", 7)
        for number, table in enumerate(tables):
            log.append(number, table)
        log.finish()
        expected = sorted(rows(tables), key=lambda row: sql_order(row, keys))
        assert [row["n"] for row in rows(log.read())] == [row["n"] for row in expected]


class TestLive:
    def test_a_reader_waits_for_batches_and_for_the_end(self, log: ResultLog) -> None:
        seen: list[object] = []
        reader = threading.Thread(target=lambda: seen.extend(values(log.follow())))
        reader.start()
        for number in range(5):
            log.append(number, numbers(number))
            time.sleep(0.005)
        assert reader.is_alive()
        log.finish()
        reader.join(5)
        assert seen == [0, 1, 2, 3, 4]

    def test_results_come_before_the_end(self, log: ResultLog) -> None:
        log.append(0, numbers(1))
        assert next(log.follow()).to_pydict() == {"x": [1]}

    def test_a_repeated_batch_is_not_handed_out_twice(self, log: ResultLog) -> None:
        log.append(0, numbers(1))
        reader = log.follow()
        next(reader)
        log.append(0, numbers(1))
        log.append(1, numbers(2))
        assert next(reader).to_pydict() == {"x": [2]}

    def test_the_error_comes_after_the_results_before_it(self, log: ResultLog) -> None:
        log.append(0, numbers(1))
        log.finish(ExecutionError("division by zero"))
        log.finish(ExecutionError("stopped"))
        reader = log.follow()
        assert next(reader).num_rows == 1
        with pytest.raises(ExecutionError, match="division by zero"):
            next(reader)
        with pytest.raises(ExecutionError, match="division by zero"):
            next(log.read())

    def test_what_was_handed_out_can_be_forgotten(self, log: ResultLog, tmp_path: Path) -> None:
        reader = log.follow(forget=True)
        for number in range(20):
            log.append(number, numbers(number))
            next(reader)
        assert log.rows == 20
        assert list(tmp_path.rglob("*.arrow")) == []
        log.finish()
        assert list(log.read()) == []

    def test_what_was_not_handed_out_is_there_after_a_restart(self, tmp_path: Path) -> None:
        log = ResultLog(kept_in=tmp_path / "results", schema=numbers(0).schema)
        log.append(0, numbers(1))
        log.append(1, numbers(2))
        reader = log.follow(forget=True)
        assert values([next(reader)]) == [1]
        # The reader was killed before it asked for more, and may not have used the batch.
        again = ResultLog(kept_in=tmp_path / "results", done=1, schema=numbers(0).schema)
        again.finish()
        assert values(again.read()) == [1, 2]

    def test_results_are_synced_before_the_batch_counts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[str] = []
        monkeypatch.setattr("millstream.files.sync", lambda path: synced.append(path.name))
        log = ResultLog(kept_in=tmp_path / "results", schema=numbers(0).schema)
        log.append(0, numbers(1))
        assert any(".arrow" in name for name in synced)


class TestDisk:
    def test_small_batches_share_a_file(self, tmp_path: Path) -> None:
        with ResultLog(memory_limit=50_000, directory=tmp_path) as log:
            for number in range(100):
                log.append(number, numbers(number))
            log.finish()
            assert values(log.read()) == list(range(100))
            assert 1 <= len(list(tmp_path.rglob("*.arrow"))) <= 5
        assert list(tmp_path.iterdir()) == []

    def test_files_go_with_the_log(self, tmp_path: Path) -> None:
        log = ResultLog(memory_limit=0, directory=tmp_path)
        log.append(0, numbers(1))
        assert len(list(tmp_path.rglob("*.arrow"))) == 1
        del log
        assert list(tmp_path.iterdir()) == []

    def test_disk_full(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        log = ResultLog(memory_limit=2_000, directory=tmp_path)
        log.append(0, numbers(1))

        class Full:
            def __init__(self, sink: pa.NativeFile, schema: pa.Schema) -> None:
                sink.write(b"ARROW1")

            def __enter__(self) -> Full:
                return self

            def __exit__(self, *_: object) -> None: ...

            def write_batch(self, batch: pa.RecordBatch) -> None:
                raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(pa.ipc, "new_file", Full)
        with pytest.raises(ExecutionError, match="the disk is full") as caught:
            log.append(1, numbers(2))
        assert "TMPDIR" in (caught.value.hint or "")
        assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
        log.finish()
        assert values(log.read()) == [1]

    def test_a_directory_that_is_none(self, tmp_path: Path) -> None:
        log = ResultLog(memory_limit=0, directory=tmp_path / "nowhere")
        with pytest.raises(ExecutionError, match="No such file or directory"):
            log.append(0, numbers(1))


@pytest.mark.spark
def test_a_streaming_query_writes_and_a_reader_follows(spark: SparkSession, tmp_path: Path) -> None:
    """Rows of two files, a batch each, in an order that is not that of the files."""
    for number, (at, name) in enumerate([("2006-11-05 10:00:02", "c"), ("2006-11-05 10:00:01", "b")]):
        (tmp_path / f"{number}.csv").write_text(f"{at},{name}\n,{name}{name}\n")
    reader = spark.readStream.schema("t TIMESTAMP, x STRING").option("maxFilesPerTrigger", 1)
    log = ResultLog(keys=["t"], hidden=["t"], memory_limit=EVERYTHING_ON_DISK, directory=tmp_path)

    def keep(batch: DataFrame, batch_id: int) -> None:
        log.append(batch_id, batch.toArrow())

    query = reader.csv(str(tmp_path)).writeStream.foreachBatch(keep).trigger(availableNow=True).start()
    followed = log.follow()
    assert len(values([next(followed), next(followed)])) == 4
    query.awaitTermination()
    log.finish()
    assert values(followed) == []
    found = [str(value) for value in values(log.read())]
    assert (sorted(found[:2]), found[2:]) == (["bb", "cc"], ["b", "c"])
    log.close()
