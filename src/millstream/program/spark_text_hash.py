"""Spark's own hashes in Python: of texts, which are those of their bytes, and of the ids of shards."""

from __future__ import annotations

from functools import lru_cache

_MASK = 2**64 - 1
_PRIMES = (
    0x9E3779B185EBCA87,
    0xC2B2AE3D27D4EB4F,
    0x165667B19E3779F9,
    0x85EBCA77C2B2AE63,
    0x27D4EB2F165667C5,
)


@lru_cache(maxsize=1 << 16)
def xx_text(text: str, seed: int) -> int:
    """Return ``xxhash64`` of one text."""
    data = text.encode()
    one, two, three, four, five = _PRIMES
    seed &= _MASK
    at = 0
    if len(data) >= 32:
        lanes = [seed + one + two, seed + two, seed, seed - one]
        while at + 32 <= len(data):
            for i in range(4):
                lanes[i] = _lane(lanes[i], int.from_bytes(data[at + 8 * i : at + 8 * i + 8], "little"))
            at += 32
        h = sum(_rotated(lane, by) for lane, by in zip(lanes, (1, 7, 12, 18), strict=True)) & _MASK
        for lane in lanes:
            h = ((h ^ _lane(0, lane)) * one + four) & _MASK
    else:
        h = (seed + five) & _MASK
    h = (h + len(data)) & _MASK
    while at + 8 <= len(data):
        h ^= _lane(0, int.from_bytes(data[at : at + 8], "little"))
        h = (_rotated(h, 27) * one + four) & _MASK
        at += 8
    if at + 4 <= len(data):
        h ^= int.from_bytes(data[at : at + 4], "little") * one & _MASK
        h = (_rotated(h, 23) * two + three) & _MASK
        at += 4
    for byte in data[at:]:
        h ^= byte * five & _MASK
        h = _rotated(h, 11) * one & _MASK
    h = (h ^ h >> 33) * two & _MASK
    h = (h ^ h >> 29) * three & _MASK
    return _signed(h ^ h >> 32, 64)


def _lane(lane: int, word: int) -> int:
    return _rotated((lane + word * _PRIMES[1]) & _MASK, 31) * _PRIMES[0] & _MASK


def _rotated(word: int, by: int, size: int = 64) -> int:
    word &= (1 << size) - 1
    return (word << by | word >> (size - by)) & ((1 << size) - 1)


def _signed(word: int, size: int) -> int:
    return word - (1 << size) if word >> (size - 1) else word


@lru_cache(maxsize=1 << 16)
def murmur_text(text: str, seed: int) -> int:
    """Return ``hash`` of one text; bytes at the end are mixed in one by one, as Spark does."""
    data = text.encode()
    whole = len(data) - len(data) % 4
    words = [int.from_bytes(data[at : at + 4], "little") for at in range(0, whole, 4)]
    words += [_signed(byte, 8) for byte in data[whole:]]
    return _murmur(words, len(data), seed)


def murmur_long(number: int, seed: int) -> int:
    """Return ``hash`` of a BIGINT."""
    return _murmur([number & 0xFFFFFFFF, number >> 32 & 0xFFFFFFFF], 8, seed)


def _murmur(words: list[int], length: int, seed: int) -> int:
    """Return Murmur3 of words of 32 bits, which stand for so many bytes."""
    mask, h = 0xFFFFFFFF, seed & 0xFFFFFFFF
    for word in words:
        k = _rotated(word * 0xCC9E2D51, 15, 32) * 0x1B873593 & mask
        h = (_rotated(h ^ k, 13, 32) * 5 + 0xE6546B64) & mask
    h ^= length
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    return _signed(h ^ h >> 16, 32)


HASHES = {"xx": xx_text, "murmur": murmur_text}
SEED = 42
"""Spark's initial seed."""
