"""What generated source calls: numbers with Spark's rules, rows in lists, chains of a hash index, trees.

Every function is compiled for compiled programs, and is itself for the others. Where integers wrap around in
compiled code and do not in Python, there is a version for either.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from millstream.uda.program import CHANGED, FREE, GONE, NEXT_ID, SIZE, TOUCHED, WRITTEN

LEAST, MOST = -(2**63), 2**63 - 1
_TWO_63 = 9223372036854775808.0

Function = Callable[..., Any]
COMPILED: dict[str, Function] = {}
PLAIN: dict[str, Function] = {}


def _both(function: Function) -> Function:
    """Known to programs of either kind."""
    PLAIN[function.__name__] = function
    compiled: Function = njit(cache=True, inline="never")(function)
    COMPILED[function.__name__] = compiled
    return compiled


def _in_python(function: Function) -> Function:
    """The version of a function for programs that are not compiled."""
    PLAIN[function.__name__.removeprefix("plain_")] = function
    return function


# ---------------------------------------------------------------- integers


@_both
def plus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    c = a + b
    return c, ((a ^ c) & (b ^ c)) < 0


@_both
def minus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    c = a - b
    return c, ((a ^ b) & (a ^ c)) < 0


@_both
def times(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    c = a * b
    if -2147483648 <= a <= 2147483647 and -2147483648 <= b <= 2147483647:
        return c, False
    if a == 0 or b == 0:
        return c, False
    if (a == -1 and b == LEAST) or (b == -1 and a == LEAST):
        return c, True
    return c, c // b != a or c % b != 0


@_in_python
def plain_plus(a: Any, b: Any) -> tuple[int, bool]:
    return _within(int(a) + int(b))


@_in_python
def plain_minus(a: Any, b: Any) -> tuple[int, bool]:
    return _within(int(a) - int(b))


@_in_python
def plain_times(a: Any, b: Any) -> tuple[int, bool]:
    return _within(int(a) * int(b))


def _within(value: int) -> tuple[int, bool]:
    fits = LEAST <= value <= MOST
    return (value if fits else 0), not fits


@_both
def divided(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """Towards zero."""
    q = a // b
    if q < 0 and q * b != a:
        q += 1
    return q


@_both
def remainder(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """With the sign of the first."""
    r = a % b
    if r != 0 and (r < 0) != (a < 0):
        r -= b
    return r


@_both
def modulus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    """Spark's pmod: positive where the first can be made so."""
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


@_both
def rounded(a, unit):  # type: ignore[no-untyped-def] # pragma: no cover
    """To a multiple of the unit, in units; halves away from zero."""
    sign = -1 if a < 0 else 1
    b = abs(a)
    q = b // unit
    if 2 * (b - q * unit) >= unit:
        q += 1
    return sign * q


# ---------------------------------------------------------------- doubles


@_both
def whole(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """Cut off what is behind the point; True if there is no such integer."""
    if not (-_TWO_63 <= x < _TWO_63):
        return 0, True
    return int(x), False


@_both
def single(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return float(np.float32(x))


@_both
def f_equal(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return a == b or (a != a and b != b)


@_both
def f_differ(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return not (a == b or (a != a and b != b))


@_both
def f_less(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return a < b or (b != b and a == a)


@_both
def f_more(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return b < a or (a != a and b == b)


@_both
def f_at_most(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return a <= b or b != b


@_both
def f_at_least(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return b <= a or a != a


@_both
def double_remainder(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    if a != a or b != b or a in (np.inf, -np.inf):
        return np.nan
    return math.fmod(a, b)


@_both
def double_modulus(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    if a != a or b != b or a in (np.inf, -np.inf):
        return np.nan
    r = math.fmod(a, b)
    return math.fmod(r + b, b) if r < 0 else r


@_both
def f_floor(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.floor(x)


@_both
def f_ceil(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.ceil(x)


@_both
def f_isnan(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return x != x


@_both
def f_signum(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return 1.0 if x > 0 else -1.0 if x < 0 else x


@_both
def f_sqrt(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.sqrt(x) if x >= 0 else np.nan


@_both
def f_ln(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.log(x)


@_both
def f_exp(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.exp(x)


@_both
def f_expm1(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.expm1(x)


@_both
def f_pow(a, b):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.power(np.float64(a), np.float64(b))


@_both
def f_sin(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.sin(x)


@_both
def f_cos(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.cos(x)


@_both
def f_tan(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.tan(x)


@_both
def f_asin(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.arcsin(x) if -1.0 <= x <= 1.0 else np.nan


@_both
def f_acos(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.arccos(x) if -1.0 <= x <= 1.0 else np.nan


@_both
def f_atan(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.arctan(x)


@_both
def f_atan2(y, x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.arctan2(y, x)


@_both
def f_sinh(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.sinh(x)


@_both
def f_cosh(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.cosh(x)


@_both
def f_tanh(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.tanh(x)


@_both
def f_radians(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return x / 180.0 * np.pi


@_both
def f_degrees(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return x * 180.0 / np.pi


@_both
def f_cbrt(x):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.cbrt(x)


# ---------------------------------------------------------------- dates


@_both
def _civil(days):  # type: ignore[no-untyped-def] # pragma: no cover
    """Year, month and day of days since 1970: years begin in March, so that the odd day comes last."""
    shifted = days + 719468
    era = shifted // 146097
    day = shifted - era * 146097
    year = (day - day // 1460 + day // 36524 - day // 146096) // 365
    of_year = day - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    number = of_year - (153 * month + 2) // 5 + 1
    month = month + 3 if month < 10 else month - 9
    return year + era * 400 + (1 if month <= 2 else 0), month, number


_civil_in_python: Function = PLAIN["_civil"]


@_both
def year_of(days):  # type: ignore[no-untyped-def] # pragma: no cover
    return _civil(days)[0]


@_both
def month_of(days):  # type: ignore[no-untyped-def] # pragma: no cover
    return _civil(days)[1]


@_both
def day_of(days):  # type: ignore[no-untyped-def] # pragma: no cover
    return _civil(days)[2]


@_both
def day_of_year(days):  # type: ignore[no-untyped-def] # pragma: no cover
    year, month, day = _civil(days)
    leap = 1 if (year % 4 == 0 and year % 100 != 0) or year % 400 == 0 else 0
    before = (month - 1) * 31 - (0 if month <= 2 else (4 * month + 23) // 10 - leap)
    return before + day


# ---------------------------------------------------------------- hashes


@_both
def bits_of(value):  # type: ignore[no-untyped-def] # pragma: no cover
    """The bits of a double; there is one NaN and one zero."""
    if value != value:
        return np.int64(9221120237041090560)
    plain = np.float64(value + 0.0)
    return plain.view(np.int64)


@_both
def hash_start(k):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.int64(k) * np.int64(-7046029254386353131)


@_both
def hash_integer(h, value):  # type: ignore[no-untyped-def] # pragma: no cover
    mixed = (np.int64(h) ^ np.int64(value)) * np.int64(-4417276706812531889)
    return mixed ^ (mixed >> np.int64(32))


@_both
def hash_double(h, value):  # type: ignore[no-untyped-def] # pragma: no cover
    mixed = (np.int64(h) ^ bits_of(value)) * np.int64(-4417276706812531889)
    return mixed ^ (mixed >> np.int64(32))


# ---------------------------------------------------------------- arrays


@_both
def grown(array):  # type: ignore[no-untyped-def] # pragma: no cover
    larger = np.empty(2 * len(array) + 16, array.dtype)
    larger[: len(array)] = array
    return larger


# ---------------------------------------------------------------- rows of a table


@_both
def take_row(meta, following):  # type: ignore[no-untyped-def] # pragma: no cover
    row = meta[FREE]
    if row >= 0:
        meta[FREE] = following[row]
        return row
    row = meta[SIZE]
    meta[SIZE] = row + 1
    return row


@_both
def link_row(row, k, meta, ids, head, tail, count, following, previous):  # type: ignore[no-untyped-def] # pragma: no cover
    ids[row] = meta[NEXT_ID]
    meta[NEXT_ID] += 1
    last = tail[k]
    previous[row] = last
    following[row] = -1
    if last >= 0:
        following[last] = row
    else:
        head[k] = row
    tail[k] = row
    count[k] += 1


@_both
def drop_row(row, k, meta, ids, mark, gone, head, tail, count, following, previous):  # type: ignore[no-untyped-def] # pragma: no cover
    before, after = previous[row], following[row]
    if before >= 0:
        following[before] = after
    else:
        head[k] = after
    if after >= 0:
        previous[after] = before
    else:
        tail[k] = before
    count[k] -= 1
    if mark[row] & WRITTEN:
        gone[meta[GONE]] = ids[row]
        meta[GONE] += 1
    mark[row] &= CHANGED
    ids[row] = -1
    following[row] = meta[FREE]
    meta[FREE] = row


@_both
def touch_row(row, meta, mark, touched):  # type: ignore[no-untyped-def] # pragma: no cover
    if not mark[row] & CHANGED:
        mark[row] |= CHANGED
        touched[meta[TOUCHED]] = row
        meta[TOUCHED] += 1


# ---------------------------------------------------------------- chains of a hash index


@_both
def chain_add(row, code, heads, tails, after, before, hashes, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    """In the order in which rows were inserted, wherever in time this one comes."""
    bucket = code & (len(heads) - 1)
    hashes[row] = code
    last = tails[bucket]
    while last >= 0 and ids[last] > ids[row]:
        last = before[last]
    before[row] = last
    following = after[last] if last >= 0 else heads[bucket]
    after[row] = following
    if last >= 0:
        after[last] = row
    else:
        heads[bucket] = row
    if following >= 0:
        before[following] = row
    else:
        tails[bucket] = row


@_both
def chain_remove(row, heads, tails, after, before, hashes):  # type: ignore[no-untyped-def] # pragma: no cover
    bucket = hashes[row] & (len(heads) - 1)
    previous, following = before[row], after[row]
    if previous >= 0:
        after[previous] = following
    else:
        heads[bucket] = following
    if following >= 0:
        before[following] = previous
    else:
        tails[bucket] = previous


# ---------------------------------------------------------------- trees
# Treaps: ordered by value and number of the row, heaps by a hash of that number.


@_both
def _priority(number):  # type: ignore[no-untyped-def] # pragma: no cover
    mixed = np.int64(number) * np.int64(-7046029254386353131)
    return (mixed ^ (mixed >> np.int64(29))) * np.int64(-4417276706812531889)


@_both
def _is_before(a, b, values, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    x, y = values[a], values[b]
    if x < y or (y != y and x == x):
        return True
    if y < x or (x != x and y == y):
        return False
    return ids[a] < ids[b]


@_both
def _rotate_up(row, k, root, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    parent = up[row]
    grand = up[parent]
    if left[parent] == row:
        child = right[row]
        left[parent] = child
        right[row] = parent
    else:
        child = left[row]
        right[parent] = child
        left[row] = parent
    if child >= 0:
        up[child] = parent
    up[parent] = row
    up[row] = grand
    if grand < 0:
        root[k] = row
    elif left[grand] == parent:
        left[grand] = row
    else:
        right[grand] = row


@_both
def tree_first(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    while at >= 0 and left[at] >= 0:
        at = left[at]
    return at


@_both
def tree_last(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    while at >= 0 and right[at] >= 0:
        at = right[at]
    return at


@_both
def tree_following(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    if right[at] >= 0:
        at = right[at]
        while left[at] >= 0:
            at = left[at]
        return at
    while up[at] >= 0 and right[up[at]] == at:
        at = up[at]
    return up[at]


@_both
def tree_preceding(at, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    if left[at] >= 0:
        at = left[at]
        while right[at] >= 0:
            at = right[at]
        return at
    while up[at] >= 0 and left[up[at]] == at:
        at = up[at]
    return up[at]


@_both
def tree_add(row, k, values, ids, root, last, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    left[row] = right[row] = up[row] = -1
    at = root[k]
    if at < 0:
        root[k] = last[k] = row
        return
    if not _is_before(row, last[k], values, ids):
        # What rises with time is added at the end, of which there is no need to look for the place.
        at = last[k]
        last[k] = row
    while True:
        if _is_before(row, at, values, ids):
            if left[at] < 0:
                left[at] = row
                break
            at = left[at]
        else:
            if right[at] < 0:
                right[at] = row
                break
            at = right[at]
    up[row] = at
    own = _priority(ids[row])
    while up[row] >= 0 and _priority(ids[up[row]]) < own:
        _rotate_up(row, k, root, left, right, up)


@_both
def tree_remove(row, k, values, ids, root, last, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    if last[k] == row:
        last[k] = tree_preceding(row, left, right, up)
    while left[row] >= 0 or right[row] >= 0:
        one, other = left[row], right[row]
        if one >= 0 and (other < 0 or _priority(ids[one]) > _priority(ids[other])):
            _rotate_up(one, k, root, left, right, up)
        else:
            _rotate_up(other, k, root, left, right, up)
    parent = up[row]
    if parent < 0:
        root[k] = -1
    elif left[parent] == row:
        left[parent] = -1
    else:
        right[parent] = -1
    up[row] = -1


# ---------------------------------------------------------------- sorting and grouping


@_both
def sorted_rows(keys, count):  # type: ignore[no-untyped-def] # pragma: no cover
    """The order of the first rows by their keys, of which the first counts most; equal ones stay in order."""
    order = np.arange(count)
    for i in range(keys.shape[0] - 1, -1, -1):
        column = np.empty(count, np.int64)
        for j in range(count):
            column[j] = keys[i, order[j]]
        order = order[np.argsort(column, kind="mergesort")]
    return order


@_both
def grouped_rows(keys, count):  # type: ignore[no-untyped-def] # pragma: no cover
    """The group of each row, groups numbered as they first come, and the first row of each."""
    order = sorted_rows(keys, count)
    first_of = np.empty(count, np.int64)
    start = 0
    for j in range(count):
        row = order[j]
        if j > 0:
            same = True
            for i in range(keys.shape[0]):
                if keys[i, row] != keys[i, order[j - 1]]:
                    same = False
                    break
            if not same:
                start = j
        first_of[row] = order[start]
    groups = np.empty(count, np.int64)
    firsts = np.empty(count, np.int64)
    found = 0
    for row in range(count):
        if first_of[row] == row:
            firsts[found] = row
            groups[row] = found
            found += 1
        else:
            groups[row] = groups[first_of[row]]
    return groups, firsts[:found]


PLAIN["sorted_rows"] = COMPILED["sorted_rows"]
PLAIN["grouped_rows"] = COMPILED["grouped_rows"]


@_both
def order_of_double(x):  # type: ignore[no-untyped-def] # pragma: no cover
    """An integer that compares as the double does; NaN is the largest, and -0.0 equals 0.0."""
    bits = bits_of(x)
    return bits ^ np.int64(9223372036854775807) if bits < 0 else bits


# ---------------------------------------------------------------- Spark's hashes of numbers


@_both
def _rotated(x, by):  # type: ignore[no-untyped-def] # pragma: no cover
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@_both
def _mixed(h):  # type: ignore[no-untyped-def] # pragma: no cover
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0x165667B19E3779F9)
    h ^= h >> np.uint64(32)
    return np.int64(h)


@_both
def xx_int(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    h = np.uint64(np.int64(seed)) + np.uint64(0x27D4EB2F165667C5) + np.uint64(4)
    h ^= np.uint64(np.int64(value) & np.int64(0xFFFFFFFF)) * np.uint64(0x9E3779B185EBCA87)
    h = _rotated(h, 23) * np.uint64(0xC2B2AE3D27D4EB4F) + np.uint64(0x165667B19E3779F9)
    return _mixed(h)


@_both
def xx_long(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    h = np.uint64(np.int64(seed)) + np.uint64(0x27D4EB2F165667C5) + np.uint64(8)
    h ^= _rotated(np.uint64(np.int64(value)) * np.uint64(0xC2B2AE3D27D4EB4F), 31) * np.uint64(
        0x9E3779B185EBCA87
    )
    h = _rotated(h, 27) * np.uint64(0x9E3779B185EBCA87) + np.uint64(0x85EBCA77C2B2AE63)
    return _mixed(h)


@_both
def xx_double(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    return xx_long(bits_of(value), seed)


@_both
def _murmur_mix(h, word):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    k = (word * np.int64(0xCC9E2D51)) & mask
    k = ((k << np.int64(15)) | (k >> np.int64(17))) & mask
    k = (k * np.int64(0x1B873593)) & mask
    h = (h ^ k) & mask
    h = ((h << np.int64(13)) | (h >> np.int64(19))) & mask
    return (h * np.int64(5) + np.int64(0xE6546B64)) & mask


@_both
def _murmur_end(h, length):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    h ^= np.int64(length)
    h = ((h ^ (h >> np.int64(16))) * np.int64(0x85EBCA6B)) & mask
    h = ((h ^ (h >> np.int64(13))) * np.int64(0xC2B2AE35)) & mask
    h ^= h >> np.int64(16)
    return h - np.int64(0x100000000) if h >= np.int64(0x80000000) else h


@_both
def murmur_int(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    return _murmur_end(_murmur_mix(np.int64(seed) & mask, np.int64(value) & mask), 4)


@_both
def murmur_long(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    h = _murmur_mix(np.int64(seed) & mask, np.int64(value) & mask)
    return _murmur_end(_murmur_mix(h, (np.int64(value) >> np.int64(32)) & mask), 8)


@_both
def murmur_double(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    return murmur_long(bits_of(value), seed)


# ---------------------------------------------------------------- tables that are read back


@_both
def chain_rows(rows, heads, tails, after, before, hashes, ids):  # type: ignore[no-untyped-def] # pragma: no cover
    for row in rows:
        chain_add(row, hashes[row], heads, tails, after, before, hashes, ids)


@_both
def link_rows(owners, head, tail, count, following, previous):  # type: ignore[no-untyped-def] # pragma: no cover
    for row in range(len(owners)):
        k = owners[row]
        last = tail[k]
        previous[row] = last
        following[row] = -1
        if last >= 0:
            following[last] = row
        else:
            head[k] = row
        tail[k] = row
        count[k] += 1


@_both
def plant_rows(rows, owners, values, ids, root, last, left, right, up):  # type: ignore[no-untyped-def] # pragma: no cover
    for row in rows:
        tree_add(row, owners[row], values, ids, root, last, left, right, up)


@_both
def hash_owners(owners):  # type: ignore[no-untyped-def] # pragma: no cover
    codes = np.empty(len(owners), np.int64)
    for i in range(len(owners)):
        codes[i] = hash_start(owners[i])
    return codes


@_both
def hash_integers(codes, values):  # type: ignore[no-untyped-def] # pragma: no cover
    for i in range(len(codes)):
        codes[i] = hash_integer(codes[i], values[i])
    return codes


@_both
def hash_doubles(codes, values):  # type: ignore[no-untyped-def] # pragma: no cover
    for i in range(len(codes)):
        codes[i] = hash_double(codes[i], values[i])
    return codes
