"""Arithmetic of numbers and dates by Spark's rules, for generated source."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from millstream.program.jit_registry import for_each_constant, for_plain_programs, for_programs

LEAST, MOST = -(2**63), 2**63 - 1
_TWO_63 = 9223372036854775808.0


@for_programs
def note_failure(fail, failure, statement, row):  # type: ignore[no-untyped-def] # pragma: no cover
    fail[0] = failure
    fail[1] = statement
    fail[2] = row


# ---------------------------------------------------------------- integers


@for_programs
def plus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    c = a + b
    return c, ((a ^ c) & (b ^ c)) < 0


@for_programs
def minus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    c = a - b
    return c, ((a ^ b) & (a ^ c)) < 0


@for_each_constant
def times(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    c = a * b
    if -2147483648 <= a <= 2147483647 and -2147483648 <= b <= 2147483647:
        return c, False
    if a == 0 or b == 0:
        return c, False
    if (a == -1 and b == LEAST) or (b == -1 and a == LEAST):
        return c, True
    return c, c // b != a or c % b != 0


@for_plain_programs
def plain_plus(a: Any, b: Any) -> tuple[int, bool]:
    return _within(int(a) + int(b))


@for_plain_programs
def plain_minus(a: Any, b: Any) -> tuple[int, bool]:
    return _within(int(a) - int(b))


@for_plain_programs
def plain_times(a: Any, b: Any) -> tuple[int, bool]:
    return _within(int(a) * int(b))


def _within(value: int) -> tuple[int, bool]:
    fits = LEAST <= value <= MOST
    return (value if fits else 0), not fits


@for_each_constant
def divided(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """Divide towards zero."""
    q = a // b
    if q < 0 and q * b != a:
        q += 1
    return q


@for_each_constant
def remainder(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the remainder with the sign of the first number."""
    r = a % b
    if r != 0 and (r < 0) != (a < 0):
        r -= b
    return r


@for_each_constant
def modulus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """Compute Spark's pmod: positive where the first number can be made so."""
    r = a % b
    if r != 0 and (r < 0) != (a < 0):
        r -= b
    if r < 0:
        r += b
        m = r % b
        if m != 0 and (m < 0) != (r < 0):
            m -= b
        return m
    return r


@for_each_constant
def rounded(a, unit):  # type: ignore[no-untyped-def] # pragma: no cover
    """Round to a multiple of the unit, in units; halves away from zero."""
    sign = -1 if a < 0 else 1
    b = abs(a)
    q = b // unit
    if 2 * (b - q * unit) >= unit:
        q += 1
    return sign * q


# ---------------------------------------------------------------- doubles


@for_programs
def whole(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Truncate to an integer; return True as well if there is no such integer."""
    if not (-_TWO_63 <= x < _TWO_63):
        return 0, True
    return int(x), False


@for_programs
def single(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return float(np.float32(x))


@for_programs
def f_equal(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return a == b or (a != a and b != b)


@for_programs
def f_differ(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return not (a == b or (a != a and b != b))


@for_programs
def f_less(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return a < b or (b != b and a == a)


@for_programs
def f_more(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return b < a or (a != a and b == b)


@for_programs
def f_at_most(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return a <= b or b != b


@for_programs
def f_at_least(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return b <= a or a != a


@for_programs
def double_remainder(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    if a != a or b != b or a in (np.inf, -np.inf):
        return np.nan
    return math.fmod(a, b)


@for_programs
def double_modulus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    if a != a or b != b or a in (np.inf, -np.inf):
        return np.nan
    r = math.fmod(a, b)
    return math.fmod(r + b, b) if r < 0 else r


@for_programs
def bits_of(value):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return the bits of a double; there is one NaN and one zero."""
    if value != value:
        return np.int64(9221120237041090560)
    plain = np.float64(value + 0.0)
    return plain.view(np.int64)


@for_programs
def order_of_double(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return an integer that compares as the double does; NaN is the largest, and -0.0 equals 0.0."""
    bits = bits_of(x)
    return bits ^ np.int64(9223372036854775807) if bits < 0 else bits


# ---------------------------------------------------------------- dates


@for_programs
def _civil(days):  # type: ignore[no-untyped-def] # pragma: no cover
    """Return year, month and day of days since 1970; years begin in March, so the leap day comes last."""
    shifted = days + 719468
    era = shifted // 146097
    day = shifted - era * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    number = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, number


@for_programs
def year_of(days):  # type: ignore[no-untyped-def] # pragma: no cover
    return _civil(days)[0]


@for_programs
def month_of(days):  # type: ignore[no-untyped-def] # pragma: no cover
    return _civil(days)[1]


@for_programs
def day_of(days):  # type: ignore[no-untyped-def] # pragma: no cover
    return _civil(days)[2]


@for_programs
def day_of_year(days):  # type: ignore[no-untyped-def] # pragma: no cover
    year, month, day = _civil(days)
    leap = 1 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 0
    before = (month - 1) * 31 - (0 if month <= 2 else (4 * month + 23) // 10 - leap)
    return before + day
