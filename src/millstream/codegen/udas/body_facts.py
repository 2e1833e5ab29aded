"""Facts about a body that follow from the form of its statements."""

from __future__ import annotations

from millstream.codegen.core.expression_emitter import is_supported
from millstream.ir import typed_nodes


def unsupported(body: typed_nodes.Body) -> str | None:
    """Return the reason why no program can be generated for a body, if there is one."""
    for part in typed_nodes.walk(tuple(body.statements())):
        match part:
            case typed_nodes.Call() if not is_supported(part):
                return f"the function '{part.name}' of {', '.join(str(a.type) for a in part.arguments)}"
            case typed_nodes.Query() if part.keys or any(a.distinct for a in part.aggregates):
                for aggregate in part.aggregates:
                    if aggregate.user is not None:
                        return f"'{aggregate.name}' with GROUP BY or DISTINCT"
            case typed_nodes.Aggregation(user=typed_nodes.Body() as called):
                reason = unsupported(called)
                if reason is not None:
                    return reason
    return None


def reads(part: object) -> frozenset[str]:
    """Return the local tables that a part of a statement looks at by queries of its own."""
    return frozenset(
        scan.table
        for scan in typed_nodes.walk(part)
        if isinstance(scan, typed_nodes.Scan) and scan.table is not None
    )


def is_single(name: str, body: typed_nodes.Body) -> bool:
    """Tell whether a table can have one row at most: one INSERT of one row, and that in INITIALIZE."""
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
    """Tell whether a table of one row has it from the end of INITIALIZE on."""
    if any(isinstance(s, typed_nodes.Delete) and s.scan.table == name for s in body.statements()):
        return False
    return any(
        isinstance(s, typed_nodes.Insert) and s.table == name and s.query is None and s.where is None
        for s in body.initialize
    )


def most_added(name: str | None, body: typed_nodes.Body) -> int | None:
    """Return the number of rows that a tuple can add to a table (or to RETURN); None if unbounded.

    The number of tuples that one tuple expires is unbounded.
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
    """Tell whether no block returns more than one row."""
    single = frozenset(table.name for table in body.tables if is_single(table.name, body))
    return all(
        sum(rows if (rows := _adds(s, single)) is not None else 2 for s in _returning(statements)) <= 1
        for statements in body.blocks.values()
    )


def returns_growing_table(body: typed_nodes.Body) -> bool:
    """Tell whether all rows of a table are returned into which every tuple inserts and nothing is deleted."""
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
        if any(aggregate.every for aggregate in query.aggregates):
            return None
        if not few and not (query.is_grouped and not query.keys):
            return None
        rows += 1
    return rows
