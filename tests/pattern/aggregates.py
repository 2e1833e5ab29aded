"""Aggregates of the user's for patterns, in ESL and as Python would have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, reduce

from millstream.analysis.bodies import checked_body
from millstream.analysis.statements import analyse
from millstream.catalog import Catalog
from millstream.syntax import parse_script
from millstream.types import BIGINT
from millstream.uda.checked import Body

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
"""

Values = Sequence[int | None]


@cache
def user(name: str) -> Body:
    catalog = Catalog()
    for statement in parse_script(_TEXT):
        analyse(statement, catalog)
    entry = catalog.aggregate(name, window=False)
    assert entry is not None
    return checked_body(entry, [BIGINT], catalog)


def _different(values: Values) -> int:
    """What is not equal to what was there before; NULL never is."""
    return len(set(values) - {None}) + list(values).count(None)


def _turned(values: Values) -> int:
    return reduce(lambda state, x: x - state, [value or 0 for value in values])


BY_DEFINITION: dict[str, Callable[[Values], int]] = {"different": _different, "turned": _turned}
