"""Interpreted functions: of texts, of long decimals, conversions from and to texts."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import Any, NoReturn

from millstream.ir.value_kinds import LIMITS, WORD, kind_of
from millstream.program.failures import CONVERSION, DIVISION, MESSAGES, OVERFLOW, OutsideError
from millstream.program.spark_text_hash import murmur_text, xx_text
from millstream.types import Kind, Type

_CONTEXT = Context(prec=80, rounding=ROUND_HALF_UP)


class ValueConverter:
    """A converter between Python values and their form in a running program."""

    def __init__(self, dictionary: Callable[[Type], Any]) -> None:
        self._dictionary = dictionary

    def opened(self, value: Any, type_: Type) -> Any:
        if kind_of(type_) == WORD:
            return self._dictionary(type_)._values[int(value)]
        if type_.kind is Kind.DECIMAL:
            return Decimal(int(value)).scaleb(-type_.scale, _CONTEXT)
        if type_.kind in (Kind.DOUBLE, Kind.FLOAT):
            return float(value)
        return bool(value) if type_.kind is Kind.BOOLEAN else int(value)

    def closed(self, value: Any, type_: Type) -> Any:
        if kind_of(type_) == WORD:
            return self._dictionary(type_)._learn([value], [value])[0]
        if type_.kind is Kind.DECIMAL:
            return int(value.scaleb(type_.scale, _CONTEXT))
        return value


_ON_DECIMALS = ("+", "-", "*", "/", "%", "div", "average")


def is_known(name: str) -> bool:
    """Tell whether there is such a function."""
    return name in FUNCTIONS or name in _ON_DECIMALS or name in ("cast", "try_cast")


def interpreted_functions(calls: Sequence[Any], converter: ValueConverter) -> dict[str, Callable[..., Any]]:
    """Return the functions that a program calls, under the names by which it does."""
    return {
        f"outside{i}": _function(call.name, call.arguments, call.result, converter)
        for i, call in enumerate(calls)
        if call.content is None
    }


def _function(
    name: str, types: tuple[Type, ...], result: Type, converter: ValueConverter
) -> Callable[..., Any]:
    if name in ("cast", "try_cast"):
        inner: Callable[..., Any] = lambda value: cast(value, types[0], result)  # noqa: E731
    elif name in _ON_DECIMALS:
        inner = lambda a, b: _decimal("/" if name == "average" else name, Decimal(a), Decimal(b), result)  # noqa: E731
    else:
        inner = FUNCTIONS[name]
    gently = name == "try_cast"
    zero: Any = 0.0 if result.kind in (Kind.DOUBLE, Kind.FLOAT) else 0

    def call(*given: Any) -> tuple[Any, bool]:
        if any(given[1::2]):
            return zero, True
        opened = [converter.opened(value, type_) for value, type_ in zip(given[::2], types, strict=True)]
        try:
            value = inner(*opened)
        except OutsideError:
            if gently:
                return zero, True
            raise
        return (zero, True) if value is None else (converter.closed(value, result), False)

    return call


# ---------------------------------------------------------------- decimals


def _decimal(operator: str, a: Decimal, b: Decimal, result: Type) -> Any:
    if operator in ("/", "%", "div") and b == 0:
        raise OutsideError(MESSAGES[DIVISION])
    match operator:
        case "+":
            value = _CONTEXT.add(a, b)
        case "-":
            value = _CONTEXT.subtract(a, b)
        case "*":
            value = _CONTEXT.multiply(a, b)
        case "/":
            value = _CONTEXT.divide(a, b).quantize(Decimal(1).scaleb(-38), context=_CONTEXT)
        case "%":
            value = _CONTEXT.remainder(a, b)
        case _:
            value = _CONTEXT.divide_int(a, b)
    return _fitted(value, result)


def _fitted(value: Decimal, result: Type) -> Any:
    if result.is_integral:
        whole = int(value)
        low, high = LIMITS[result.kind]
        if not low <= whole <= high:
            raise OutsideError(MESSAGES[OVERFLOW])
        return whole
    try:
        rounded = value.quantize(Decimal(1).scaleb(-result.scale), context=_CONTEXT)
    except InvalidOperation:
        raise OutsideError(MESSAGES[OVERFLOW]) from None
    if abs(rounded.scaleb(result.scale, _CONTEXT)) >= 10**result.precision:
        raise OutsideError(MESSAGES[OVERFLOW])
    return rounded


# ---------------------------------------------------------------- conversions


def cast(value: Any, given: Type, wanted: Type) -> Any:
    """Compute CAST by Spark's ANSI rules, where texts or long decimals are involved."""
    if wanted.kind is Kind.STRING:
        return to_text(value, given)
    if given.kind is Kind.STRING:
        return from_text(value.strip(), wanted)
    if wanted.kind is Kind.DECIMAL:
        if isinstance(value, float):
            value = Decimal(repr(value))
        if not Decimal(value).is_finite():
            raise OutsideError(MESSAGES[OVERFLOW])
        return _fitted(Decimal(value), wanted)
    if wanted.kind in (Kind.DOUBLE, Kind.FLOAT):
        return float(value)
    if wanted.is_integral:
        return _fitted(Decimal(int(value)), wanted)
    if wanted.kind is Kind.BOOLEAN:
        return value != 0
    raise OutsideError(f"{given} cannot be converted to {wanted} inside an aggregate yet")


def to_text(value: Any, given: Type) -> str:
    from datetime import date, timedelta

    match given.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.DOUBLE:
            return _double_text(repr(value), value)
        case Kind.FLOAT:
            return _double_text(_single_text(value), value)
        case Kind.DECIMAL:
            return f"{value:f}"
        case Kind.DATE:
            return str(date(1970, 1, 1) + timedelta(days=value))
        case Kind.TIMESTAMP | Kind.TIMESTAMP_NTZ:
            days, rest = divmod(value, 86_400_000_000)
            seconds, micros = divmod(rest, 1_000_000)
            clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
            fraction = f".{micros:06}".rstrip("0") if micros else ""
            return f"{date(1970, 1, 1) + timedelta(days=days)} {clock}{fraction}"
        case Kind.STRING:
            return str(value)
        case _ if given.is_integral:
            return str(value)
    raise OutsideError(f"{given} cannot be converted to a string inside an aggregate yet")


def _single_text(value: float) -> str:
    """Return the shortest text that stands for a number of single precision."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if not math.isfinite(value) or struct.unpack("f", struct.pack("f", float(text)))[0] == value:
            return text
    return repr(value)


def _double_text(shortest: str, value: float) -> str:
    """Write a number as Java does: 1.0E10, 1.0E-5, NaN, Infinity."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    sign, digits, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0") or "0"
    point = len("".join(map(str, digits))) + exponent
    text = text.rstrip("0") or "0"
    minus = "-" if sign else ""
    if value == 0:
        return f"{minus}0.0"
    if 1e-3 <= abs(value) < 1e7:
        if point <= 0:
            return f"{minus}0.{'0' * -point}{text}"
        return f"{minus}{text[:point].ljust(point, '0')}.{text[point:] or '0'}"
    return f"{minus}{text[0]}.{text[1:] or '0'}E{point - 1}"


def from_text(text: str, wanted: Type) -> Any:
    try:
        if wanted.is_integral:
            if not re.fullmatch(r"[+-]?\d+", text):
                raise ValueError(text)
            return _fitted(Decimal(text), wanted)
        if wanted.kind in (Kind.DOUBLE, Kind.FLOAT):
            if not re.fullmatch(
                r"[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|NaN|Infinity|Inf)[dDfF]?", text
            ):
                raise ValueError(text)
            return float(text.rstrip("dDfF") if text[-1:] in "dDfF" and text[-3:].lower() != "inf" else text)
        if wanted.kind is Kind.DECIMAL:
            return _fitted(Decimal(text), wanted)
        if wanted.kind is Kind.BOOLEAN:
            known = {"t": True, "true": True, "y": True, "yes": True, "1": True}
            known |= {"f": False, "false": False, "n": False, "no": False, "0": False}
            return known[text.lower()]
        if wanted.kind is Kind.DATE:
            return _days(text)
        if wanted.kind in (Kind.TIMESTAMP, Kind.TIMESTAMP_NTZ):
            return _instant(text)
    except (ValueError, KeyError, InvalidOperation):
        raise OutsideError(f"{MESSAGES[CONVERSION]}: '{text}' is no {wanted}") from None
    raise OutsideError(f"a string cannot be converted to {wanted} inside an aggregate yet")


def _days(text: str) -> int:
    from datetime import date

    match = re.match(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?$", re.split(r"[ T]", text)[0])
    if match is None:
        raise ValueError(text)
    year, month, day = (int(part) if part else 1 for part in match.groups())
    return (date(year, month, day) - date(1970, 1, 1)).days


def _instant(text: str) -> int:
    day, _, clock = text.replace("T", " ").partition(" ")
    micros = _days(day) * 86_400_000_000
    if clock:
        match = re.fullmatch(
            r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)? ?(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?", clock
        )
        if match is None:
            raise ValueError(text)
        hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
        micros += ((hours * 60 + minutes) * 60 + seconds) * 1_000_000
        micros += int((match.group(4) or "0").ljust(6, "0")[:6])
        micros -= _offset(match.group(5) or "Z")
    return micros


def _offset(zone: str) -> int:
    """Return the distance of a zone from UTC in microseconds: ``Z``, ``UTC``, ``+1``, ``-03:30``."""
    match = re.fullmatch(r"([+-])(\d{1,2})(?::?(\d{2}))?", zone)
    if match is None:
        return 0
    minutes = int(match.group(2)) * 60 + int(match.group(3) or 0)
    return (minutes if match.group(1) == "+" else -minutes) * 60_000_000


# ---------------------------------------------------------------- texts


@lru_cache(maxsize=256)
def _like(pattern: str, ignore_case: bool) -> re.Pattern[str]:
    out, at = "", 0
    while at < len(pattern):
        letter = pattern[at]
        if letter == "\\" and at + 1 < len(pattern):
            at += 1
            out += re.escape(pattern[at])
        else:
            out += {"%": ".*", "_": "."}.get(letter) or re.escape(letter)
        at += 1
    return re.compile(out, re.DOTALL | (re.IGNORECASE if ignore_case else 0))


def _substring(text: str, start: int, length: int | None = None) -> str:
    """Compute substring; Spark counts from 1, and from the end for negative numbers."""
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if length is None else begin + length
    return text[max(begin, 0) : max(end, 0)]


def _part(text: str, separator: str, number: int) -> str:
    """Compute split_part: parts count from 1, or from the end if negative; beyond them is nothing."""
    if number == 0:
        raise OutsideError("split_part has no part 0")
    parts = text.split(separator) if separator else [text]
    at = number - 1 if number > 0 else len(parts) + number
    return parts[at] if 0 <= at < len(parts) else ""


def _rounded(number: Any, digits: int) -> Any:
    """Round halves away from zero; a double by its decimal text, not by its exact value."""
    if isinstance(number, float):
        if not math.isfinite(number):
            return number
        return float(_rounded(Decimal(repr(number)), digits))
    place = Decimal(1).scaleb(-digits)
    rounded = Decimal(number).quantize(place, rounding=ROUND_HALF_UP, context=_CONTEXT)
    return int(rounded) if isinstance(number, int) else rounded


def _divided(number: Decimal, divisor: Decimal) -> Decimal:
    if divisor == 0:
        raise OutsideError(MESSAGES[DIVISION])
    return _CONTEXT.divide(number, divisor)


def _scaled(micros: Decimal) -> int:
    """Return an interval in microseconds, which are whole."""
    if not micros.is_finite() or abs(micros) >= 2**63:
        raise OutsideError(MESSAGES[OVERFLOW])
    return int(micros.to_integral_value(ROUND_HALF_UP))


def _padded(text: str, length: int, filling: str, left: bool) -> str:
    if len(text) >= length or not filling:
        return text[: max(length, 0)]
    padding = (filling * length)[: length - len(text)]
    return padding + text if left else text + padding


def _raise(message: str) -> NoReturn:
    raise OutsideError(message)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "raise_error": _raise,
    "concat": lambda *parts: "".join(parts),
    "upper": str.upper,
    "lower": str.lower,
    "length": len,
    "char_length": len,
    "reverse": lambda text: text[::-1],
    "trim": lambda text, letters=" ": text.strip(letters),
    "ltrim": lambda text, letters=" ": text.lstrip(letters),
    "rtrim": lambda text, letters=" ": text.rstrip(letters),
    "initcap": lambda text: " ".join(word[:1].upper() + word[1:].lower() for word in text.split(" ")),
    "replace": lambda text, old, new="": text.replace(old, new) if old else text,
    "instr": lambda text, part: text.find(part) + 1,
    "startswith": str.startswith,
    "endswith": str.endswith,
    "contains": lambda text, part: part in text,
    "like": lambda text, pattern: _like(pattern, False).fullmatch(text) is not None,
    "ilike": lambda text, pattern: _like(pattern, True).fullmatch(text) is not None,
    "rlike": lambda text, pattern: re.search(pattern, text) is not None,
    "substring": _substring,
    "split_part": _part,
    "left": lambda text, length: text[: max(length, 0)],
    "right": lambda text, length: text[-length:] if length > 0 else "",
    "repeat": lambda text, times: text * max(times, 0),
    "lpad": lambda text, length, filling=" ": _padded(text, length, filling, True),
    "rpad": lambda text, length, filling=" ": _padded(text, length, filling, False),
    "round": _rounded,
    "floor": lambda number: number.to_integral_value(ROUND_FLOOR),
    "ceil": lambda number: number.to_integral_value(ROUND_CEILING),
    "*interval": lambda micros, factor: _scaled(Decimal(micros) * Decimal(repr(factor))),
    "/interval": lambda micros, divisor: _scaled(_divided(Decimal(micros), Decimal(repr(divisor)))),
    "ascii": lambda text: ord(text[0]) if text else 0,
    "xx_text": xx_text,
    "murmur_text": murmur_text,
}
