"""Unique names for the columns of a maintained result, which kernels address by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from millstream.plan import nodes


def uniquely_named(node: nodes.Node) -> nodes.Node:
    """Rename columns that have the name of an earlier one.

    No parent node refers to them, because their name is ambiguous.
    """
    node = node.map_inputs(uniquely_named)
    match node:
        case nodes.Project(outputs=outputs):
            names = _unique(output.name for output in outputs)
            renamed = [replace(one, name=name) for one, name in zip(outputs, names, strict=True)]
            return node if tuple(renamed) == outputs else replace(node, outputs=tuple(renamed))
        case nodes.WindowSetOperation(fields=fields):
            names = _unique(field.name for field in fields)
            fields_ = tuple(replace(one, name=name) for one, name in zip(fields, names, strict=True))
            return node if fields_ == fields else replace(node, fields=fields_)
        case _:
            return node


def _unique(names: Iterable[str]) -> list[str]:
    """Add a number to names that occur before, in any case of letters.

    >>> _unique(["v", "k", "V"])
    ['v', 'k', 'V 2']
    """
    taken: dict[str, int] = {}
    result = []
    for name in names:
        number = taken[name.lower()] = taken.get(name.lower(), 0) + 1
        result.append(name if number == 1 else f"{name} {number}")
    return result
