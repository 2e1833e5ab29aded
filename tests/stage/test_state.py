"""The state of a shard is plain data: no code in it, no names of classes, and a format that is compared."""

from __future__ import annotations

import json
import random

import numpy as np
import pyarrow as pa
import pytest

from millstream.errors import ExecutionError
from millstream.progress.disorder_clauses import (
    Clause,
    Heartbeats,
    InOrder,
    OrderedPer,
    Promises,
    Punctuated,
    RowSlack,
)
from millstream.progress.piece import Piece
from millstream.progress.watermark_tracker import Tracker
from millstream.stage.blob import ENDED, Blob
from millstream.stage.input_progress import InputProgress
from millstream.stage.pipeline import Input, Pipeline
from millstream.stage.shard import FORMAT, Shard, version_of


def shard() -> Shard:
    source = Input("s", pa.schema([("a", pa.int64())]), pa.int64())
    return Shard(Pipeline((source,), (), source.columns, pa.int64()))


def written() -> bytes:
    one = shard()
    one.process(
        [Blob({"input": 0, "flush": 0, "first": True, "pieces": [], "marks": [{"kind": ENDED}]}, None, None)]
    )
    return one.snapshot().meta


def test_a_state_is_json_without_names_of_modules() -> None:
    meta = written()
    assert json.loads(meta)["format"] == FORMAT
    assert b"millstream" not in meta
    again = shard()
    again.restore(meta, {})
    assert again.snapshot().meta == meta
    assert version_of(meta) == 1


@pytest.mark.parametrize(
    ("meta", "reason"),
    [
        (json.dumps({"format": FORMAT + 1, "version": 3}).encode(), f"format {FORMAT + 1}, not {FORMAT}"),
        (b"\x80\x05K\x01.", "another format"),
        (b"[]", "another format"),
        (b"", "another format"),
    ],
)
def test_another_format_is_refused(meta: bytes, reason: str) -> None:
    for read in (version_of, lambda meta: shard().restore(meta, {})):
        with pytest.raises(ExecutionError, match=reason) as caught:
            read(meta)
        assert "start with a new directory" in str(caught.value.hint)


def test_a_missing_chunk_is_told() -> None:
    stored = json.loads(written())
    stored["chunks"] = {"0/a": 12}
    with pytest.raises(ExecutionError, match="1 of its 1 chunks are missing"):
        shard().restore(json.dumps(stored).encode(), {})


def test_no_attribute_is_forgotten() -> None:
    """A new attribute of these is a new part of the state: write it, read it, and count the format up."""
    source = shard()._pipeline.inputs[0]
    arrivals = InputProgress(source, 0)
    given = {"_input", "_base"}
    written = {"_partitions", "_ended", "_streams", "_stamp"}
    of_shards = {"_shards_heard", "_shards_reached", "_shards_spoke_last"}
    assert vars(arrivals).keys() - given == written | of_shards | {
        "rows",
        "late",
        "seen",
        "bad",
        "newest",
        "newest_stamp",
    }
    assert len(arrivals.as_data()) == len(vars(arrivals)) - len(given)
    given = {"_pipeline", "_name", "_shards"}
    assert vars(shard()).keys() - given == {
        "_arrivals", "_kernels", "_chunks", "frontier", "version",
    }  # fmt: skip


def test_keys_are_part_of_the_format_whatever_attributes_are_called() -> None:
    """Those of states that lie on disks: another key is another format, so count its number up."""
    assert json.loads(written()).keys() == {
        "format", "version", "frontier", "arrivals", "kernels", "chunks",
    }  # fmt: skip
    assert InputProgress(shard()._pipeline.inputs[0], 0).as_data().keys() == {
        "partitions", "heard", "reached", "spoke_last", "ended", "streams", "stamp",
        "rows", "late", "seen", "bad", "newest", "newest_stamp",
    }  # fmt: skip
    clauses = (InOrder(), RowSlack(3), OrderedPer(), Punctuated(), Punctuated(per=True), Heartbeats())
    tracker = Tracker(Promises(clauses), False).as_data()
    assert tracker.keys() == {"promised", "timed", "clauses"}
    assert [set(clause) for clause in tracker["clauses"]] == [
        {"promised", "newest"},
        {"promised", "ranked"},
        {"promised", "newest", "top", "tree"},
        {"promised", "ended"},
        {"promised", "seen", "ended", "tree"},
        {"promised"},
    ]


@pytest.mark.parametrize("is_float", [False, True])
@pytest.mark.parametrize(
    "clauses",
    [
        (InOrder(), Heartbeats()),
        (InOrder(5),),
        (RowSlack(3),),
        (OrderedPer(),),
        (OrderedPer(10), Heartbeats()),
        (Punctuated(),),
        (Punctuated(per=True),),
    ],
)
def test_a_tracker_goes_on_as_if_nothing_had_happened(clauses: tuple[Clause, ...], is_float: bool) -> None:
    """Two trackers agree, one of which is written down and read back after every piece."""
    chance = random.Random(7)
    promises = Promises(clauses)
    one, other = Tracker(promises, is_float), Tracker(promises, is_float)
    for number in range(12):
        count = chance.randint(0, 6)
        times = [chance.randint(0, 40) + number for _ in range(count)]
        piece = Piece(
            np.array(times, np.float64 if is_float else np.int64),
            np.array([chance.randint(0, number) for _ in range(count)], np.int64),
            np.array([chance.random() < 0.3 for _ in range(count)], np.bool_),
            np.array([chance.random() < 0.1 for _ in range(count)], np.bool_),
        )
        data = json.dumps(other.as_data(), allow_nan=False)
        other = Tracker(promises, is_float)
        other.restore(json.loads(data))
        verdicts = one.show(piece), other.show(piece)
        assert verdicts[0].late.tolist() == verdicts[1].late.tolist()
        assert verdicts[0].promised.tolist() == verdicts[1].promised.tolist()
        assert one.promised == other.promised
        assert one.of_streams(3).tolist() == other.of_streams(3).tolist()
