"""Tables of a session's own: what statements do to them, and how they are kept with a checkpoint."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from millstream.catalog.entries import Stored, Table
from millstream.errors import MillstreamError
from millstream.runtime.own_tables import DIRECTORY, OwnTables
from millstream.testing import LocalEngine, Streams, table
from millstream.types import INT, Field

Row = tuple[Any, Any]
Rows = list[Row]
T = Table("t", (Field("a", INT),), Stored())


# ---------------------------------------------------------------- statements


def _drawn(chance: random.Random) -> tuple[str, Callable[[Rows], Rows]]:
    """A statement, and what it does to a list of rows: a comparison with NULL does not hold."""
    n, m = chance.randint(0, 4), chance.randint(0, 4)

    def cell() -> int | None:
        return chance.choice([None, 0, 1, 2, 3, 4])

    given = [(cell(), cell()) for _ in range(chance.randint(1, 3))]
    values = ", ".join(str(row).replace("None", "NULL") for row in given)

    def less(row: Row) -> bool:
        return row[0] is not None and row[0] < n

    def plus(x: int | None, y: int | None) -> int | None:
        return None if x is None or y is None else x + y

    kinds: list[tuple[str, Callable[[Rows], Rows]]] = [
        (f"INSERT INTO t VALUES {values}", lambda rows: rows + given),
        (f"INSERT INTO t (b) VALUES ({m})", lambda rows: [*rows, (None, m)]),
        (
            f"INSERT INTO t SELECT b, a FROM t WHERE a < {n} ORDER BY a LIMIT 2",
            lambda rows: rows + [(b, a) for a, b in sorted(filter(less, rows), key=lambda row: row[0])[:2]],
        ),
        (
            f"UPDATE t SET a = b, b = a + b WHERE a < {n}",
            lambda rows: [(b, plus(a, b)) if less((a, b)) else (a, b) for a, b in rows],
        ),
        (
            f"UPDATE t SET b = {m} WHERE a IS NULL OR a = {n}",
            lambda rows: [(a, m) if a is None or a == n else (a, b) for a, b in rows],
        ),
        (
            f"DELETE FROM t WHERE a < {n} AND b > {m}",
            lambda rows: [row for row in rows if not (less(row) and row[1] is not None and row[1] > m)],
        ),
        (f"DELETE FROM t WHERE NOT a < {n}", lambda rows: [r for r in rows if r[0] is None or less(r)]),
    ]
    return chance.choice(kinds)


@pytest.mark.parametrize("seed", range(8))
def test_sequences_of_statements(seed: int) -> None:
    chance = random.Random(seed)
    engine = LocalEngine()
    engine.execute("CREATE TABLE t (a INT, b INT)")
    rows: Rows = []
    for _ in range(12):
        text, change = _drawn(chance)
        engine.execute(text)
        rows = change(rows)
        found = [tuple(row.values()) for row in engine.table("t").to_pylist()]
        assert Counter(found) == Counter(rows), text


def test_a_query_reads_the_rows_of_its_place_in_the_script(tmp_path: Path) -> None:
    streams = Streams(LocalEngine(), tmp_path)
    streams.add("CREATE STREAM s (k INT, t INT) ORDER BY t", "k | t \n 1 | 1 \n 2 | 2")
    assert streams.run_all("""
        CREATE TABLE names (k INT, name STRING, n DECIMAL(4, 1));
        INSERT INTO names VALUES (1, 'one', 1), (2, 'two', 2.55);
        SELECT s.k, name FROM s JOIN names n ON s.k = n.k;
        DELETE FROM names WHERE k = 1;
        SELECT s.k, name FROM s JOIN names n ON s.k = n.k;
        CREATE TABLE copied AS SELECT name, n FROM names;
        CREATE OR REPLACE TABLE names (k INT);
        SELECT * FROM copied;
        SELECT * FROM names;
    """) == [
        table("k | name \n 1 | one \n 2 | two"),
        table("k | name \n 2 | two"),
        table("name | n \n two | 2.6"),
        table("k"),
    ]


def test_a_statement_that_fails_changes_nothing() -> None:
    engine = LocalEngine()
    engine.execute("CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (0)")
    with pytest.raises(MillstreamError, match="zero"):
        engine.execute("UPDATE t SET a = 1 div a")
    assert engine.table("t").to_pydict() == {"a": [1, 0]}


# ---------------------------------------------------------------- checkpoints


def _rows(*values: int) -> pa.Table:
    return pa.table({"a": pa.array(values, pa.int32())})


def _begun(directory: Path) -> OwnTables:
    tables = OwnTables(directory)
    tables.create(T, "CREATE TABLE t (a INT)")
    tables.change("t", _rows(1), "INSERT INTO t VALUES (1)")
    return tables


def test_statements_are_performed_once(tmp_path: Path) -> None:
    _begun(tmp_path)
    again = OwnTables(tmp_path)
    assert again.skips("CREATE TABLE t  (a INT)")
    assert again.skips("INSERT INTO t VALUES (1)")
    assert not again.skips("INSERT INTO t VALUES (2)")
    again.change("t", _rows(1, 2), "INSERT INTO t VALUES (2)")
    assert OwnTables(tmp_path).rows("T") == _rows(1, 2)
    assert [path.name for path in (tmp_path / DIRECTORY).glob("*.arrow")] == ["000000000003.arrow"]


def test_another_statement_than_before_is_refused(tmp_path: Path) -> None:
    _begun(tmp_path)
    again = OwnTables(tmp_path)
    assert again.skips("CREATE TABLE t (a INT)")
    with pytest.raises(MillstreamError, match="statement 2 on tables is not that of the run before"):
        again.skips("INSERT INTO t VALUES (7)")


def test_a_statement_without_a_place_runs_in_every_session(tmp_path: Path) -> None:
    _begun(tmp_path).change("t", _rows(1, 9), None)
    again = OwnTables(tmp_path)
    assert again.rows("t") == _rows(1, 9)
    assert again.skips("CREATE TABLE t (a INT)")


def test_a_kill_between_the_rows_and_the_manifest_undoes_a_statement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = _begun(tmp_path)
    monkeypatch.setattr(tables, "_commit", lambda files, text: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        tables.change("t", _rows(1, 2), "INSERT INTO t VALUES (2)")
    again = OwnTables(tmp_path)
    assert again.rows("t") == _rows(1)
    assert again.skips("CREATE TABLE t (a INT)")
    assert again.skips("INSERT INTO t VALUES (1)")
    assert not again.skips("INSERT INTO t VALUES (2)")


def test_damage_is_found(tmp_path: Path) -> None:
    _begun(tmp_path)
    directory = tmp_path / DIRECTORY
    (file,) = directory.glob("*.arrow")
    content = file.read_bytes()
    file.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
    with pytest.raises(MillstreamError, match="the rows of 't', has changed"):
        OwnTables(tmp_path)
    file.unlink()
    with pytest.raises(MillstreamError, match="the rows of 't', is missing"):
        OwnTables(tmp_path)
    file.write_bytes(content)
    assert OwnTables(tmp_path).rows("t") == _rows(1)
    manifest = directory / "tables.json"
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "format": 99}))
    with pytest.raises(MillstreamError, match="another version of Millstream"):
        OwnTables(tmp_path)
    manifest.unlink()
    with pytest.raises(MillstreamError, match=r"tables\.json is missing"):
        OwnTables(tmp_path)
