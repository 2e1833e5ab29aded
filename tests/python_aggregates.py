"""Aggregates in Python, as users write them."""

from __future__ import annotations

from collections import Counter
from typing import Any


class MySum:
    """EPIC's example: with remove, a window that moves costs one call for a tuple that leaves."""

    def init(self) -> int:
        return 0

    def add(self, state: int, x: int | None) -> int:
        return state + (x or 0)

    def remove(self, state: int, x: int | None) -> int:
        return state - (x or 0)


class Words:
    """States that are merged, in order; add and merge change their arguments."""

    def init(self) -> list[Any]:
        return []

    def add(self, state: list[Any], x: int | None) -> list[Any]:
        state.append(x)
        return state

    def merge(self, a: list[Any], b: list[Any]) -> list[Any]:
        a.extend(b)
        return a

    def result(self, state: list[Any]) -> str:
        return " ".join(map(str, state))


class Range:
    """Can only add; returns a row."""

    def init(self) -> tuple[int | None, int | None]:
        return None, None

    def add(self, state: tuple[Any, Any], x: int | None) -> tuple[Any, Any]:
        if x is None:
            return state
        low, high = state
        return (x, x) if low is None else (min(low, x), max(high, x))

    def result(self, state: tuple[Any, Any]) -> dict[str, Any]:
        return {"low": state[0], "high": state[1]}


class Newest:
    """Four states: the tuples that are larger than all that came after them, as in the paper's mymax."""

    def initialize(self, ctx: Any, x: int | None) -> None:
        self.seen = 1
        ctx.ret(self.seen, x)

    def iterate(self, ctx: Any, x: int | None) -> None:
        self.seen += 1
        ctx.inwindow.delete(lambda other: other is not None and x is not None and other < x)
        ctx.tables.log.append(x)
        for row in ctx.inwindow:
            ctx.ret((self.seen, row))

    def expire(self, ctx: Any) -> None:
        self.seen -= 1
        ctx.tables.log.clear()
        ctx.ret({"n": -self.seen, "x": ctx.oldest(2)})


class Frequent:
    """Four states with a state of its own kind, and a result after the last tuple."""

    def initialize(self, ctx: Any, x: int | None) -> None:
        self.counts: Counter[int | None] = Counter()
        self.iterate(ctx, x)

    def iterate(self, ctx: Any, x: int | None) -> None:
        self.counts[x] += 1

    def expire(self, ctx: Any) -> None:
        self.counts[ctx.oldest()] -= 1

    def terminate(self, ctx: Any) -> None:
        most = max(self.counts.values())
        for x, n in sorted(self.counts.items(), key=str):
            if n == most:
                ctx.ret(n, x)


class Running:
    """Non-blocking: there is nothing to be said after the last tuple."""

    def initialize(self, ctx: Any, x: int | None) -> None:
        ctx.tables["n"] = 1
        ctx.ret(1)

    def iterate(self, ctx: Any, x: int | None) -> None:
        ctx.tables["n"] += 1
        if x is not None:
            ctx.ret(ctx.tables["n"])


def middle(values: list[int | None]) -> int | None:
    """Return the median of all values of a window, passed as one list."""
    known = sorted(value for value in values if value is not None)
    return known[len(known) // 2] if known else None


def slope(xs: list[float], ys: list[float]) -> float:
    """Return the slope of y over x from the first tuple to the last; the parameters are a list each."""
    return (ys[-1] - ys[0]) / (xs[-1] - xs[0]) if xs[-1] != xs[0] else 0.0
