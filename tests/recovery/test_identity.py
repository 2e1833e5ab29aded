"""A checkpoint goes on with its own query only, and a refusal says what has changed and what to do."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from millstream import __version__
from millstream.errors import ExecutionError
from millstream.runtime.checkpoints.checkpoint import Checkpoint
from millstream.runtime.checkpoints.checkpoint_compatibility import FORMAT
from millstream.runtime.checkpoints.query_identity import Identity
from millstream.runtime.results.result_log import ResultLog

QUERY = "SELECT item, sum(price) AS s FROM Bid"
LINES = (
    '["project", 1, {"outputs": ["ITEM"]}]',
    '["stream", 0, {"of": {"promises": [{"us": 2}]}}]',
)


def claim(above: Path, identity: Identity) -> None:
    Checkpoint.for_queries(above, "q1").claim("q1", identity, 2)


def refused(above: Path, identity: Identity) -> str:
    with pytest.raises(ExecutionError) as caught:
        claim(above, identity)
    return f"{caught.value.message} | {caught.value.hint}"


def test_another_way_of_writing_the_same_is_accepted(tmp_path: Path) -> None:
    claim(tmp_path, Identity((QUERY,), LINES))
    claim(tmp_path, Identity((QUERY.lower() + " -- as before",), LINES))


def test_a_refusal_shows_the_query_as_it_was_and_as_it_is(tmp_path: Path) -> None:
    claim(tmp_path, Identity((QUERY,), LINES))
    said = refused(tmp_path, Identity((QUERY.replace("sum", "avg"),), ("other",)))
    assert "query 'q1' is not the one whose checkpoint is in" in said
    assert f"it was '{QUERY}' and is now 'SELECT item, avg(price) AS s FROM Bid'" in said
    assert "start with a new directory, or run the script as it was" in said
    assert f"with the version that wrote the checkpoint ({__version__})" in said


def test_of_a_long_query_the_part_is_shown_that_has_changed(tmp_path: Path) -> None:
    long = f"SELECT {', '.join(f'c{i}' for i in range(200))} FROM Bid WHERE price > 3"
    claim(tmp_path, Identity((long,), LINES))
    said = refused(tmp_path, Identity((long.replace("> 3", "> 4"),), ("other",)))
    assert "c199 FROM Bid WHERE price > 3' and is now '..." in said
    assert "c0," not in said


def test_a_refusal_because_of_a_stream_names_the_property(tmp_path: Path) -> None:
    claim(tmp_path, Identity((QUERY,), LINES))
    said = refused(tmp_path, Identity((QUERY,), (LINES[0], LINES[1].replace("2", "9"))))
    assert "its text is the same, but 'of promises us' of 'stream' was 2 and is now 9" in said


def test_another_operator_and_one_operator_more(tmp_path: Path) -> None:
    claim(tmp_path, Identity((QUERY,), LINES))
    assert "its text is the same, but" in refused(tmp_path, Identity((QUERY,), LINES[::-1]))
    assert "it has other steps" in refused(tmp_path, Identity((QUERY,), (*LINES, LINES[0])))
    assert "there were 1 queries and now there are 2" in refused(
        tmp_path, Identity((QUERY, QUERY), LINES * 2)
    )


def test_another_format_is_refused_whatever_the_query(tmp_path: Path) -> None:
    claim(tmp_path, Identity((QUERY,), LINES))
    manifest = tmp_path / "q1" / "query.json"
    manifest.write_text(
        json.dumps({**json.loads(manifest.read_text()), "format": FORMAT + 1, "version": "9.9"})
    )
    said = refused(tmp_path, Identity((QUERY,), LINES))
    assert f"has format {FORMAT + 1}, and this version of Millstream reads format {FORMAT}" in said
    assert said.endswith("start with a new directory, or run it with the version that wrote it (9.9)")


def test_the_manifest_has_no_secrets_and_no_names_of_classes(tmp_path: Path) -> None:
    claim(
        tmp_path, Identity(("SELECT f('password=abc')",), ('["table", 0, {"url": "jdbc:x;password=abc"}]',))
    )
    written = (tmp_path / "q1" / "query.json").read_text()
    assert "abc" not in written
    assert "millstream." not in written


def test_results_of_earlier_runs_have_the_names_of_the_present_one(tmp_path: Path) -> None:
    """A column without a name of its own has its text for one, which may be written differently."""
    before = pa.table({"item+1": [2], "t": [1]})
    with ResultLog(before.schema, keys=["t"], hidden=["t"], kept_in=tmp_path) as log:
        log.append(0, before)
    now = pa.table({"item + 1": [3], "t": [2]})
    with ResultLog(now.schema, keys=["t"], hidden=["t"], kept_in=tmp_path) as log:
        log.append(1, now)
        log.finish()
        assert pa.concat_tables(log.read()).to_pydict() == {"item + 1": [2, 3]}
