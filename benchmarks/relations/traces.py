"""TCP connections with the shape of the trace that the paper on windows and relational operators uses.

That is LBL-CONN-7, thirty days of wide-area connections of a laboratory in 1993: sessions with nine
attributes, hosts as numbers, a few protocols that make nearly all of the traffic, and sizes with long tails.
What is made here has its attributes and such a skew, and none of its content.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

SESSIONS = 782_281
SECONDS = 30 * 24 * 3600
SEED = 1993
LOCAL_HOSTS, REMOTE_HOSTS = 1_600, 13_000
SKEW = 0.9
"""The host of rank r has a share that is proportional to r to the power of minus this."""

PROTOCOLS = {
    "ftp-data": 0.31, "smtp": 0.27, "nntp": 0.13, "telnet": 0.08, "finger": 0.07, "ftp": 0.05, "login": 0.03,
    "shell": 0.02, "domain": 0.015, "X11": 0.01, "printer": 0.005, "other": 0.01,
}  # fmt: skip
AGAIN, CONVERSATIONS = 0.8, 40_000
"""What share of the sessions is of one of so many conversations: the same protocol between the same hosts."""

STATES = {"SF": 0.84, "REJ": 0.06, "S0": 0.04, "S1": 0.02, "RSTO": 0.02, "RSTR": 0.015, "SHR": 0.005}
FLAGS = {"L": 0.46, "": 0.42, "N": 0.07, "LN": 0.05}
"""Who has begun: a host of the laboratory (L), and whether the other is a neighbour (N)."""

Numbers = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


def sessions(count: int = SESSIONS, seed: int = SEED) -> pa.Table:
    """Draw connections in the order of their timestamps (seconds); durations are in milliseconds.

    The sent bytes are NULL if a connection did not end properly. Hosts are numbered at random, so that a
    number that is frequent among local hosts is as rare as any among remote ones.

    >>> sessions(3).column_names == list(SCHEMA.names)
    True
    """
    random = np.random.default_rng(seed)
    protocol, local, remote = _conversations(random, count)
    state = random.choice(len(STATES), count, p=_shares(STATES))
    unknown = state != 0
    columns = [
        pa.array(_timestamps(random, count)),
        pa.array((random.lognormal(0.6, 2.2, count) * 1000).astype(np.int64)),
        _words(protocol, PROTOCOLS),
        pa.array(random.lognormal(6.5, 2.0, count).astype(np.int64), mask=unknown),
        pa.array(random.lognormal(7.0, 2.4, count).astype(np.int64), mask=unknown),
        pa.array((local + 1).astype(np.int32)),
        pa.array((remote + 1).astype(np.int32)),
        _words(state, STATES),
        _words(random.choice(len(FLAGS), count, p=_shares(FLAGS)), FLAGS),
    ]
    return pa.table(columns, schema=SCHEMA)


def first_sessions(count: int) -> pa.Table:
    """The first of a trace that is long enough; traces of a length are made once."""
    return _long(1 << max(count - 1, 1).bit_length()).slice(0, count)


_long = functools.lru_cache(2)(sessions)


def halves(trace: pa.Table) -> tuple[pa.Table, pa.Table]:
    """TraceA and TraceB: sessions take turns."""
    numbers = np.arange(len(trace) // 2) * 2
    return trace.take(pa.array(numbers)), trace.take(pa.array(numbers + 1))


def most_frequent(trace: pa.Table, count: int) -> pa.Table:
    """The sessions of the most populated protocols."""
    chosen = list(PROTOCOLS)[:count]
    return trace.filter(pc.is_in(trace["protocol"], value_set=pa.array(chosen)))


SCHEMA = pa.schema(
    [
        ("timestamp", pa.float64()),
        ("duration", pa.int64()),
        ("protocol", pa.string()),
        ("bytes_sent", pa.int64()),
        ("bytes_received", pa.int64()),
        ("local_host", pa.int32()),
        ("remote_host", pa.int32()),
        ("state", pa.string()),
        ("flags", pa.string()),
    ]
)


def _shares(words: dict[str, float]) -> Numbers:
    shares = np.array(list(words.values()))
    return shares / shares.sum()


def _words(codes: Integers, words: dict[str, float]) -> pa.Array:
    return pa.DictionaryArray.from_arrays(codes.astype(np.int8), pa.array(list(words))).cast(pa.string())


def _conversations(random: np.random.Generator, count: int) -> tuple[Integers, Integers, Integers]:
    """Protocols and hosts of sessions: those of a conversation that goes on, or drawn for it alone."""
    again = random.random(count) < AGAIN
    which = _ranks(random, count, CONVERSATIONS)
    locals_, remotes = random.permutation(LOCAL_HOSTS), random.permutation(REMOTE_HOSTS)
    drawn = []
    for size in (CONVERSATIONS, count):
        protocol = random.choice(len(PROTOCOLS), size, p=_shares(PROTOCOLS))
        hosts = locals_[_ranks(random, size, LOCAL_HOSTS)], remotes[_ranks(random, size, REMOTE_HOSTS)]
        drawn.append((protocol, *hosts))
    protocol, local, remote = (
        np.where(again, old[which], new) for old, new in zip(drawn[0], drawn[1], strict=True)
    )
    return protocol, local, remote


def _ranks(random: np.random.Generator, count: int, of: int) -> Integers:
    """By inversion of the cumulated shares."""
    shares = np.cumsum(np.arange(1, of + 1) ** -SKEW)
    return np.searchsorted(shares, random.random(count) * shares[-1])


def _timestamps(random: np.random.Generator, count: int) -> Numbers:
    """By day there are more than by night: waits are shorter around noon."""
    waits = random.exponential(1.0, count)
    times = np.cumsum(waits)
    times *= SECONDS * (count / SESSIONS) / times[-1]
    hours = times / 3600 % 24
    waits *= 1.6 - np.sin((hours - 6) / 24 * 2 * np.pi)
    times = np.cumsum(waits)
    return np.round(times * (SECONDS * (count / SESSIONS) / times[-1]), 6)
