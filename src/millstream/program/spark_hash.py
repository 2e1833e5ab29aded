"""Compiled hashes of numbers: those of indexes, and Spark's own. ``spark_text_hash`` is without Numba."""

from __future__ import annotations

import numpy as np

from millstream.program.jit_registry import for_programs
from millstream.program.spark_arithmetic import bits_of


@for_programs
def hash_start(k):  # type: ignore[no-untyped-def] # pragma: no cover
    return np.int64(k) * np.int64(-7046029254386353131)


@for_programs
def hash_integer(h, value):  # type: ignore[no-untyped-def] # pragma: no cover
    mixed = (np.int64(h) ^ np.int64(value)) * np.int64(-4417276706812531889)
    return mixed ^ (mixed >> np.int64(32))


@for_programs
def hash_double(h, value):  # type: ignore[no-untyped-def] # pragma: no cover
    mixed = (np.int64(h) ^ bits_of(value)) * np.int64(-4417276706812531889)
    return mixed ^ (mixed >> np.int64(32))


# ---------------------------------------------------------------- Spark's hashes of numbers


@for_programs
def _rotated(x, by):  # type: ignore[no-untyped-def] # pragma: no cover
    return (x << np.uint64(by)) | (x >> np.uint64(64 - by))


@for_programs
def _mixed(h):  # type: ignore[no-untyped-def] # pragma: no cover
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC2B2AE3D27D4EB4F)
    h ^= h >> np.uint64(29)
    h *= np.uint64(0x165667B19E3779F9)
    h ^= h >> np.uint64(32)
    return np.int64(h)


@for_programs
def xx_int(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    h = np.uint64(np.int64(seed)) + np.uint64(0x27D4EB2F165667C5) + np.uint64(4)
    h ^= np.uint64(np.int64(value) & np.int64(0xFFFFFFFF)) * np.uint64(0x9E3779B185EBCA87)
    h = _rotated(h, 23) * np.uint64(0xC2B2AE3D27D4EB4F) + np.uint64(0x165667B19E3779F9)
    return _mixed(h)


@for_programs
def xx_long(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    h = np.uint64(np.int64(seed)) + np.uint64(0x27D4EB2F165667C5) + np.uint64(8)
    h ^= _rotated(np.uint64(np.int64(value)) * np.uint64(0xC2B2AE3D27D4EB4F), 31) * np.uint64(
        0x9E3779B185EBCA87
    )
    h = _rotated(h, 27) * np.uint64(0x9E3779B185EBCA87) + np.uint64(0x85EBCA77C2B2AE63)
    return _mixed(h)


@for_programs
def xx_double(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    return xx_long(bits_of(value), seed)


@for_programs
def _murmur_mix(h, word):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    k = (word * np.int64(0xCC9E2D51)) & mask
    k = ((k << np.int64(15)) | (k >> np.int64(17))) & mask
    k = (k * np.int64(0x1B873593)) & mask
    h = (h ^ k) & mask
    h = ((h << np.int64(13)) | (h >> np.int64(19))) & mask
    return (h * np.int64(5) + np.int64(0xE6546B64)) & mask


@for_programs
def _murmur_end(h, length):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    h ^= np.int64(length)
    h = ((h ^ (h >> np.int64(16))) * np.int64(0x85EBCA6B)) & mask
    h = ((h ^ (h >> np.int64(13))) * np.int64(0xC2B2AE35)) & mask
    h ^= h >> np.int64(16)
    return h - np.int64(0x100000000) if h >= np.int64(0x80000000) else h


@for_programs
def murmur_int(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    return _murmur_end(_murmur_mix(np.int64(seed) & mask, np.int64(value) & mask), 4)


@for_programs
def murmur_long(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    mask = np.int64(0xFFFFFFFF)
    h = _murmur_mix(np.int64(seed) & mask, np.int64(value) & mask)
    return _murmur_end(_murmur_mix(h, (np.int64(value) >> np.int64(32)) & mask), 8)


@for_programs
def murmur_double(value, seed):  # type: ignore[no-untyped-def] # pragma: no cover
    return murmur_long(bits_of(value), seed)
