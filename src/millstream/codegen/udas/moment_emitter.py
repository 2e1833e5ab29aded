"""Variance, skewness, correlation and their kin as generated source: by differences from the mean."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from millstream.codegen.core.value_emitter import Value
from millstream.codegen.udas.accumulator_emitter import Scalar
from millstream.types import DOUBLE, Type


class _Moments(Scalar):
    """A count, means, and sums of powers or products of differences from them (Welford)."""

    takes_any_order = False
    parts: ClassVar[tuple[str, ...]]

    def begin(self) -> None:
        self._names = {part: self._writer.name("v") for part in self._kept}
        self._writer.lines(*(f"{name} = 0.0" for name in self._names.values()))

    @property
    def _kept(self) -> tuple[str, ...]:
        return self.parts

    def take(self, arguments: list[Value]) -> None:
        codes = {f"x{i}": argument.code for i, argument in enumerate(arguments)}
        known = [f"not {argument.null}" for argument in arguments if argument.null]
        passing = {part: self._writer.name("v") for part in ("d", "e", "f")}
        lines = [line.format(**self._names, **codes, **passing) for line in self._lines()]
        with self._writer.deeper(f"if {' and '.join(known) or 'True'}:"):
            self._writer.lines(*lines)

    @abstractmethod
    def _lines(self) -> list[str]:
        """What a value does, with ``{part}`` for names."""

    def result(self) -> Value:
        there, formula = _FORMULAS[self.aggregate.name]
        value, null = self._writer.name("v"), self._writer.name("n")
        self._writer.lines(f"{value} = 0.0", f"{null} = not ({there.format(**self._names)})")
        with self._writer.deeper(f"if not {null}:"):
            self._writer.line(f"{value} = {formula.format(**self._names)}")
        return Value(value, null)

    def state(self) -> list[tuple[Value, Type]]:
        return [(Value(name), DOUBLE) for name in self._names.values()]


class OfNumbers(_Moments):
    """Squares, and where they are asked for cubes and fourth powers."""

    parts = ("n", "m", "s", "c", "q")

    @property
    def _kept(self) -> tuple[str, ...]:
        return self.parts if self.aggregate.name in ("skewness", "kurtosis") else self.parts[:3]

    def _lines(self) -> list[str]:
        higher = [
            "{q} += {f} * {e} * {e} * ({n} * {n} - 3.0 * {n} + 3.0)",
            "{q} += 6.0 * {e} * {e} * {s} - 4.0 * {e} * {c}",
            "{c} += {f} * {e} * ({n} - 2.0) - 3.0 * {e} * {s}",
        ]
        return [
            "{n} += 1.0",
            "{d} = {x0} - {m}",
            "{e} = {d} / {n}",
            "{f} = {d} * {e} * ({n} - 1.0)",
            *(higher if "q" in self._names else ()),
            "{s} += {f}",
            "{m} += {e}",
        ]


class OfPairs(_Moments):
    """Squares of both, and products. The first of a pair is the dependent one, as in regressions."""

    parts = ("n", "m", "m1", "s", "s1", "p")

    def _lines(self) -> list[str]:
        return [
            "{n} += 1.0",
            "{d} = {x0} - {m}",
            "{m} += {d} / {n}",
            "{e} = {x1} - {m1}",
            "{m1} += {e} / {n}",
            "{s} += {d} * ({x0} - {m})",
            "{s1} += {e} * ({x1} - {m1})",
            "{p} += {d} * ({x1} - {m1})",
        ]


_FORMULAS = {
    "var_pop": ("{n} > 0.0", "{s} / {n}"),
    "var_samp": ("{n} > 1.0", "{s} / ({n} - 1.0)"),
    "stddev_pop": ("{n} > 0.0", "({s} / {n}) ** 0.5"),
    "stddev_samp": ("{n} > 1.0", "({s} / ({n} - 1.0)) ** 0.5"),
    "regr_sxx": ("{n} > 0.0", "{s}"),
    "regr_syy": ("{n} > 0.0", "{s}"),
    "skewness": ("{s} != 0.0", "{n} ** 0.5 * {c} / ({s} * {s} * {s}) ** 0.5"),
    "kurtosis": ("{s} != 0.0", "{n} * {q} / ({s} * {s}) - 3.0"),
    "covar_pop": ("{n} > 0.0", "{p} / {n}"),
    "covar_samp": ("{n} > 1.0", "{p} / ({n} - 1.0)"),
    "corr": ("{n} > 1.0 and {s} * {s1} != 0.0", "{p} / ({s} * {s1}) ** 0.5"),
    "regr_sxy": ("{n} > 0.0", "{p}"),
    "regr_slope": ("{s1} != 0.0", "{p} / {s1}"),
    "regr_intercept": ("{s1} != 0.0", "{m} - {p} / {s1} * {m1}"),
    "regr_r2": ("{s1} != 0.0", "1.0 if {s} == 0.0 else {p} * {p} / ({s} * {s1})"),
}
"""When there is a result, and what it is: by Spark's formulas."""

_PAIRED = ("covar_pop", "covar_samp", "corr", "regr_sxy", "regr_slope", "regr_intercept", "regr_r2")

MOMENTS: dict[str, type[Scalar]] = {name: OfPairs if name in _PAIRED else OfNumbers for name in _FORMULAS}
