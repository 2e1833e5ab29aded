"""The sum as a class in Python, with deltas."""

from __future__ import annotations


class Sum:
    def init(self) -> float:
        return 0.0

    def add(self, state: float, x: float) -> float:
        return state + x

    def remove(self, state: float, x: float) -> float:
        return state - x
