"""One table of the built-in aggregates of windows, patterns and bodies: a row for each, read by all layers.

Spark has more aggregates: sketches in formats of its own, which no window can compute. These have no row.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Strategy:
    """The computation of an aggregate in words, and the cost of a result.

    ``w`` stands for the content of a window: tuples, or panes where tuples are counted in panes.
    """

    way: str
    cost: str

    def __str__(self) -> str:
        return f"{self.way}, {self.cost}"


RUNNING = Strategy("kept up to date", "O(1)")
DIFFERENCE = Strategy("difference of running totals", "O(1)")
STACKS = Strategy("two stacks", "O(1)")
ORDER = Strategy("order statistics", "O(log w)")
EXACT = Strategy("order statistics, exact", "O(log w)")
RECOMPUTED = Strategy("recomputed from the content", "O(w)")


class Family(Enum):
    """The accumulator of an aggregate."""

    COUNT = auto()
    SUM = auto()
    """128-bit integers, or doubles without loss; of doubles there is no difference of totals."""
    MIN_MAX = auto()
    FIRST_LAST = auto()
    MIN_MAX_BY = auto()
    BITS = auto()
    VARIANCE = auto()
    SHAPE = auto()
    """Moments up to the fourth."""
    PAIR = auto()
    """Moments of pairs."""
    ORDER = auto()
    CONTENT = auto()
    """All values of the window; every result is computed from them anew."""

    @property
    def strategy(self) -> Strategy:
        return _STRATEGIES.get(self, STACKS)


_STRATEGIES = {
    Family.COUNT: DIFFERENCE,
    Family.SUM: DIFFERENCE,
    Family.ORDER: ORDER,
    Family.CONTENT: RECOMPUTED,
}


class Arguments(Enum):
    """The form in which an accumulator takes the arguments of a call."""

    AS_GIVEN = auto()
    PRESENT = auto()
    """Whether all of them are there: count(a, b)."""
    CONDITION = auto()
    """Whether a condition holds: count_if(c)."""
    TRUTH = auto()
    """A boolean."""
    DOUBLES = auto()
    NUMBER = auto()
    """The first as a double, or as an interval."""
    SUMMAND = auto()
    """The first in its own type if that is a number or an interval, otherwise as a double."""
    FIRST_OF_PAIR = auto()
    """The first as a double, where the second is there."""
    SECOND_OF_PAIR = auto()
    """The second as a double, where the first is there."""
    VALUES_AND_COUNTS = auto()
    """A double, and how often it counts."""


class Nulls(Enum):
    """The treatment of NULL arguments."""

    SKIP = auto()
    SKIP_UNLESS_TOLD = auto()
    """RESPECT NULLS keeps them."""
    KEEP_UNLESS_TOLD = auto()
    """IGNORE NULLS skips them."""
    KEEP = auto()


class Within(Enum):
    """The place of the keys of WITHIN GROUP (ORDER BY ...) among the arguments."""

    FIRST = auto()
    LAST = auto()


@dataclass(frozen=True)
class Constant:
    """An argument that is the same for all tuples: a number in the range that Spark allows, or a text."""

    noun: str
    least: float | None = None
    most: float | None = None
    whole: bool = False
    is_ignored: bool = False
    """Whether it only bounds an approximation: results here are exact anyway."""

    def contains(self, value: Fraction) -> bool:
        """Whether a number is in the range."""
        return (self.least is None or value >= self.least) and (self.most is None or value <= self.most)

    @property
    def is_text(self) -> bool:
        return self.least is None and not self.is_ignored


SHARE = Constant("a percentage", 0, 1)
_SEPARATOR = Constant("a separator")
_BINS = Constant("a number of bins", 2, 2**31 - 1, whole=True)
_ROWS = Constant("a number of values", 1, 100_000, whole=True)
_ITEMS = Constant("a number of items", 1, 1_000_000, whole=True)
_ACCURACY = Constant("an accuracy", is_ignored=True)


@dataclass(frozen=True)
class BuiltinAggregate:
    """A row of the table. The first name is the one that accumulators and messages use."""

    names: tuple[str, ...]
    signature: str
    """The arguments and the result, in the notation of ``signatures.txt``."""

    family: Family
    arguments: Arguments = Arguments.AS_GIVEN
    function: str = ""
    """The name of the row whose accumulator computes it; without, its own."""

    constants: tuple[Constant, ...] = ()
    """Arguments that are constants: from ``first_constant`` on."""

    first_constant: int = 1
    defaults: tuple[Any, ...] = ()
    """Constants where none are written."""

    content_form: tuple[int, str] | None = None
    """With so many arguments, the function that computes it from the content."""

    same_if_distinct: bool = False
    """Whether a result is the same however often a value is there."""

    distinct: bool = False
    """Whether it takes each value once, DISTINCT or not."""

    nulls: Nulls = Nulls.SKIP
    within: Within | None = None
    empty: Any = None
    """The result over no value."""

    is_approximate: bool = False
    """Whether Spark approximates what is exact here."""

    in_bodies: bool = False
    """Whether queries in bodies of aggregates can call it."""

    running: str = ""
    """The name in patterns for its value so far (ESL-TS)."""

    @property
    def name(self) -> str:
        return self.names[0]

    @property
    def last_constant(self) -> int:
        """The first argument behind the constants."""
        return self.first_constant + len(self.constants)


def _row(
    names: str, signature: str, family: Family, arguments: Arguments = Arguments.AS_GIVEN, **more: Any
) -> BuiltinAggregate:
    return BuiltinAggregate(tuple(names.split()), signature, family, arguments, **more)


_NUMERIC = "(numeric|interval|timestamp!)"
_ONE, _TWO = "(double) -> double", "(double, double) -> double"
_SHARES = "double|array<double>"
_TRUTH = "(boolean) -> boolean"
_POINT = "numeric|date|timestamp|timestamp_ntz|interval"

TABLE: tuple[BuiltinAggregate, ...] = (
    # Counts and sums
    _row(
        "count", "(any, any*) -> bigint", Family.COUNT, Arguments.PRESENT,
        empty=0, in_bodies=True, running="ccount",
    ),
    _row("count_if", "(boolean) -> bigint", Family.COUNT, Arguments.CONDITION, function="count"),
    _row("regr_count", "(numeric, numeric) -> bigint", Family.COUNT, Arguments.PRESENT, function="count"),
    _row(
        "approx_count_distinct", "(any, double?) -> bigint", Family.ORDER, function="count",
        constants=(_ACCURACY,), same_if_distinct=True, distinct=True, is_approximate=True,
    ),
    _row("sum", f"{_NUMERIC} -> @sum", Family.SUM, Arguments.SUMMAND, in_bodies=True, running="csum"),
    _row("try_sum", f"{_NUMERIC} -> @sum", Family.SUM, Arguments.SUMMAND),
    _row("avg mean", f"{_NUMERIC} -> @avg", Family.SUM, Arguments.SUMMAND, in_bodies=True, running="cavg"),
    _row("try_avg", f"{_NUMERIC} -> @avg", Family.SUM, Arguments.SUMMAND),
    _row("regr_avgx", _TWO, Family.SUM, Arguments.SECOND_OF_PAIR, function="avg"),
    _row("regr_avgy", _TWO, Family.SUM, Arguments.FIRST_OF_PAIR, function="avg"),
    # One of the values
    _row("min", "(ordered) -> $1", Family.MIN_MAX, same_if_distinct=True, in_bodies=True, running="cmin"),
    _row("max", "(ordered) -> $1", Family.MIN_MAX, same_if_distinct=True, in_bodies=True, running="cmax"),
    _row("bool_and every", _TRUTH, Family.MIN_MAX, Arguments.TRUTH, function="min", same_if_distinct=True),
    _row("bool_or any some", _TRUTH, Family.MIN_MAX, Arguments.TRUTH, function="max", same_if_distinct=True),
    _row(
        "first first_value", "(any, boolean?) -> $1", Family.FIRST_LAST,
        same_if_distinct=True, nulls=Nulls.KEEP_UNLESS_TOLD, in_bodies=True,
    ),
    _row(
        "last last_value", "(any, boolean?) -> $1", Family.FIRST_LAST,
        same_if_distinct=True, nulls=Nulls.KEEP_UNLESS_TOLD, in_bodies=True,
    ),
    _row(
        "any_value", "(any, boolean?) -> $1", Family.FIRST_LAST, function="first",
        same_if_distinct=True, nulls=Nulls.KEEP_UNLESS_TOLD, in_bodies=True,
    ),
    _row(
        "min_by", "(any, ordered, int?) -> @by", Family.MIN_MAX_BY, same_if_distinct=True,
        constants=(_ROWS,), first_constant=2, content_form=(3, "min_by"),
    ),
    _row(
        "max_by", "(any, ordered, int?) -> @by", Family.MIN_MAX_BY, same_if_distinct=True,
        constants=(_ROWS,), first_constant=2, content_form=(3, "max_by"),
    ),
    # Bits
    _row("bit_and", "(integral) -> $1", Family.BITS, same_if_distinct=True),
    _row("bit_or", "(integral) -> $1", Family.BITS, same_if_distinct=True),
    _row("bit_xor", "(integral) -> $1", Family.BITS),
    # Moments
    _row("var_pop", _ONE, Family.VARIANCE, Arguments.DOUBLES),
    _row("var_samp variance", _ONE, Family.VARIANCE, Arguments.DOUBLES),
    _row("stddev_pop", _ONE, Family.VARIANCE, Arguments.DOUBLES),
    _row("stddev_samp stddev std", _ONE, Family.VARIANCE, Arguments.DOUBLES),
    _row("regr_sxx", _TWO, Family.VARIANCE, Arguments.SECOND_OF_PAIR),
    _row("regr_syy", _TWO, Family.VARIANCE, Arguments.FIRST_OF_PAIR),
    _row("skewness", _ONE, Family.SHAPE, Arguments.DOUBLES),
    _row("kurtosis", _ONE, Family.SHAPE, Arguments.DOUBLES),
    _row("covar_pop", _TWO, Family.PAIR, Arguments.DOUBLES),
    _row("covar_samp", _TWO, Family.PAIR, Arguments.DOUBLES),
    _row("corr", _TWO, Family.PAIR, Arguments.DOUBLES),
    _row("regr_sxy", _TWO, Family.PAIR, Arguments.DOUBLES),
    _row("regr_slope", _TWO, Family.PAIR, Arguments.DOUBLES),
    _row("regr_intercept", _TWO, Family.PAIR, Arguments.DOUBLES),
    _row("regr_r2", _TWO, Family.PAIR, Arguments.DOUBLES),
    # Order statistics
    _row(
        "percentile", f"(numeric|interval, {_SHARES}, integral?) -> @percentile",
        Family.ORDER, Arguments.NUMBER, constants=(SHARE,), content_form=(3, "percentile_of_counts"),
    ),
    _row(
        "median", "(numeric|interval) -> @percentile", Family.ORDER, Arguments.NUMBER, function="percentile",
        defaults=(0.5,),
    ),
    _row(
        "percentile_cont", f"(numeric|interval, {_SHARES}) -> @percentile", Family.ORDER, Arguments.NUMBER,
        function="percentile", constants=(SHARE,), within=Within.FIRST,
    ),
    _row(
        "percentile_disc", f"(numeric|interval, {_SHARES}) -> @percentile", Family.ORDER, Arguments.NUMBER,
        constants=(SHARE,), within=Within.FIRST,
    ),
    _row(
        "percentile_approx approx_percentile", f"({_POINT}, {_SHARES}, integral?) -> @approx_percentile",
        Family.ORDER, constants=(SHARE, _ACCURACY), is_approximate=True,
    ),
    _row("mode", "(any, boolean?) -> $1", Family.ORDER, constants=(_ACCURACY,), within=Within.FIRST),
    # Values of the content
    _row(
        "collect_list array_agg", "(any) -> @array_of", Family.CONTENT,
        nulls=Nulls.SKIP_UNLESS_TOLD, empty=[],
    ),
    _row("collect_set", "(any) -> @collect_set", Family.CONTENT, distinct=True, empty=[]),
    _row("collect_union", "(any) -> $1", Family.CONTENT, empty=[]),
    _row(
        "listagg string_agg", "(string|binary, string|binary?) -> $1", Family.CONTENT,
        constants=(_SEPARATOR,), within=Within.LAST,
    ),
    _row(
        "histogram_numeric", "(any, integral) -> @histogram", Family.CONTENT, Arguments.NUMBER,
        constants=(_BINS,),
    ),
    _row(
        "approx_top_k", "(any, integral?, integral?) -> @top_k", Family.CONTENT,
        constants=(_ITEMS, _ACCURACY), defaults=(5,), nulls=Nulls.KEEP, empty=[],
    ),
    _row("vector_sum", "(any) -> $1", Family.CONTENT),
    _row("vector_avg", "(any) -> $1", Family.CONTENT),
    # What percentile becomes if it is told how often each value counts; it has no name in SQL.
    _row("percentile_of_counts", "", Family.CONTENT, Arguments.VALUES_AND_COUNTS),
)  # fmt: skip

_BY_NAME = {name: row for row in TABLE if row.signature for name in row.names}
_BY_FUNCTION = {row.name: row for row in TABLE if not row.function}


def builtin_aggregate(name: str) -> BuiltinAggregate | None:
    """A row by a name that SQL has for it, in any case.

    >>> builtin_aggregate("STDDEV").name, builtin_aggregate("hll_sketch_agg")
    ('stddev_samp', None)
    """
    return _BY_NAME.get(name.lower())


def accumulator_row(function: str) -> BuiltinAggregate:
    """The row of a function that has an accumulator of its own.

    >>> accumulator_row("percentile").family
    <Family.ORDER: 10>
    """
    return _BY_FUNCTION[function]


def accumulator_functions(*families: Family) -> frozenset[str]:
    """The functions that have accumulators of their own, of these families or of all."""
    return frozenset(name for name, row in _BY_FUNCTION.items() if not families or row.family in families)


def function_of(row: BuiltinAggregate, arguments: int) -> str:
    """The function that computes a call with so many arguments.

    >>> function_of(builtin_aggregate("every"), 1), function_of(builtin_aggregate("percentile"), 3)
    ('min', 'percentile_of_counts')
    """
    if row.content_form is not None and arguments == row.content_form[0]:
        return row.content_form[1]
    return row.function or row.name


def within(name: str) -> Within | None:
    """The place of the keys of WITHIN GROUP among the arguments of an aggregate, None if it ignores order.

    >>> within("percentile_cont"), within("sum")
    (<Within.FIRST: 1>, None)
    """
    row = builtin_aggregate(name)
    return None if row is None else row.within


AGGREGATES = frozenset(_BY_NAME)
"""The names of all aggregates of the table."""

RUNNING_NAMES = {row.running: row.name for row in TABLE if row.running}
"""Names in patterns for values so far, with the aggregates that they are of."""
