"""Random choices of generators, made by Hypothesis in tests and by ``random.Random`` in long runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
BOOLEANS = (False, True)


class Chance(Protocol):
    """The part of ``random.Random`` that generators use."""

    def choice(self, seq: Sequence[T], /) -> T: ...

    def randint(self, a: int, b: int, /) -> int: ...


class Drawn:
    """Choices that Hypothesis makes, so that it can shrink them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def choice(self, seq: Sequence[T], /) -> T:
        return self._draw(st.sampled_from(seq))

    def randint(self, a: int, b: int, /) -> int:
        return self._draw(st.integers(a, b))


def drawn(generator: Callable[..., T]) -> Callable[..., st.SearchStrategy[T]]:
    """The strategy of a generator whose first argument is a :class:`Chance`."""

    @st.composite
    def strategy(draw: st.DrawFn, *arguments: Any, **named: Any) -> T:
        return generator(Drawn(draw), *arguments, **named)

    return strategy


def shuffled(chance: Chance, values: Sequence[T]) -> list[T]:
    """The values in a random order."""
    left = list(values)
    return [left.pop(chance.randint(0, len(left) - 1)) for _ in values]
