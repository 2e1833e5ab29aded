"""Expressions of a body as generated source.

A value is the text of an expression and, where it may be NULL, the text of a condition that says so. What
needs statements (a check for overflow, a query) is written before the line that uses it; conditions are
written so that what stands behind a false one is not computed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import NamedTuple

from millstream.types import BIGINT, BOOLEAN, Kind, Type
from millstream.uda import checked
from millstream.uda.checked import Call, Case, Cast, Constant, Expr
from millstream.uda.failures import CONVERSION, DIVISION, OVERFLOW
from millstream.uda.kinds import DOUBLE, INTEGER, LIMITS, TRUTH, WORD, kind_of, zero
from millstream.uda.writer import Writer


class Value(NamedTuple):
    """``code`` has the value unless ``null`` is true; no ``null`` means never."""

    code: str
    null: str = ""


NULL = Value("0", "True")


@dataclass(frozen=True)
class Known:
    """An expression whose value has been computed."""

    value: Value
    type: Type


class Surroundings(ABC):
    """What expressions need to know about where they stand."""

    writer: Writer

    @abstractmethod
    def parameter(self, index: int) -> Value: ...

    @abstractmethod
    def column(self, column: checked.Column) -> Value: ...

    @abstractmethod
    def oldest(self, position: Value, index: int, type_: Type) -> Value: ...

    @abstractmethod
    def grouped(self, index: int) -> Value: ...

    @abstractmethod
    def scalar(self, query: checked.Query) -> Value: ...

    @abstractmethod
    def exists(self, query: checked.Query) -> str:
        """A condition."""

    @abstractmethod
    def among(self, values: tuple[Value, ...], node: checked.Among) -> tuple[str, str]:
        """Two conditions: it is among them, and it is surely not."""

    @abstractmethod
    def word(self, value: object, type_: Type) -> str:
        """A constant that is a word."""

    @abstractmethod
    def labels(self, type_: Type) -> str:
        """The array that gives the order of words of a type."""

    @abstractmethod
    def outside(self, name: str, types: tuple[Type, ...], result: Type) -> str:
        """A function that is not compiled, by the name that calls it."""

    @abstractmethod
    def fail(self, failure: int) -> None:
        """Write the lines that stop the program."""


class Expressions:
    """Writes expressions for their surroundings."""

    def __init__(self, around: Surroundings) -> None:
        self._around = around

    @property
    def _writer(self) -> Writer:
        return self._around.writer

    # ------------------------------------------------------------ values

    def value(self, expr: Expr | Known) -> Value:
        match expr:
            case Known(value):
                return value
            case Constant():
                return self._constant(expr)
            case checked.Parameter(index):
                return self._around.parameter(index)
            case checked.Column():
                return self._around.column(expr)
            case checked.SqlCode():
                return Value("sqlcode")
            case checked.Oldest(position, index, type_):
                return self._around.oldest(self.value(position), index, type_)
            case checked.Grouped(index):
                return self._around.grouped(index)
            case checked.Scalar(query):
                return self._around.scalar(query)
            case Case():
                return self._case(expr)
            case Cast():
                return self._cast(expr)
            case Call() if kind_of(expr.type) == TRUTH and expr.name in _CONDITIONS:
                return self._as_value(expr)
            case checked.Exists() | checked.Among():
                return self._as_value(expr)
            case Call():
                return self._call(expr)
        raise AssertionError(expr)

    def _constant(self, expr: Constant) -> Value:
        if expr.value is None:
            return Value(zero(kind_of(expr.type)), "True")
        match kind_of(expr.type):
            case "word":
                return Value(self._around.word(expr.value, expr.type))
            case "double":
                return Value(
                    f"float({str(float(expr.value))!r})" if _is_odd(expr.value) else repr(float(expr.value))
                )
            case "truth":
                return Value(str(bool(expr.value)))
            case _:
                return Value(f"({expr.value})" if expr.value < 0 else str(expr.value))

    def _as_value(self, expr: Expr) -> Value:
        """A condition as a value, of which both sides must be known."""
        if not may_be_null(expr):
            return Value(self.truth(expr))
        yes = self._kept(self.truth(expr))
        no = self.falsity(expr)
        return Value(yes, self._kept(f"not ({yes} or {no})"))

    def kept(self, value: Value) -> Value:
        """A value in names of its own, so that it is computed once."""
        code = value.code if _is_simple(value.code) else self._kept(value.code)
        null = value.null if _is_simple(value.null) or not value.null else self._kept(value.null)
        return Value(code, null)

    def _kept(self, code: str) -> str:
        if _is_simple(code):
            return code
        name = self._writer.name("v")
        self._writer.line(f"{name} = {code}")
        return name

    # ------------------------------------------------------------ conditions

    def truth(self, expr: Expr) -> str:
        """A condition that is true where the expression is, and not where it is false or NULL."""
        match expr:
            case Constant(value):
                return str(value is True)
            case checked.Exists(query):
                return self._around.exists(query)
            case checked.Among(values):
                return self._around.among(tuple(self.kept(self.value(v)) for v in values), expr)[0]
            case Call("and", (a, b)):
                return self._shortly(self.truth(a), b, "and", self.truth)
            case Call("or", (a, b)):
                return self._shortly(self.truth(a), b, "or", self.truth)
            case Call("not", (a,)):
                return self.falsity(a)
            case Call("isnull", (a,)):
                return self.value(a).null or "False"
            case Call("in", (a, *others)):
                value = self.kept(self.value(a))
                tests = [self._test("=", value, self.kept(self.value(o)), a.type) for o in others]
                return _either(*tests) if tests else "False"
            case Call(name, (a, b)) if name in _COMPARISONS:
                return self._test(name, self.value(a), self.value(b), a.type)
        value = self.value(expr)
        return f"({value.code} and not {value.null})" if value.null else value.code

    def falsity(self, expr: Expr) -> str:
        """A condition that is true where the expression is false, so not where it is NULL."""
        match expr:
            case Constant(value):
                return str(value is False)
            case checked.Exists(query):
                return f"(not {self._around.exists(query)})"
            case checked.Among(values):
                return self._around.among(tuple(self.kept(self.value(v)) for v in values), expr)[1]
            case Call("and", (a, b)):
                return self._shortly(self.falsity(a), b, "or", self.falsity)
            case Call("or", (a, b)):
                return self._shortly(self.falsity(a), b, "and", self.falsity)
            case Call("not", (a,)):
                return self.truth(a)
            case Call("isnull", (a,)):
                null = self.value(a).null
                return f"(not {null})" if null else "True"
            case Call("in", (a, *others)):
                value = self.kept(self.value(a))
                tests = [self._test("<>", value, self.kept(self.value(o)), a.type) for o in others]
                return f"({' and '.join(tests)})" if tests else "True"
            case Call("<=>", (a, b)):
                return f"(not {self._test('<=>', self.value(a), self.value(b), a.type)})"
            case Call(name, (a, b)) if name in _COMPARISONS:
                return self._test(_OPPOSITES[name], self.value(a), self.value(b), a.type)
        value = self.value(expr)
        null = f" and not {value.null}" if value.null else ""
        return f"(not {value.code}{null})"

    def _shortly(self, first: str, second: Expr, word: str, side: object) -> str:
        """Two conditions, of which the second is computed only where it matters."""
        before, name = self._writer.length, ""
        with self._writer.deeper():
            code = side(second)  # type: ignore[operator]
            own = self._writer.length - before
            if own:
                name = self._writer.name("v")
                self._writer.line(f"{name} = {code}")
        lines = self._writer.cut(before)
        if not own:
            return f"({first} {word} {code})"
        self._writer.line(f"{name} = {first}")
        self._writer.line(f"if {name}:" if word == "and" else f"if not {name}:")
        self._writer.put(lines)
        return name

    def _test(self, operator: str, a: Value, b: Value, type_: Type) -> str:
        if operator == "<=>":
            a, b = self.kept(a), self.kept(b)
            same = self._plain_test("=", a.code, b.code, type_)
            if not a.null and not b.null:
                return same
            one, other = a.null or "False", b.null or "False"
            return f"(({one} and {other}) or (not {one} and not {other} and {same}))"
        plain = self._plain_test(operator, a.code, b.code, type_)
        nulls = [f"not {null}" for null in (a.null, b.null) if null]
        return f"({' and '.join([*nulls, plain])})" if nulls else plain

    def _plain_test(self, operator: str, a: str, b: str, type_: Type) -> str:
        match kind_of(type_):
            case "double":
                return f"{_OF_DOUBLES[operator]}({a}, {b})"
            case "word" if operator not in ("=", "<>"):
                labels = self._around.labels(type_)
                a, b = f"{labels}[{a}]", f"{labels}[{b}]"
        return f"({a} {_PYTHON[operator]} {b})"

    # ------------------------------------------------------------ CASE, coalesce

    def _case(self, expr: Case) -> Value:
        result, null = self._writer.name("v"), self._writer.name("n")
        nullable = may_be_null(expr)
        writer = self._writer
        contexts = []
        for condition, value in expr.branches:
            test = self.truth(condition)
            with writer.deeper(f"if {test}:"):
                self._assign(result, null if nullable else "", self.value(value))
            writer.line("else:")
            context = writer.deeper()
            context.__enter__()
            contexts.append(context)
        otherwise = Value(zero(kind_of(expr.type)), "True")
        if expr.otherwise is not None:
            otherwise = self.value(expr.otherwise)
        self._assign(result, null if nullable else "", otherwise)
        for context in reversed(contexts):
            context.__exit__(None, None, None)
        return Value(result, null if nullable else "")

    def _assign(self, name: str, null: str, value: Value) -> None:
        self._writer.line(f"{name} = {value.code}")
        if null:
            self._writer.line(f"{null} = {value.null or 'False'}")

    def _coalesce(self, expr: Call) -> Value:
        branches = tuple(
            (Call("not", (Call("isnull", (a,), BOOLEAN),), BOOLEAN), a) for a in expr.arguments[:-1]
        )
        return self._case(Case(branches, expr.arguments[-1], expr.type))

    def _extreme(self, expr: Call) -> Value:
        """Greatest and least, which pass over NULLs."""
        result, null = self._writer.name("v"), self._writer.name("n")
        self._writer.lines(f"{result} = {zero(kind_of(expr.type))}", f"{null} = True")
        operator = ">" if expr.name == "greatest" else "<"
        for argument in expr.arguments:
            value = self.kept(self.value(argument))
            better = self._plain_test(operator, value.code, result, expr.type)
            known = f"not {value.null} and " if value.null else ""
            with self._writer.deeper(f"if {known}({null} or {better}):"):
                self._writer.lines(f"{result} = {value.code}", f"{null} = False")
        return Value(result, null)

    # ------------------------------------------------------------ calls

    def _call(self, expr: Call) -> Value:
        if expr.name == "coalesce":
            return self._coalesce(expr)
        if expr.name in ("greatest", "least"):
            return self._extreme(expr)
        if any(kind_of(a.type) == WORD for a in expr.arguments) or kind_of(expr.type) == WORD:
            return self._outside(expr.name, expr.arguments, expr.type)
        rule = _RULES.get(expr.name)
        if rule is None:
            return self._outside(expr.name, expr.arguments, expr.type)
        return rule(self, expr)

    def _outside(self, name: str, arguments: tuple[Expr, ...], result: Type) -> Value:
        function = self._around.outside(name, tuple(a.type for a in arguments), result)
        values = [self.value(a) for a in arguments]
        given = ", ".join(f"{v.code}, {v.null or 'False'}" for v in values)
        name_, null = self._writer.name("v"), self._writer.name("n")
        self._writer.line(f"{name_}, {null} = {function}({given})")
        return Value(name_, null)

    def _operands(self, expr: Call) -> tuple[list[str], str]:
        """The codes of the arguments, and when one of them is NULL."""
        values = [self.kept(self.value(argument)) for argument in expr.arguments]
        nulls = list(dict.fromkeys(value.null for value in values if value.null))
        return [value.code for value in values], _either(*nulls) if nulls else ""

    def _checked(self, null: str, type_: Type, lines: list[str], failing: str, failure: int) -> Value:
        """A value computed by lines (``{v}`` is its name) that may fail; not where something is NULL."""
        name = self._writer.name("v")
        if null:
            null = self._kept(null)
            self._writer.line(f"{name} = {zero(kind_of(type_))}")
            with self._writer.deeper(f"if not {null}:"):
                self._checked_lines(name, lines, failing, failure)
        else:
            self._checked_lines(name, lines, failing, failure)
        return Value(name, null)

    def _checked_lines(self, name: str, lines: list[str], failing: str, failure: int) -> None:
        for line in lines:
            self._writer.line(line.replace("{v}", name))
        if failing:
            with self._writer.deeper(f"if {failing.replace('{v}', name)}:"):
                self._around.fail(failure)

    def _sum(self, expr: Call) -> Value:
        """``+ - *`` on numbers, and instants, dates and intervals that are moved or added."""
        operator = expr.name[0]
        (a, b), null = self._operands(expr)
        if kind_of(expr.type) == DOUBLE:
            return Value(self._single(f"({a} {operator} {b})", expr.type), null)
        if expr.type.kind is Kind.DECIMAL:
            return self._decimal_sum(operator, expr, (a, b), null)
        if expr.type.kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE):
            low, high = LIMITS.get(expr.type.kind, LIMITS[Kind.INT])
            return self._checked(
                null, expr.type, [f"{{v}} = {a} {operator} {b}"], f"{{v}} < {low} or {{v}} > {high}", OVERFLOW
            )
        over = self._writer.name("o")
        function = {"+": "plus", "-": "minus", "*": "times"}[operator]
        return self._checked(null, expr.type, [f"{{v}}, {over} = {function}({a}, {b})"], over, OVERFLOW)

    def _decimal_sum(self, operator: str, expr: Call, operands: tuple[str, str], null: str) -> Value:
        a, b = operands
        scales = [argument.type.scale for argument in expr.arguments]
        scale = expr.type.scale
        if operator == "*":
            if sum(scales) != scale:
                return self._outside(expr.name, expr.arguments, expr.type)
            over = self._writer.name("o")
            lines = [f"{{v}}, {over} = times({a}, {b})"]
            return self._checked(null, expr.type, lines, f"{over} or {_beyond(expr.type)}", OVERFLOW)
        if any(own > scale for own in scales):
            return self._outside(expr.name, expr.arguments, expr.type)
        a, b = (
            code if own == scale else f"{code} * {10 ** (scale - own)}"
            for code, own in zip((a, b), scales, strict=True)
        )
        lines = [f"{{v}} = {a} {operator} {b}"]
        return self._checked(null, expr.type, lines, _beyond(expr.type), OVERFLOW)

    def _quotient(self, expr: Call) -> Value:
        (a, b), null = self._operands(expr)
        if kind_of(expr.type) != DOUBLE:
            return self._outside(expr.name, expr.arguments, expr.type)
        name = self._writer.name("v")
        null = self._kept(null) if null else ""
        known = f"not {null} and " if null else ""
        with self._writer.deeper(f"if {known}{b} == 0.0:"):
            self._around.fail(DIVISION)
        if null:
            self._writer.line(f"{name} = 0.0")
            with self._writer.deeper(f"if not {null}:"):
                self._writer.line(f"{name} = {self._single(f'{a} / {b}', expr.type)}")
        else:
            self._writer.line(f"{name} = {self._single(f'{a} / {b}', expr.type)}")
        return Value(name, null)

    def _remainder(self, expr: Call) -> Value:
        if expr.type.kind is Kind.DECIMAL or any(a.type.kind is Kind.DECIMAL for a in expr.arguments):
            return self._outside(expr.name, expr.arguments, expr.type)
        (a, b), null = self._operands(expr)
        null = self._kept(null) if null else ""
        known = f"not {null} and " if null else ""
        with self._writer.deeper(f"if {known}{b} == 0:"):
            self._around.fail(DIVISION)
        function = {"%": "remainder", "pmod": "modulus", "div": "divided"}[expr.name]
        if kind_of(expr.type) == DOUBLE:
            function = {"%": "double_remainder", "pmod": "double_modulus"}[expr.name]
        if expr.name == "div":
            # The smallest number by -1 is one more than the largest.
            with self._writer.deeper(f"if {known}{b} == -1 and {a} == {LIMITS[Kind.BIGINT][0]}:"):
                self._around.fail(OVERFLOW)
        return self._checked(null, expr.type, [f"{{v}} = {function}({a}, {b})"], "", 0)

    def _negative(self, expr: Call) -> Value:
        (a,), null = self._operands(expr)
        if kind_of(expr.type) == DOUBLE:
            return Value(f"(-{a})", null)
        low = LIMITS.get(expr.type.kind, LIMITS[Kind.BIGINT])[0]
        known = f"not ({null}) and " if null else ""
        with self._writer.deeper(f"if {known}{a} == {low}:"):
            self._around.fail(OVERFLOW)
        return Value(f"(-{a})", null)

    def _absolute(self, expr: Call) -> Value:
        (a,), null = self._operands(expr)
        if kind_of(expr.type) == INTEGER and expr.type.is_integral:
            known = f"not ({null}) and " if null else ""
            with self._writer.deeper(f"if {known}{a} == {LIMITS[expr.type.kind][0]}:"):
                self._around.fail(OVERFLOW)
        return Value(f"abs({a})", null)

    def _bits(self, expr: Call) -> Value:
        (a, b), null = self._operands(expr)
        return Value(f"({a} {expr.name} {b})", null)

    def _function(self, expr: Call) -> Value:
        """A function of doubles that is total, by the name that it has in the runtime."""
        codes, null = self._operands(expr)
        return Value(f"f_{expr.name}({', '.join(codes)})", null)

    def _whole(self, expr: Call) -> Value:
        """Floor and ceil of doubles, as BIGINT."""
        if kind_of(expr.arguments[0].type) != DOUBLE or expr.type != BIGINT:
            return self._outside(expr.name, expr.arguments, expr.type)
        (a,), null = self._operands(expr)
        over = self._writer.name("o")
        lines = [f"{{v}}, {over} = whole(f_{expr.name}({a}))"]
        return self._checked(null, expr.type, lines, over, OVERFLOW)

    def _interval(self, expr: Call) -> Value:
        """So many units: ``num_min minutes``."""
        if expr.arguments[0].type != BIGINT:
            return self._outside(expr.name, expr.arguments, expr.type)
        (a, unit), null = self._operands(expr)
        over = self._writer.name("o")
        return self._checked(null, expr.type, [f"{{v}}, {over} = times({a}, {unit})"], over, OVERFLOW)

    def _dates_apart(self, expr: Call) -> Value:
        (a, b), null = self._operands(expr)
        return Value(f"(({a} - {b}) * 86400000000)", null)

    def _part_of_time(self, expr: Call) -> Value:
        (a,), null = self._operands(expr)
        days = a if expr.arguments[0].type.kind is Kind.DATE else f"({a} // 86400000000)"
        codes = {
            "hour": f"({a} % 86400000000 // 3600000000)",
            "minute": f"({a} % 3600000000 // 60000000)",
            "second": f"({a} % 60000000 // 1000000)",
            "year": f"year_of({days})",
            "month": f"month_of({days})",
            "day": f"day_of({days})",
            "dayofweek": f"(({days} + 4) % 7 + 1)",
            "quarter": f"((month_of({days}) - 1) // 3 + 1)",
            "dayofyear": f"day_of_year({days})",
        }
        return Value(codes[expr.name], null)

    def _of_instant(self, expr: Call) -> Value:
        (a,), null = self._operands(expr)
        by = {"micros": 1, "millis": 1_000, "seconds": 1_000_000}[expr.name.split("_")[1]]
        if expr.name.startswith("unix"):
            return Value(a if by == 1 else f"({a} // {by})", null)
        over = self._writer.name("o")
        return self._checked(null, expr.type, [f"{{v}}, {over} = times({a}, {by})"], over, OVERFLOW)

    def _hash(self, expr: Call) -> Value:
        """Spark's own, of numbers; a NULL leaves the hash as it is."""
        values = [self.kept(self.value(argument)) for argument in expr.arguments]
        name = self._writer.name("v")
        self._writer.line(f"{name} = 42")
        prefix = "xx" if expr.name == "xxhash64" else "murmur"
        for value, argument in zip(values, expr.arguments, strict=True):
            narrow = argument.type.kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE, Kind.BOOLEAN)
            function = "double" if kind_of(argument.type) == DOUBLE else "int" if narrow else "long"
            line = f"{name} = {prefix}_{function}({value.code}, {name})"
            if value.null:
                with self._writer.deeper(f"if not {value.null}:"):
                    self._writer.line(line)
            else:
                self._writer.line(line)
        return Value(name)

    def _single(self, code: str, type_: Type) -> str:
        return f"single({code})" if type_.kind is Kind.FLOAT else code

    # ------------------------------------------------------------ conversions

    def _cast(self, expr: Cast) -> Value:
        given, wanted = expr.argument.type, expr.type
        if expr.gently or WORD in (kind_of(given), kind_of(wanted)):
            if kind_of(given) == kind_of(wanted) == WORD and given == wanted:
                return self.value(expr.argument)
            return self._outside("try_cast" if expr.gently else "cast", (expr.argument,), wanted)
        if given.kind is Kind.NULL:
            return Value(zero(kind_of(wanted)), "True")
        value = self.kept(self.value(expr.argument))
        converted = self._converted(value, given, wanted)
        return self._outside("cast", (expr.argument,), wanted) if converted is None else converted

    def _converted(self, value: Value, given: Type, wanted: Type) -> Value | None:
        """Between types that are numbers while the program runs; None if that needs a longer way."""
        code, null = value
        match kind_of(given), kind_of(wanted):
            case ("truth", "integer") if wanted.is_integral:
                return Value(f"int({code})", null)
            case ("truth", "double"):
                return Value(f"float({code})", null)
            case ("integer" | "double", "truth"):
                return Value(f"({code} != 0)", null)
            case ("double", "double"):
                return Value(self._single(code, wanted), null)
            case ("double", "integer") if wanted.is_integral:
                over = self._writer.name("o")
                low, high = LIMITS[wanted.kind]
                lines = [f"{{v}}, {over} = whole({code})"]
                return self._checked(
                    null, wanted, lines, f"{over} or {{v}} < {low} or {{v}} > {high}", OVERFLOW
                )
            case ("integer", "double") if given.is_integral:
                return Value(self._single(f"float({code})", wanted), null)
            case ("integer", "double") if given.kind is Kind.DECIMAL and given.precision <= 15:
                return Value(self._single(f"({code} / {float(10**given.scale)!r})", wanted), null)
            case ("integer", "integer"):
                return self._converted_integer(value, given, wanted)
        return None

    def _converted_integer(self, value: Value, given: Type, wanted: Type) -> Value | None:
        code, null = value
        if given.is_integral and wanted.is_integral:
            if LIMITS[given.kind][1] <= LIMITS[wanted.kind][1]:
                return value
            low, high = LIMITS[wanted.kind]
            return self._checked(
                null, wanted, [f"{{v}} = {code}"], f"{{v}} < {low} or {{v}} > {high}", OVERFLOW
            )
        if wanted.kind is Kind.DECIMAL and (given.is_integral or given.kind is Kind.DECIMAL):
            shift = wanted.scale - (given.scale if given.kind is Kind.DECIMAL else 0)
            if shift >= 0:
                over = self._writer.name("o")
                lines = [f"{{v}}, {over} = times({code}, {10**shift})"]
                return self._checked(null, wanted, lines, f"{over} or {_beyond(wanted)}", OVERFLOW)
            lines = [f"{{v}} = rounded({code}, {10**-shift})"]
            return self._checked(null, wanted, lines, _beyond(wanted), OVERFLOW)
        if given.kind is Kind.DECIMAL and wanted.is_integral:
            low, high = LIMITS[wanted.kind]
            lines = [f"{{v}} = divided({code}, {10**given.scale})"]
            return self._checked(null, wanted, lines, f"{{v}} < {low} or {{v}} > {high}", OVERFLOW)
        if given.kind is Kind.DATE and wanted.is_time:
            return Value(f"({code} * 86400000000)", null)
        if given.is_time and wanted.kind is Kind.DATE:
            return Value(f"({code} // 86400000000)", null)
        if (given.is_time and wanted.is_time) or given.is_interval:
            return value
        if given.kind is Kind.TIMESTAMP and wanted == BIGINT:
            return Value(f"({code} // 1000000)", null)
        if given.is_integral and wanted.kind is Kind.TIMESTAMP:
            over = self._writer.name("o")
            return self._checked(null, wanted, [f"{{v}}, {over} = times({code}, 1000000)"], over, CONVERSION)
        return None


def may_be_null(expr: Expr) -> bool:
    """Whether an expression can be NULL, as far as its form tells."""
    match expr:
        case Constant(value):
            return value is None
        case checked.SqlCode() | checked.Exists():
            return False
        case Call("isnull" | "<=>" | "hash" | "xxhash64"):
            return False
        case Call("coalesce", arguments):
            return all(map(may_be_null, arguments))
        case Case(branches, otherwise):
            return (
                otherwise is None
                or any(may_be_null(value) for _, value in branches)
                or may_be_null(otherwise)
            )
        case Call(_, arguments):
            return any(map(may_be_null, arguments))
        case Cast(argument, _, gently):
            return gently or may_be_null(argument)
        case _:
            return True


def _either(*conditions: str) -> str:
    known = list(dict.fromkeys(conditions))
    return known[0] if len(known) == 1 else f"({' or '.join(known)})"


def _is_simple(code: str) -> bool:
    return code.isidentifier() or code.lstrip("-").replace(".", "", 1).isdigit()


def _is_odd(value: float) -> bool:
    return value != value or value in (float("inf"), float("-inf"))


def _beyond(type_: Type) -> str:
    limit = 10**type_.precision
    return f"{{v}} >= {limit} or {{v}} <= -{limit}"


_COMPARISONS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
_CONDITIONS = frozenset({*_COMPARISONS, "and", "or", "not", "isnull", "in"})
_OPPOSITES = {"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_PYTHON = {"=": "==", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_OF_DOUBLES = {
    "=": "f_equal",
    "<>": "f_differ",
    "<": "f_less",
    "<=": "f_at_most",
    ">": "f_more",
    ">=": "f_at_least",
}
_TOTAL = (
    *("sqrt", "exp", "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "sinh", "cosh", "tanh"),
    *("radians", "degrees", "cbrt", "signum", "pow", "expm1"),
)
_MOVES = ("+time", "-time", "+days", "-days", "-times", "+intervals", "-intervals")

_RULES = {
    **dict.fromkeys(("+", "-", "*", *_MOVES), Expressions._sum),
    "/": Expressions._quotient,
    **dict.fromkeys(("%", "pmod", "div"), Expressions._remainder),
    "negative": Expressions._negative,
    "abs": Expressions._absolute,
    **dict.fromkeys(("&", "|", "^"), Expressions._bits),
    **dict.fromkeys(_TOTAL, Expressions._function),
    "isnan": Expressions._function,
    **dict.fromkeys(("floor", "ceil"), Expressions._whole),
    "interval": Expressions._interval,
    "-dates": Expressions._dates_apart,
    **dict.fromkeys(
        ("hour", "minute", "second", "year", "month", "day", "dayofweek", "quarter", "dayofyear"),
        Expressions._part_of_time,
    ),
    **dict.fromkeys(
        (
            *("unix_micros", "unix_millis", "unix_seconds"),
            *("timestamp_micros", "timestamp_millis", "timestamp_seconds"),
        ),
        Expressions._of_instant,
    ),
    **dict.fromkeys(("hash", "xxhash64"), Expressions._hash),
}
