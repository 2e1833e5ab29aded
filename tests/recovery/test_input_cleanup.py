"""Files go when every reader has committed the batch after the one that used them, and not before."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.runtime.checkpoints.checkpoint import Checkpoint, readers_of
from millstream.runtime.checkpoints.query_identity import Identity
from millstream.runtime.queries.input_cleanup import InputCleaner
from tests.recovery.spark_files import write_batch, write_log


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    """A directory with a space in its name, which Spark encodes."""
    directory = tmp_path / "a port"
    directory.mkdir()
    for number in range(1, 7):
        (directory / f"{number}.parquet").touch()
        (directory / f".{number}.parquet.crc").touch()
    return directory


def names(directory: Path) -> str:
    assert all(path.with_name(path.name[1:-4]).exists() for path in directory.glob(".*.crc"))
    return " ".join(sorted(path.stem for path in directory.glob("*.parquet")))


def read(spark: Path, spool: Path, batches: str, *, committed: bool = True) -> None:
    """Let a query read files in batches: ``12 3`` is two of them."""
    files = {
        entry: [spool / f"{name}.parquet" for name in batch] for entry, batch in enumerate(batches.split())
    }
    for entry in files:
        write_log(spark, 0, entry, files)
        write_batch(spark, entry, [entry], commit=committed or entry < len(files) - 1)


def cleaned(spool: Path, *sparks: Path) -> str:
    cleaner = InputCleaner(every=3600)
    for spark in sparks:
        cleaner.add(spool, spark)
    cleaner.clean()
    cleaner.close()
    return names(spool)


@pytest.mark.parametrize(
    ("batches", "left"),
    [
        ("", "1 2 3 4 5 6"),
        ("1", "1 2 3 4 5 6"),
        ("12 3", "3 4 5 6"),
        ("12 3 4", "4 5 6"),
        ("1 3 2", "2 4 5 6"),
        ("1 2 3 4 5 6", "6"),
        ("123456 ", "1 2 3 4 5 6"),
    ],
)
def test_one_reader(tmp_path: Path, spool: Path, batches: str, left: str) -> None:
    read(tmp_path / "spark", spool, batches)
    assert cleaned(spool, tmp_path / "spark") == left


def test_a_batch_that_is_not_committed_keeps_its_files_and_those_before(tmp_path: Path, spool: Path) -> None:
    read(tmp_path / "spark", spool, "1 2 3", committed=False)
    assert cleaned(spool, tmp_path / "spark") == "2 3 4 5 6"


def test_the_slowest_reader_counts(tmp_path: Path, spool: Path) -> None:
    read(tmp_path / "fast", spool, "1 2 3 4 5")
    read(tmp_path / "slow", spool, "12 3")
    assert cleaned(spool, tmp_path / "fast", tmp_path / "slow") == "3 4 5 6"
    assert cleaned(spool, tmp_path / "fast", tmp_path / "not started") == "3 4 5 6"
    assert cleaned(spool, tmp_path / "fast") == "5 6"


def test_the_last_file_stays(tmp_path: Path, spool: Path) -> None:
    read(tmp_path / "spark", spool, "123456 1")
    assert cleaned(spool, tmp_path / "spark") == "6"


def test_entries_that_have_been_compacted(tmp_path: Path, spool: Path) -> None:
    spark = tmp_path / "spark"
    files = {entry: [spool / f"{entry + 1}.parquet"] for entry in range(5)}
    write_log(spark, 0, 3, files, compact=True)
    write_log(spark, 0, 4, files)
    for batch in (3, 4):
        write_batch(spark, batch, [batch])
    assert cleaned(spool, spark) == "5 6"


def test_as_it_goes_on(tmp_path: Path, spool: Path) -> None:
    cleaner = InputCleaner(every=3600)
    cleaner.add(spool, tmp_path / "spark")
    found = []
    for batches in ("1", "1 2", "1 2 3", "1 2 3 45"):
        read(tmp_path / "spark", spool, batches)
        cleaner.clean()
        found.append(names(spool))
    assert found == ["1 2 3 4 5 6", "2 3 4 5 6", "3 4 5 6", "4 5 6"]
    read(tmp_path / "spark", spool, "1 2 3 45 6")
    with cleaner.held():
        cleaner.clean()
    assert names(spool) == "4 5 6"
    cleaner.keep(spool)
    cleaner.clean()
    assert names(spool) == "4 5 6"
    cleaner.close()


def test_other_directories_are_left_alone(tmp_path: Path, spool: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    read(tmp_path / "spark", other, "1 2 3")
    assert cleaned(spool, tmp_path / "spark") == "1 2 3 4 5 6"


def test_in_a_thread(tmp_path: Path, spool: Path) -> None:
    from tests.connectors.test_port import wait_until

    read(tmp_path / "spark", spool, "1 2 3")
    cleaner = InputCleaner(every=0.01)
    cleaner.add(tmp_path / "gone", tmp_path / "spark")
    cleaner.add(spool, tmp_path / "spark")
    wait_until(lambda: len(list(spool.glob("*.parquet"))) == 4)
    cleaner.close()
    assert names(spool) == "3 4 5 6"


def test_queries_that_do_not_run_are_readers_too(tmp_path: Path) -> None:
    Checkpoint.for_queries(tmp_path, "q1").claim("q1", Identity(("SELECT a",), ("a",)), 2, [4445, 4446])
    Checkpoint.for_queries(tmp_path, "q2").claim("q2", Identity(("SELECT a",), ("a",)), 2, [4446])
    assert readers_of(tmp_path, 4445) == [tmp_path / "q1" / "spark"]
    assert sorted(readers_of(tmp_path, 4446)) == [tmp_path / "q1" / "spark", tmp_path / "q2" / "spark"]
