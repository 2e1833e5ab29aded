"""Windows with a name: ``WINDOW w AS (...)``, used as ``OVER w`` or ``OVER (w ROWS 9 PRECEDING)``."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.errors import did_you_mean

_PARTS = {"partition_by": "PARTITION BY", "order": "ORDER BY", "spec": "a frame"}


def with_windows(select: exp.Select) -> exp.Select:
    """Return a SELECT in which every OVER has its whole window in the place of a name."""
    if not select.args.get("windows") and not any(window.args.get("alias") for window in _windows(select)):
        return select
    select = select.copy()
    named: dict[str, exp.Window] = {}
    for definition in select.args.get("windows") or ():
        name = definition.this.name
        if name.lower() in named:
            raise error_at(definition, f"there are two windows '{name}'")
        named[name.lower()] = _whole(definition, named)
    for window in list(_windows(select)):
        _whole(window, named)
    return select


def _windows(select: exp.Select) -> Iterator[exp.Window]:
    """Yield the windows of a SELECT, not those of queries inside it."""
    for window in select.find_all(exp.Window):
        if window.find_ancestor(exp.Select) is select:
            yield window


def _whole(window: exp.Window, named: dict[str, exp.Window]) -> exp.Window:
    """Put the parts of a window in the place of its name."""
    alias = window.args.get("alias")
    if alias is None:
        return window
    name = alias.name if isinstance(alias, exp.Expr) else str(alias)
    base = named.get(name.lower())
    if base is None:
        known = [definition.this.name for definition in named.values()]
        hint = did_you_mean(name, known) or f"define it: ... WINDOW {name} AS (PARTITION BY ...)"
        raise error_at(window, f"there is no window '{name}'", hint=hint)
    for part, clause in _PARTS.items():
        given = base.args.get(part)
        if not given:
            continue
        if window.args.get(part):
            raise error_at(
                window,
                f"the window '{name}' has {clause} already",
                hint="write the whole window in OVER (...)",
            )
        window.set(part, [one.copy() for one in given] if isinstance(given, list) else given.copy())
    window.set("alias", None)
    return window
