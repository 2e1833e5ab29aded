"""The identity of a query, which decides whether a checkpoint belongs to it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from millstream.masking import masked
from millstream.syntax.canonical_text import canonical_text

_BEFORE, _SHOWN = 60, 200
"""Characters of a text shown before a difference, and in total."""


@dataclass(frozen=True)
class Identity:
    """Texts of queries, for messages, and lines of JSON with everything that the results depend on.

    Only the lines are compared: the text of a query does not show the definitions of its streams and
    aggregates, and equivalent queries may be written differently.
    """

    texts: tuple[str, ...]
    lines: tuple[str, ...]

    @classmethod
    def together(cls, identities: Iterable[Identity]) -> Identity:
        """Return the identity of queries that share a scan."""
        several = list(identities)
        return cls(
            tuple(text for one in several for text in one.texts),
            tuple(line for one in several for line in one.lines),
        )

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()

    def as_data(self) -> dict[str, Any]:
        """Return the identity as JSON data without secrets."""
        return {
            "identity": self.digest,
            "queries": [masked(text) for text in self.texts],
            "plan": [masked(line) for line in self.lines],
        }


def difference(before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    """Describe the difference of two identities: in the text of a query, or else in a definition.

    >>> scan = {"queries": ["SELECT a FROM s"], "plan": ['["scan", {"slack": 2}]']}
    >>> difference(scan, {"queries": ["SELECT a FROM s"], "plan": ['["scan", {"slack": 9}]']})
    "its text is the same, but 'slack' of 'scan' was 2 and is now 9"
    >>> difference(scan, {"queries": ["select b from s"], "plan": []})
    "it was 'SELECT a FROM s' and is now 'select b from s'"
    """
    old, new = _texts(before["queries"]), _texts(now["queries"])
    for one, other in zip(old, new, strict=False):
        if canonical_text(one) != canonical_text(other):
            return f"it was '{_around(one, other)}' and is now '{_around(other, one)}'"
    if len(old) != len(new):
        return f"there were {len(old)} queries and now there are {len(new)}"
    for line, another in zip(before["plan"], now["plan"], strict=False):
        if line != another:
            (kind, *_), (path, was, is_now) = json.loads(line), _first(json.loads(line), json.loads(another))
            where = f"'{path}' of '{kind}'" if path else "an operator"
            return f"its text is the same, but {where} was {_short(was)} and is now {_short(is_now)}"
    return "its text is the same, but it has other steps"


def _texts(texts: Sequence[str]) -> list[str]:
    return [" ".join(text.split()) for text in texts]


def _around(text: str, other: str) -> str:
    """Return the part of a text around its first difference from another."""
    pairs = enumerate(zip(text, other, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(text), len(other)))
    start = 0 if len(text) <= _SHOWN else max(0, at - _BEFORE)
    end = start + _SHOWN
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _first(old: Any, new: Any, path: str = "") -> tuple[str, Any, Any]:
    """Return the path of the first difference of two values, with both values."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted({*old, *new}):
            if old.get(key) != new.get(key):
                return _first(old.get(key), new.get(key), f"{path} {key}".strip())
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for one, other in zip(old, new, strict=True):
            if one != other:
                return _first(one, other, path)
    return path, old, new


def _short(value: Any) -> str:
    text = "absent" if value is None else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
