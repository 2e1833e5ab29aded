"""A sum and an average as classes in Python, with deltas."""

from __future__ import annotations


class Sum:
    def init(self) -> float:
        return 0.0

    def add(self, state: float, x: float) -> float:
        return state + x

    def remove(self, state: float, x: float) -> float:
        return state - x


class Average:
    def init(self) -> tuple[int, int]:
        return 0, 0

    def add(self, state: tuple[int, int], x: int) -> tuple[int, int]:
        return state[0] + x, state[1] + 1

    def remove(self, state: tuple[int, int], x: int) -> tuple[int, int]:
        return state[0] - x, state[1] - 1

    def result(self, state: tuple[int, int]) -> float:
        return state[0] / state[1]
