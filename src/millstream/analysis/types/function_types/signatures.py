"""Arguments against the signatures of built-in functions.

The notation is that of ``catalog/signatures.txt``, where it is explained.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

from millstream.analysis.types import coercion
from millstream.analysis.types.coercion import Widening
from millstream.catalog.functions import BuiltinFunction
from millstream.types import (
    BIGINT,
    BINARY,
    BOOLEAN,
    DATE,
    DAY_TIME_INTERVAL,
    DOUBLE,
    FLOAT,
    INT,
    NULL,
    SMALLINT,
    STRING,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    TINYINT,
    UNKNOWN,
    YEAR_MONTH_INTERVAL,
    Kind,
    Type,
    array,
    decimal,
    map_of,
)

_NAMED = {
    str(type_): type_
    for type_ in (
        *(BOOLEAN, TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE, decimal(18, 6), STRING, BINARY),
        *(DATE, TIMESTAMP, TIMESTAMP_NTZ, DAY_TIME_INTERVAL, YEAR_MONTH_INTERVAL),
    )
}

# Families of types: members, and the type that NULL takes beside them.
_FAMILIES: dict[str, tuple[Callable[[Type], bool], Type]] = {
    "any": (lambda type_: True, NULL),
    "ordered": (coercion.can_sort, NULL),
    "numeric": (lambda type_: type_.is_numeric, DOUBLE),  # and strings, which become doubles
    "number": (lambda type_: type_.is_numeric, DOUBLE),
    "integral": (lambda type_: type_.is_integral, INT),
    "interval": (lambda type_: type_.is_interval, DAY_TIME_INTERVAL),
}

_VARIABLES = {
    "T": Widening.STRINGS,
    "K": Widening.STRINGS,
    "V": Widening.STRINGS,
    "S": Widening.WIDE,
    "E": Widening.TIGHT,
}


class Mismatch(Exception):  # noqa: N818 (the caller turns it into an error with a place)
    """An argument has the wrong type; ``wanted`` says in words what it should be."""

    def __init__(self, index: int, wanted: str) -> None:
        super().__init__(index, wanted)
        self.index = index
        self.wanted = wanted


@dataclass
class Match:
    """The arguments of a call after Spark's conversions, and what the type variables stand for."""

    types: list[Type] = field(default_factory=list)
    variables: dict[str, Type] = field(default_factory=dict)

    def result(self, text: str) -> Type:
        """Return the type that a result written like this stands for."""
        if text.startswith("$"):
            return self.types[int(text[1:]) - 1]
        if text in _VARIABLES:
            return self.variables.get(text, NULL)
        head, parts = _split_generic(text)
        if head == "array":
            return array(self.result(parts[0]))
        if head == "map":
            return map_of(self.result(parts[0]), self.result(parts[1]))
        return _NAMED[text]


def match(function: BuiltinFunction, given: Sequence[Type]) -> Match:
    """Convert arguments to parameters as Spark does, or raise Mismatch for the first that does not fit."""
    result = Match()
    for index, type_ in enumerate(given):
        wanted = function.parameter(index)
        converted = _convert(wanted, type_, result.variables)
        if converted is None:
            raise Mismatch(index, _in_words(wanted, result.variables))
        result.types.append(converted)
    return result


def _convert(wanted: str, given: Type, variables: dict[str, Type]) -> Type | None:
    if not given.is_known:
        _forget(wanted, variables)
        return UNKNOWN
    options = _split(wanted, "|")
    if len(options) > 1:
        if any(_is_one(option, given) for option in options):
            return given
        converted = (_convert(option, given, variables) for option in options)
        return next((type_ for type_ in converted if type_ is not None), None)
    if wanted.endswith("!"):
        return given if given.kind in (_NAMED[wanted[:-1]].kind, Kind.NULL) else None
    if wanted in _FAMILIES:
        return _join_family(wanted, given)
    if wanted in _VARIABLES:
        common = coercion.common_type(variables.get(wanted, NULL), given, _VARIABLES[wanted])
        if common is None or (wanted == "S" and not coercion.can_sort(common)):
            return None
        variables[wanted] = common
        return given
    named = concrete(wanted)
    if named is not None:
        return named if coercion.converts(given, named) else None
    return _convert_parts(wanted, given, variables)


def _forget(wanted: str, variables: dict[str, Type]) -> None:
    """Make the type variables of a parameter unknown, as its argument is."""
    head, parts = _split_generic(wanted)
    for name in (head, *parts):
        if name in _VARIABLES:
            variables[name] = UNKNOWN


def _convert_parts(wanted: str, given: Type, variables: dict[str, Type]) -> Type | None:
    if given == NULL:
        return UNKNOWN
    head, parts = _split_generic(wanted)
    if given.kind.value != head:
        return None
    inside = [given.element] if head == "array" else [given.key, given.element]
    fits = all(
        _convert(part, type_ or UNKNOWN, variables) is not None
        for part, type_ in zip(parts, inside, strict=True)
    )
    return given if fits else None


def _join_family(name: str, given: Type) -> Type | None:
    belongs, null = _FAMILIES[name]
    if given == NULL:
        return null
    if belongs(given):
        return given
    return DOUBLE if name == "numeric" and given == STRING else None


def _is_one(option: str, given: Type) -> bool:
    if option in _FAMILIES:
        return _FAMILIES[option][0](given)
    return _split_generic(option)[0].rstrip("!") == given.kind.value


# ---------------------------------------------------------------- the notation


@cache
def concrete(text: str) -> Type | None:
    """Return the type of a text without families and variables."""
    if text in _NAMED:
        return _NAMED[text]
    head, parts = _split_generic(text)
    types = [concrete(part) for part in parts]
    if head == "array" and types[0]:
        return array(types[0])
    if head == "map" and types[0] and types[1]:
        return map_of(types[0], types[1])
    return None


@cache
def _split_generic(text: str) -> tuple[str, tuple[str, ...]]:
    head, _, inside = text.partition("<")
    return head, _split(inside[:-1], ",") if inside else ()


@cache
def _split(text: str, separator: str) -> tuple[str, ...]:
    """Return the parts of a text between separators that stand outside of < > and ( )."""
    parts, depth, start = [], 0, 0
    for position, character in enumerate(text):
        depth += (character in "<(") - (character in ">)")
        if character == separator and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    return (*parts, text[start:])


def _in_words(wanted: str, variables: dict[str, Type]) -> str:
    """Return a parameter for people.

    >>> _in_words("numeric|interval", {}), _in_words("array<T>", {}), _in_words("T", {"T": INT})
    ('numeric or interval', 'array', 'compatible with int')
    """
    if wanted in variables:
        return f"compatible with {variables[wanted]}"
    if any(name in variables for name in _split_generic(wanted)[1]):
        inner = next(variables[name] for name in _split_generic(wanted)[1] if name in variables)
        return f"{_split_generic(wanted)[0]} with elements compatible with {inner}"
    names = []
    for option in _split(wanted, "|"):
        head, parts = _split_generic(option.rstrip("!"))
        vague = all(part in _VARIABLES or part == "any" for part in parts)
        names.append({"ordered": "of a type with an order"}.get(head, head) if vague else option)
    return " or ".join(names)
