"""What a body does to its tables, as far as the form of its statements tells."""

from __future__ import annotations

from millstream.ir import typed_nodes


def reads(part: object) -> frozenset[str]:
    """The local tables that a part of a statement looks at by queries of its own."""
    return frozenset(
        scan.table
        for scan in typed_nodes.walk(part)
        if isinstance(scan, typed_nodes.Scan) and scan.table is not None
    )


def is_single(name: str, body: typed_nodes.Body) -> bool:
    """Whether a table can have one row at most: one INSERT of one row, and that in INITIALIZE."""
    if name == typed_nodes.INWINDOW:
        return False  # the system inserts into it
    inserts = [
        (block, statement)
        for block, statements in body.blocks.items()
        for statement in statements
        if isinstance(statement, typed_nodes.Insert) and statement.table == name
    ]
    return all(block == "INITIALIZE" and _adds(s) == 1 for block, s in inserts) and len(inserts) <= 1


def is_always_there(name: str, body: typed_nodes.Body) -> bool:
    """Whether a table of one row has it from the end of INITIALIZE on."""
    if any(isinstance(s, typed_nodes.Delete) and s.scan.table == name for s in body.statements()):
        return False
    return any(
        isinstance(s, typed_nodes.Insert) and s.table == name and s.query is None and s.where is None
        for s in body.initialize
    )


def most_added(name: str | None, body: typed_nodes.Body) -> int | None:
    """How many rows a tuple can add to a table (or to RETURN); None if nobody knows.

    A tuple makes others leave, and nobody knows how many.
    """
    single = frozenset(table.name for table in body.tables if is_single(table.name, body))
    added: dict[str, int] = {}
    for block, statements in body.blocks.items():
        added[block] = 0
        for statement in statements:
            if isinstance(statement, typed_nodes.Insert) and statement.table == name:
                rows = _adds(statement, single)
                if rows is None or (block == "EXPIRE" and name is not None):
                    return None
                added[block] += rows
    return max(added["INITIALIZE"], added["ITERATE"]) + added["TERMINATE"] + added["EXPIRE"]


def returns_one_row(body: typed_nodes.Body) -> bool:
    """Whether no block returns more than one row."""
    single = frozenset(table.name for table in body.tables if is_single(table.name, body))
    return all(
        sum(rows if (rows := _adds(s, single)) is not None else 2 for s in _returning(statements)) <= 1
        for statements in body.blocks.values()
    )


def returns_growing_table(body: typed_nodes.Body) -> bool:
    """Whether all rows of a table are returned into which every tuple inserts and nothing is deleted."""
    deleted = {s.scan.table for s in body.statements() if isinstance(s, typed_nodes.Delete)}
    growing = {
        statement.table
        for statement in body.iterate
        if isinstance(statement, typed_nodes.Insert) and statement.query is None and statement.where is None
    }
    return any(
        query.limit is None
        and not (query.where or query.is_grouped or query.distinct)
        and all(scan.table in growing - deleted for scan in query.scans)
        for statement in _returning((*body.iterate, *body.terminate))
        if (query := statement.query) is not None
    )


def _returning(statements: tuple[typed_nodes.Statement, ...]) -> list[typed_nodes.Insert]:
    return [s for s in statements if isinstance(s, typed_nodes.Insert) and s.table is None]


def _adds(statement: typed_nodes.Insert, single: frozenset[str] = frozenset()) -> int | None:
    if statement.query is None:
        return len(statement.rows)
    rows = 0
    for query in (statement.query, *statement.query.united):
        few = all(scan.table in single for scan in query.scans)
        if not few and not (query.is_grouped and not query.keys):
            return None
        rows += 1
    return rows
