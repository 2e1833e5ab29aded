"""Checkpoints that are torn, empty, incomplete or foreign: mended where that is safe, else refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from millstream.errors import ExecutionError
from millstream.runtime.checkpoints.checkpoint import Checkpoint
from millstream.runtime.checkpoints.checkpoint_compatibility import FORMAT
from millstream.runtime.checkpoints.query_identity import Identity
from millstream.runtime.checkpoints.spark_checkpoint import SparkCheckpoint
from millstream.runtime.results.materialized_result import MaterializedResult
from millstream.runtime.results.result_log import ResultLog
from tests.recovery.spark_files import write_batch, write_log

Damage = Callable[[Path], object]


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """Checkpoint of a query that committed batches 1 and 2, began batch 3, and read two sources of files."""
    claimed(tmp_path)
    spark = tmp_path / "q1" / "spark"
    control = {entry: [tmp_path / "control" / f"{entry}.txt"] for entry in range(2)}
    data = {entry: [tmp_path / f"{entry}.csv"] for entry in range(12)}
    for entry in control:
        write_log(spark, 0, entry, control)
    write_log(spark, 1, 9, data, compact=True)
    for entry in (10, 11):
        write_log(spark, 1, entry, data)
    for batch, positions in {1: [None, 9], 2: [0, 10], 3: [1, 11]}.items():
        write_batch(spark, batch, positions, commit=batch < 3)
    return tmp_path / "q1"


def claimed(above: Path, query: str = "SELECT a FROM s") -> Checkpoint:
    checkpoint = Checkpoint.for_queries(above, "q1")
    checkpoint.claim("q1", Identity((query,), (query,)), 2)
    return checkpoint


def refused(above: Path) -> str:
    """The message and the remedy."""
    with pytest.raises(ExecutionError) as caught:
        claimed(above)
    assert caught.value.hint
    return f"{caught.value.message} | {caught.value.hint}"


def test_a_whole_one_is_accepted(checkpoint: Path) -> None:
    assert claimed(checkpoint.parent).done == 2


def test_a_source_that_is_read_twice_has_two_offsets(checkpoint: Path) -> None:
    """So a self join was refused when it was to go on, as if a source were missing."""
    write_batch(checkpoint / "spark", 3, [None, None, 11, 11], commit=False)
    assert claimed(checkpoint.parent).done == 2
    positions = SparkCheckpoint(checkpoint / "spark").positions
    assert positions(3) == {}, "nothing is removed as long as a source may not have been read"
    write_batch(checkpoint / "spark", 3, [1, 1, 11, 11], commit=False)
    assert positions(3) == {0: 1, 1: 1}


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("[]", "query.json has no format number"),
        ("{}", "query.json has no format number"),
        ("", "query.json is not JSON"),
        ("\udcff", "query.json is not JSON"),
        (json.dumps({"format": FORMAT}), "query.json is incomplete"),
        (json.dumps({"format": FORMAT, "shards": 2}), "query.json is incomplete"),
        (json.dumps({"format": 4}), f"has format 4, and this version of Millstream reads format {FORMAT}"),
        (json.dumps({"format": "x"}), "has format x"),
    ],
)
def test_manifests(checkpoint: Path, manifest: str, reason: str) -> None:
    (checkpoint / "query.json").write_bytes(manifest.encode(errors="surrogateescape"))
    said = refused(checkpoint.parent)
    assert reason in said
    assert "start" in said


def test_without_its_manifest_the_state_is_given_to_no_query(checkpoint: Path) -> None:
    (checkpoint / "query.json").unlink()
    for _ in range(2):
        assert "query.json is missing, which identifies the query | put it back" in refused(checkpoint.parent)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda q: shutil.rmtree(q / "spark/offsets"), "the files in spark/offsets are missing"),
        (lambda q: (q / "spark/offsets/3").unlink(), None),
        (lambda q: [(q / f"spark/offsets/{n}").unlink() for n in (2, 3)], "spark/offsets/2 is missing"),
        (lambda q: (q / "spark/offsets/2").unlink(), "spark/offsets/2 is missing"),
        (lambda q: (q / "spark/offsets/3").write_text(""), "spark/offsets/3 is incomplete"),
        (lambda q: (q / "spark/offsets/3").write_text("v1\n{}\n{"), "spark/offsets/3 is incomplete"),
        (lambda q: shutil.rmtree(q / "spark/sources"), "entry 11 of a log in spark/sources is missing"),
        (lambda q: (q / "spark/sources/1/11").unlink(), "spark/sources/1/11 is missing"),
        (lambda q: (q / "spark/sources/1/10").unlink(), "spark/sources/1/10 is missing"),
        (lambda q: (q / "spark/sources/1/9.compact").unlink(), "spark/sources/1/0 is missing"),
        (
            lambda q: (q / "spark/sources/1/9.compact").write_text("v1\n{"),
            "spark/sources/1/9.compact is incomplete",
        ),
        (
            lambda q: [shutil.rmtree(q / f"spark/{name}") for name in ("offsets", "commits")],
            "the files in spark/offsets are missing",
        ),
        (lambda q: shutil.rmtree(q / "spark/commits"), None),
        (lambda q: (q / "spark/commits/2").write_text(""), None),
    ],
)
def test_files_of_spark(checkpoint: Path, damage: Damage, reason: str | None) -> None:
    damage(checkpoint)
    if reason is None:
        assert claimed(checkpoint.parent).done == 2
    else:
        assert f"is damaged: {reason} | put back a copy" in refused(checkpoint.parent)


def test_a_torn_commit_is_mended(checkpoint: Path) -> None:
    (checkpoint / "spark/commits/2").write_text("v1\n")
    (checkpoint / "spark/offsets/3").unlink()
    claimed(checkpoint.parent)
    assert not (checkpoint / "spark/commits/2").exists()
    assert claimed(checkpoint.parent).done == 1


def test_a_query_that_had_begun_nothing(tmp_path: Path) -> None:
    claimed(tmp_path)
    write_log(tmp_path / "q1/spark", 0, 0, {0: [tmp_path / "a"]})
    assert claimed(tmp_path).done == -1


# -------------------------------------------------------------------- results


def log(directory: Path, done: int | None) -> ResultLog:
    return ResultLog(keys=["t"], kept_in=directory / "results", done=done)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """Results of batches 0, 1 and 3, of which Spark has not committed the last."""
    written = log(tmp_path, -1)
    for batch in (0, 1, 3):
        written.append(batch, pa.table({"t": [batch]}))
    return tmp_path


def kept(directory: Path, done: int) -> list[int]:
    with_results = log(directory, done)
    with_results.finish()
    return [t for table in with_results.read() for t in table.column("t").to_pylist()]


def test_results_are_there_again(results: Path) -> None:
    assert kept(results, 2) == [0, 1, 3]


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (shutil.rmtree, "the directory is gone, with the results of batches up to 2"),
        (lambda d: [path.unlink() for path in d.iterdir()], "ledger.json is missing"),
        (lambda d: (d / "ledger.json").unlink(), "ledger.json is missing"),
        (lambda d: (d / "ledger.json").write_text("[]"), "ledger.json is missing or cannot be read"),
        (lambda d: (d / "000000000001.arrow").unlink(), "1 of 3 files are missing"),
        (lambda d: (d / "000000000001.arrow").write_bytes(b""), "000000000001.arrow is incomplete"),
        (
            lambda d: (d / "000000000001.arrow").write_bytes(b"ARROW1\0\0" * 20),
            "000000000001.arrow is incomplete",
        ),
        (lambda d: (d / "mine.arrow").write_bytes(b""), "mine.arrow is not a checkpoint file"),
    ],
)
def test_damaged_results_are_refused(results: Path, damage: Damage, reason: str) -> None:
    damage(results / "results")
    for _ in range(2):
        with pytest.raises(ExecutionError, match=reason) as caught:
            log(results, 2)
        assert caught.value.hint


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"ARROW1\0\0" * 20])
def test_a_torn_batch_that_is_run_again_is_removed(results: Path, content: bytes) -> None:
    (results / "results/000000000003.arrow").write_bytes(content)
    assert kept(results, 2) == [0, 1]
    again = log(results, 2)
    again.append(3, pa.table({"t": [3]}))
    assert kept(results, 3) == [0, 1, 3]


def test_results_beyond_the_checkpoint_of_spark(results: Path) -> None:
    with pytest.raises(ExecutionError, match="there is batch 1, but Spark's checkpoint ends at -1"):
        log(results, -1)


def test_results_that_were_handed_out_are_not_missed(results: Path) -> None:
    following = log(results, 2)
    handed = following.follow(forget=True)
    assert [next(handed).column("t")[0].as_py() for _ in range(3)] == [0, 1, 3]
    following.finish()
    assert list(handed) == []
    assert kept(results, 3) == []


def test_an_unfinished_file_is_none(results: Path) -> None:
    (results / "results/.000000000004.arrow.unfinished").write_bytes(b"ARROW1")
    assert kept(results, 3) == [0, 1, 3]


SCHEMA = pa.schema([("x", "string"), ("t", "int64"), ("op", "int8"), ("i", "int64"), ("j", "int64")])


def test_the_current_result_is_guarded_too(tmp_path: Path) -> None:
    def opened(done: int) -> MaterializedResult:
        return MaterializedResult(SCHEMA, ["t"], ("op", "i", "j"), kept_in=tmp_path / "current", done=done)

    written = opened(-1)
    for batch in range(2):
        row = {"x": ["a"], "t": [batch], "op": [1], "i": [batch], "j": [0]}
        written.apply(batch, pa.table(row, SCHEMA))
    assert opened(1).rows == 2
    (tmp_path / "current/000000000001.changes.arrow").write_bytes(b"")
    assert opened(0).rows == 1
    (tmp_path / "current/000000000000.changes.arrow").unlink()
    with pytest.raises(ExecutionError, match="1 of 1 files are missing"):
        opened(0)
