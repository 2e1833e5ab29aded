"""Result types of functions of arrays, maps and structs, and of functions that take functions."""

from __future__ import annotations

from sqlglot import exp

from millstream.analysis.types import coercion
from millstream.analysis.types.coercion import Widening
from millstream.analysis.types.function_types.function_call import Call, Rule
from millstream.types import BOOLEAN, INT, NULL, STRING, UNKNOWN, Field, Kind, Type, array, map_of, struct


def _element(call: Call) -> Type:
    return call.types[0].element or UNKNOWN


def _element_at(call: Call) -> Type:
    whole, at = call.types
    if not whole.is_known:
        return UNKNOWN
    wanted = INT if whole.kind is Kind.ARRAY else whole.key
    if wanted is None:
        call.fail(f"'{call.name}' needs an array or a map, but this is {whole}")
    common = coercion.common_type(wanted, at, Widening.TIGHT)
    if common is None or (whole.kind is Kind.ARRAY and common not in (INT, UNKNOWN)):
        call.fail(f"elements of {whole} are found by {wanted}, but this is {at}")
    return _element(call)


def _sequence(call: Call) -> Type:
    ends = call.common(call.types[:2])
    if ends.is_time and len(call.types) == 3:
        step = call.types[2]
        if step.is_known and not step.is_interval:
            call.fail(f"the step of a sequence of times must be an interval, but this is {step}")
    else:
        ends = call.common(call.types)
    if ends.is_known and not (ends.is_integral or ends.is_time):
        call.fail(f"a sequence is of whole numbers or times, not of {ends}")
    return array(ends)


def _map(call: Call) -> Type:
    if len(call.types) % 2:
        call.fail("'map' takes keys and values in turn, but the last key has no value")
    key = call.common(call.types[::2])
    if not coercion.can_sort(key):
        call.fail(f"the keys of a map cannot be of type {key}")
    return map_of(key, call.common(call.types[1::2]))


def _map_concat(call: Call) -> Type:
    for type_ in call.types:
        if type_.kind not in (Kind.MAP, Kind.UNKNOWN):
            call.fail(f"'map_concat' is for maps, not for {type_}")
    return call.common(call.types) if call.types else map_of(STRING, STRING)


def _map_entries(call: Call) -> Type:
    of = call.types[0]
    return array(struct(Field("key", of.key or UNKNOWN), Field("value", of.element or UNKNOWN)))


def struct_of(call: Call) -> Type:
    """Type ``struct(...)`` and ``(a, b)``: fields are named after columns and aliases, else col1, col2."""
    if any(argument.is_star for argument in call.arguments):
        return UNKNOWN
    named = exp.Column | exp.Alias | exp.Dot
    return struct(
        *(
            Field(argument.output_name if isinstance(argument, named) else f"col{number}", type_)
            for number, (argument, type_) in enumerate(zip(call.arguments, call.types, strict=True), 1)
        )
    )


def _named_struct(call: Call) -> Type:
    names, types = call.arguments[::2], call.types[1::2]
    if len(names) != len(types):
        call.fail("'named_struct' takes names and values in turn, but the last name has no value")
    for name in names:
        if isinstance(name, exp.Literal) and not name.is_string:
            call.fail("a name of 'named_struct' must be a string")
    if not all(isinstance(name, exp.Literal) for name in names):
        return UNKNOWN
    return struct(*(Field(name.name, type_) for name, type_ in zip(names, types, strict=True)))


# ---------------------------------------------------------------- functions of functions


def _transform(call: Call) -> Type:
    return array(call.lambda_type(call.arguments[1], (_element(call), INT)))


def _filter(call: Call) -> Type:
    _test_elements(call)
    return call.types[0]


def _test_elements(call: Call) -> Type:
    result = call.lambda_type(call.arguments[1], (_element(call), INT))
    if not coercion.converts(result, BOOLEAN) or result == STRING:
        call.fail(f"the function given to '{call.name}' must return a boolean, but returns {result}")
    return BOOLEAN


def _reduce(call: Call) -> Type:
    start = call.types[1]
    merged = call.lambda_type(call.arguments[2], (start, _element(call)))
    if not coercion.same_shape(start, merged) and start != NULL:
        call.fail(
            f"the function given to '{call.name}' must return {start}, but returns {merged}",
            hint=f"CAST the value to start with to {merged}",
        )
    return call.lambda_type(call.arguments[3], (start,)) if len(call.arguments) == 4 else start


RULES: dict[str, Rule] = {
    "element": _element,
    "element_at": _element_at,
    "sequence": _sequence,
    "map": _map,
    "map_concat": _map_concat,
    "map_entries": _map_entries,
    "struct": struct_of,
    "named_struct": _named_struct,
    "transform": _transform,
    "filter": _filter,
    "test_elements": _test_elements,
    "reduce": _reduce,
}
