"""Aggregates of the user's for patterns, in ESL and as Python would have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce

from millstream.analysis.definitions.statement_analyzer import analyse
from millstream.analysis.udas.aggregate_versions import checked_body
from millstream.catalog import Catalog
from millstream.ir.typed_nodes import Body
from millstream.syntax import parse_script
from millstream.types import BIGINT

_TEXT = """
CREATE AGGREGATE different(x BIGINT) : BIGINT {
    TABLE seen(v BIGINT);
    INITIALIZE : { INSERT INTO seen VALUES (x); }
    ITERATE    : { INSERT INTO seen VALUES (x) WHERE NOT EXISTS (SELECT 1 FROM seen WHERE v = x); }
    TERMINATE  : { INSERT INTO RETURN SELECT count(*) FROM seen; }
};
CREATE AGGREGATE turned(x BIGINT) : BIGINT {
    TABLE state(s BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (coalesce(x, 0)); INSERT INTO RETURN SELECT s FROM state; }
    ITERATE    : { UPDATE state SET s = coalesce(x, 0) - s; INSERT INTO RETURN SELECT s FROM state; }
    TERMINATE  : { }
};
CREATE WINDOW AGGREGATE ends(x BIGINT) : BIGINT {
    TABLE state(s BIGINT);
    TABLE inwindow(wx BIGINT);
    INITIALIZE : { INSERT INTO state VALUES (coalesce(x, 0)); INSERT INTO RETURN SELECT s FROM state; }
    ITERATE    : { UPDATE state SET s = s + coalesce(x, 0);
                   INSERT INTO RETURN SELECT 3 * s + coalesce(oldest().wx, 0) FROM state; }
    EXPIRE     : { UPDATE state SET s = s - coalesce(oldest().wx, 0); INSERT INTO RETURN VALUES (99); }
};
"""

Values = Sequence[int | None]


@cache
def user(name: str) -> Body:
    """Its window version, if it has one."""
    catalog = Catalog()
    for statement in parse_script(_TEXT):
        analyse(statement, catalog)
    entry = catalog.aggregate(name, window=name == "ends")
    assert entry is not None
    return checked_body(entry, [BIGINT], catalog)


def _different(values: Values) -> int:
    """Count the values that equal none before them; NULL never counts."""
    return len(set(values) - {None}) + list(values).count(None)


def _turned(values: Values) -> int:
    return reduce(lambda state, x: x - state, [value or 0 for value in values])


def _ends(values: Values) -> int:
    """Three times the sum of a window and its first value again; of one tuple just that."""
    numbers = [value or 0 for value in values]
    return 3 * sum(numbers) + numbers[0] if len(numbers) > 1 else numbers[0]


BY_DEFINITION: dict[str, Callable[[Values], int]] = {
    "different": _different,
    "turned": _turned,
    "ends": _ends,
}
