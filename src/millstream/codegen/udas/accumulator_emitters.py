"""Built-in aggregates of queries in bodies, as generated source: begin, add a row, result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar

from millstream.catalog.builtin_aggregates import Family, accumulator_functions, accumulator_row
from millstream.codegen.core.expression_emitter import ExpressionEmitter
from millstream.codegen.core.value_emitter import KnownValue, Value
from millstream.codegen.udas.body_facts import returns_one_row
from millstream.ir import typed_nodes
from millstream.ir.value_kinds import INTEGER, kind_of, zero
from millstream.program.failures import ROWS
from millstream.types import BIGINT, BOOLEAN, DOUBLE, Kind, Type

if TYPE_CHECKING:
    from collections.abc import Callable

    from millstream.codegen.udas.body_emitter import BodyEmitter


_SHAPES = accumulator_functions(Family.SHAPE)


class Accumulator(ABC):
    """One aggregate over the rows of a loop."""

    takes_any_order = True

    def __init__(self, aggregate: typed_nodes.Aggregation, body: BodyEmitter) -> None:
        self.aggregate, self._body, self._writer = aggregate, body, body.writer
        self.expressions = ExpressionEmitter(body)

    @abstractmethod
    def begin(self) -> None: ...

    def add(self) -> None:
        """Write what a row does; a row that the FILTER does not want does nothing."""
        if self.aggregate.filter is not None:
            with self._writer.deeper(f"if {self.expressions.truth(self.aggregate.filter)}:"):
                self.take(
                    [self.expressions.kept(self.expressions.value(a)) for a in self.aggregate.arguments]
                )
        else:
            self.take([self.expressions.kept(self.expressions.value(a)) for a in self.aggregate.arguments])

    @abstractmethod
    def take(self, arguments: list[Value]) -> None: ...

    @abstractmethod
    def result(self) -> Value: ...


class Scalar(Accumulator):
    """Accumulator whose state is a few variables."""

    @abstractmethod
    def state(self) -> list[tuple[Value, Type]]:
        """Return the variables with their types; with their values an accumulator can continue later."""


class Count(Scalar):
    def begin(self) -> None:
        self._name = self._writer.name("v")
        self._writer.line(f"{self._name} = 0")

    def take(self, arguments: list[Value]) -> None:
        nulls = [f"not {a.null}" for a in arguments if a.null]
        if nulls:
            with self._writer.deeper(f"if {' and '.join(nulls)}:"):
                self._writer.line(f"{self._name} += 1")
        else:
            self._writer.line(f"{self._name} += 1")

    def result(self) -> Value:
        return Value(self._name)

    def state(self) -> list[tuple[Value, Type]]:
        return [(Value(self._name), BIGINT)]


class Sum(Scalar):
    """NULL until there is a value."""

    def __init__(self, aggregate: typed_nodes.Aggregation, body: BodyEmitter) -> None:
        super().__init__(aggregate, body)
        self._type = aggregate.type
        self.takes_any_order = kind_of(self._type) == INTEGER

    def begin(self) -> None:
        self._name, self._null = self._writer.name("v"), self._writer.name("n")
        self._writer.lines(f"{self._name} = {zero(kind_of(self._type))}", f"{self._null} = True")

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        if value.null:
            with self._writer.deeper(f"if not {value.null}:"):
                self._take(value.code)
        else:
            self._take(value.code)

    def _take(self, code: str) -> None:
        with self._writer.deeper(f"if {self._null}:"):
            self._writer.lines(f"{self._name} = {code}", f"{self._null} = False")
        with self._writer.deeper("else:"):
            so_far, more = (KnownValue(Value(c), self._type) for c in (self._name, code))
            total = self.expressions.value(typed_nodes.Call("+", (so_far, more), self._type))  # type: ignore[arg-type]
            self._writer.line(f"{self._name} = {total.code}")

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [(self.result(), self._type)]


class Average(Scalar):
    takes_any_order = False

    def begin(self) -> None:
        given = self.aggregate.arguments[0].type
        decimal = given.kind is Kind.DECIMAL
        self._sum_type = Type(Kind.DECIMAL, min(given.precision + 10, 38), given.scale) if decimal else DOUBLE
        argument = self.aggregate.arguments[0]
        inner = typed_nodes.Aggregation("sum", (typed_nodes.Cast(argument, self._sum_type),), self._sum_type)
        self._sum = Sum(inner, self._body)
        self._count = Count(typed_nodes.Aggregation("count", (argument,), BIGINT), self._body)
        self._sum.begin()
        self._count.begin()

    def take(self, arguments: list[Value]) -> None:
        given = KnownValue(arguments[0], self.aggregate.arguments[0].type)
        self._sum.take([self.expressions.kept(self.expressions.value(_as(given, self._sum_type)))])
        self._count.take(arguments)

    def result(self) -> Value:
        total, count = self._sum.result(), self._count.result()
        if self._sum_type == DOUBLE:
            name = self._writer.name("v")
            self._writer.line(f"{name} = {total.code} / max({count.code}, 1)")
            return Value(name, total.null)
        operands = KnownValue(total, self._sum_type), KnownValue(count, BIGINT)
        return self.expressions.outside("average", operands, self.aggregate.type)

    def state(self) -> list[tuple[Value, Type]]:
        return [*self._sum.state(), *self._count.state()]


class MinMax(Scalar):
    """min and max."""

    def begin(self) -> None:
        self._name, self._null = self._writer.name("v"), self._writer.name("n")
        self._writer.lines(f"{self._name} = {zero(kind_of(self.aggregate.type))}", f"{self._null} = True")

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        operator = "<" if self.aggregate.name == "min" else ">"
        better = self.expressions.plain_test(operator, value.code, self._name, self.aggregate.type)
        known = f"not {value.null} and " if value.null else ""
        with self._writer.deeper(f"if {known}({self._null} or {better}):"):
            self._writer.lines(f"{self._name} = {value.code}", f"{self._null} = False")

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [(self.result(), self.aggregate.type)]


class FirstLast(Scalar):
    """first and last, whatever they are."""

    takes_any_order = False

    def begin(self) -> None:
        self._name, self._null, self._seen = (self._writer.name(prefix) for prefix in ("v", "n", "m"))
        self._writer.lines(
            f"{self._name} = {zero(kind_of(self.aggregate.type))}",
            f"{self._null} = True",
            f"{self._seen} = False",
        )

    def take(self, arguments: list[Value]) -> None:
        lines = (
            f"{self._name} = {arguments[0].code}",
            f"{self._null} = {arguments[0].null or 'False'}",
            f"{self._seen} = True",
        )
        if self.aggregate.name == "last":
            self._writer.lines(*lines)
        else:
            with self._writer.deeper(f"if not {self._seen}:"):
                self._writer.lines(*lines)

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [(self.result(), self.aggregate.type), (Value(self._seen), BOOLEAN)]


class CalledUda(Accumulator):
    """An aggregate of the user's own, run over the rows from its beginning to its end.

    Its value is the row that TERMINATE returns, else that of the last tuple; several rows are a failure.
    """

    takes_any_order = False

    def begin(self) -> None:
        body = self.aggregate.user
        assert body is not None
        self._name, self._null, self._first = (self._writer.name(prefix) for prefix in ("v", "n", "m"))
        self._writer.lines(
            f"{self._name} = {zero(kind_of(self.aggregate.type))}",
            f"{self._null} = True",
            f"{self._first} = True",
        )
        self._rows = "" if returns_one_row(body) else self._writer.name("k")
        if self._rows:
            self._writer.line(f"{self._rows} = 0")
        self._inner = self._body.called(body, self._returned)
        self._inner.clear()

    def _returned(self, values: list[Value]) -> None:
        value = values[self.aggregate.column]
        self._writer.lines(f"{self._name} = {value.code}", f"{self._null} = {value.null or 'False'}")
        if self._rows:
            self._writer.line(f"{self._rows} += 1")

    def take(self, arguments: list[Value]) -> None:
        self._writer.line(f"{self._null} = True")
        if self._rows:
            self._writer.line(f"{self._rows} = 0")
        with self._writer.deeper(f"if {self._first}:"):
            self._writer.line(f"{self._first} = False")
            self._inner.block("INITIALIZE", arguments)
        with self._writer.deeper("else:"):
            self._inner.block("ITERATE", arguments)

    def result(self) -> Value:
        before = self._writer.name("k") if self._rows else ""
        if before:
            self._writer.lines(f"{before} = {self._rows}", f"{self._rows} = 0")
        with self._writer.deeper(f"if not {self._first}:"):
            self._inner.block("TERMINATE", [])
        if before:
            with self._writer.deeper(f"if {self._rows} > 1 or ({self._rows} == 0 and {before} > 1):"):
                self._body.fail(ROWS)
        return Value(self._name, self._null)


class EveryRow(Accumulator):
    """An aggregate of the user's own of which all rows count, those of every tuple and those of TERMINATE."""

    takes_any_order = False

    def __init__(
        self,
        aggregate: typed_nodes.Aggregation,
        body: BodyEmitter,
        consume: Callable[[list[Value]], None],
    ) -> None:
        super().__init__(aggregate, body)
        self._consume = consume

    def begin(self) -> None:
        assert self.aggregate.user is not None
        self._first = self._writer.name("m")
        self._writer.line(f"{self._first} = True")
        self._inner = self._body.called(self.aggregate.user, self._consume)
        self._inner.clear()

    def take(self, arguments: list[Value]) -> None:
        with self._writer.deeper(f"if {self._first}:"):
            self._writer.line(f"{self._first} = False")
            self._inner.block("INITIALIZE", arguments)
        with self._writer.deeper("else:"):
            self._inner.block("ITERATE", arguments)

    def result(self) -> Value:
        with self._writer.deeper(f"if not {self._first}:"):
            self._inner.block("TERMINATE", [])
        return Value("0")


def _as(value: KnownValue, wanted: Type) -> typed_nodes.Expr:
    return value if value.type == wanted else typed_nodes.Cast(value, wanted)  # type: ignore[arg-type,return-value]


class KnownEdge(MinMax):
    """first and last of what is not NULL."""

    takes_any_order = False

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        wanted = [f"not {value.null}"] if value.null else []
        if self.aggregate.name == "first_known":
            wanted.append(self._null)
        with self._writer.deeper(f"if {' and '.join(wanted) or 'True'}:"):
            self._writer.lines(f"{self._name} = {value.code}", f"{self._null} = False")


class Bits(MinMax):
    """Bits that all values have, or some, or an odd number of them."""

    def take(self, arguments: list[Value]) -> None:
        value = arguments[0]
        operator = {"bit_and": "&", "bit_or": "|", "bit_xor": "^"}[self.aggregate.name]
        with self._writer.deeper(f"if {f'not {value.null}' if value.null else 'True'}:"):
            together = f"{self._name} {operator} {value.code}"
            self._writer.line(f"{self._name} = {value.code} if {self._null} else {together}")
            self._writer.line(f"{self._null} = False")


class MinMaxBy(Scalar):
    """min_by and max_by: a value of the tuple that has least or most of another, of equal ones the last."""

    takes_any_order = False

    def begin(self) -> None:
        self._name, self._null, self._by, self._none = (self._writer.name(p) for p in ("v", "n", "v", "n"))
        by = self.aggregate.arguments[1].type
        self._writer.lines(
            f"{self._name} = {zero(kind_of(self.aggregate.type))}",
            f"{self._null} = True",
            f"{self._by} = {zero(kind_of(by))}",
            f"{self._none} = True",
        )

    def take(self, arguments: list[Value]) -> None:
        value, by = arguments
        operator = "<=" if self.aggregate.name == "min_by" else ">="
        better = self.expressions.plain_test(operator, by.code, self._by, self.aggregate.arguments[1].type)
        known = f"not {by.null} and " if by.null else ""
        with self._writer.deeper(f"if {known}({self._none} or {better}):"):
            self._writer.lines(
                f"{self._name} = {value.code}",
                f"{self._null} = {value.null or False}",
                f"{self._by} = {by.code}",
                f"{self._none} = False",
            )

    def result(self) -> Value:
        return Value(self._name, self._null)

    def state(self) -> list[tuple[Value, Type]]:
        return [
            (self.result(), self.aggregate.type),
            (Value(self._by, self._none), self.aggregate.arguments[1].type),
        ]


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
        """Return the lines that add a value, with ``{part}`` for names."""

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
        return self.parts if self.aggregate.name in _SHAPES else self.parts[:3]

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

MOMENTS: dict[str, type[Scalar]] = {
    name: OfPairs if accumulator_row(name).family is Family.PAIR else OfNumbers for name in _FORMULAS
}

ACCUMULATORS: dict[str, type[Scalar]] = {
    "count": Count,
    "sum": Sum,
    "avg": Average,
    **dict.fromkeys(accumulator_functions(Family.MIN_MAX), MinMax),
    **dict.fromkeys(accumulator_functions(Family.FIRST_LAST), FirstLast),
    "first_known": KnownEdge,
    "last_known": KnownEdge,
    **dict.fromkeys(accumulator_functions(Family.MIN_MAX_BY), MinMaxBy),
    **dict.fromkeys(accumulator_functions(Family.BITS), Bits),
    **MOMENTS,
}
