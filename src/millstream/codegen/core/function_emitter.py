"""Operators and functions of values as generated source."""

from __future__ import annotations

from millstream.codegen.core.cast_emitter import CastEmitter, beyond
from millstream.codegen.core.value_emitter import KnownValue, Value, either
from millstream.ir.typed_nodes import Call
from millstream.ir.value_kinds import DOUBLE, INTEGER, LIMITS, WORD, kind_of
from millstream.program.failures import DIVISION, OVERFLOW
from millstream.program.interpreted_functions import is_known
from millstream.program.spark_text_hash import SEED
from millstream.types import BIGINT, Kind, Type


class FunctionEmitter(CastEmitter):
    """Emitter of calls; functions that are not compiled are interpreted."""

    def call(self, expr: Call) -> Value:
        rule = _RULES.get(expr.name)
        is_worded = any(kind_of(argument.type) == WORD for argument in expr.arguments)
        if expr.name in _HASHES and all(_is_hashed(argument.type) for argument in expr.arguments):
            return self._hash(expr)
        if rule is None or is_worded or kind_of(expr.type) == WORD:
            return self.outside(expr.name, expr.arguments, expr.type)
        return rule(self, expr)

    def _sum(self, expr: Call) -> Value:
        """Compute ``+ - *`` of numbers, timestamps, dates and intervals."""
        operator = expr.name[0]
        (a, b), null = self.operands(expr)
        if kind_of(expr.type) == DOUBLE:
            return Value(self.single(f"({a} {operator} {b})", expr.type), null)
        if expr.type.kind is Kind.DECIMAL:
            return self._decimal_sum(operator, expr, (a, b), null)
        if expr.type.kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE):
            low, high = LIMITS.get(expr.type.kind, LIMITS[Kind.INT])
            return self.checked(
                null, expr.type, [f"{{v}} = {a} {operator} {b}"], f"{{v}} < {low} or {{v}} > {high}", OVERFLOW
            )
        over = self._writer.name("o")
        function = {"+": "plus", "-": "minus", "*": "times"}[operator]
        return self.checked(null, expr.type, [f"{{v}}, {over} = {function}({a}, {b})"], over, OVERFLOW)

    def _decimal_sum(self, operator: str, expr: Call, operands: tuple[str, str], null: str) -> Value:
        a, b = operands
        scales = [argument.type.scale for argument in expr.arguments]
        scale = expr.type.scale
        if operator == "*":
            if sum(scales) != scale:
                return self.outside(expr.name, expr.arguments, expr.type)
            over = self._writer.name("o")
            lines = [f"{{v}}, {over} = times({a}, {b})"]
            return self.checked(null, expr.type, lines, f"{over} or {beyond(expr.type)}", OVERFLOW)
        if any(own > scale for own in scales):
            return self.outside(expr.name, expr.arguments, expr.type)
        a, b = (
            code if own == scale else f"{code} * {10 ** (scale - own)}"
            for code, own in zip((a, b), scales, strict=True)
        )
        lines = [f"{{v}} = {a} {operator} {b}"]
        return self.checked(null, expr.type, lines, beyond(expr.type), OVERFLOW)

    def _quotient(self, expr: Call) -> Value:
        (a, b), null = self.operands(expr)
        if kind_of(expr.type) != DOUBLE:
            return self.outside(expr.name, expr.arguments, expr.type)
        name = self._writer.name("v")
        null = self._kept(null) if null else ""
        known = f"not {null} and " if null else ""
        if not _is_number(b) or float(b) == 0:
            with self._writer.deeper(f"if {known}{b} == 0.0:"):
                self._around.fail(DIVISION)
        if null:
            self._writer.line(f"{name} = 0.0")
            with self._writer.deeper(f"if not {null}:"):
                self._writer.line(f"{name} = {self.single(f'{a} / {b}', expr.type)}")
        else:
            self._writer.line(f"{name} = {self.single(f'{a} / {b}', expr.type)}")
        return Value(name, null)

    def _remainder(self, expr: Call) -> Value:
        if expr.type.kind is Kind.DECIMAL or any(a.type.kind is Kind.DECIMAL for a in expr.arguments):
            return self.outside(expr.name, expr.arguments, expr.type)
        (a, b), null = self.operands(expr)
        null = self._kept(null) if null else ""
        known = f"not {null} and " if null else ""
        if not _is_number(b) or float(b) == 0:
            with self._writer.deeper(f"if {known}{b} == 0:"):
                self._around.fail(DIVISION)
        function = {"%": "remainder", "pmod": "modulus", "div": "divided"}[expr.name]
        if kind_of(expr.type) == DOUBLE:
            function = {"%": "double_remainder", "pmod": "double_modulus"}[expr.name]
        if expr.name == "div" and not _is_number(b):
            # The smallest number by -1 is one more than the largest.
            with self._writer.deeper(f"if {known}{b} == -1 and {a} == {LIMITS[Kind.BIGINT][0]}:"):
                self._around.fail(OVERFLOW)
        return self.checked(null, expr.type, [f"{{v}} = {function}({a}, {b})"], "", 0)

    def _negative(self, expr: Call) -> Value:
        (a,), null = self.operands(expr)
        if kind_of(expr.type) == DOUBLE:
            return Value(f"(-{a})", null)
        low = LIMITS.get(expr.type.kind, LIMITS[Kind.BIGINT])[0]
        known = f"not ({null}) and " if null else ""
        with self._writer.deeper(f"if {known}{a} == {low}:"):
            self._around.fail(OVERFLOW)
        return Value(f"(-{a})", null)

    def _absolute(self, expr: Call) -> Value:
        (a,), null = self.operands(expr)
        if kind_of(expr.type) == INTEGER and expr.type.is_integral:
            known = f"not ({null}) and " if null else ""
            with self._writer.deeper(f"if {known}{a} == {LIMITS[expr.type.kind][0]}:"):
                self._around.fail(OVERFLOW)
        return Value(f"abs({a})", null)

    def _bits(self, expr: Call) -> Value:
        (a, b), null = self.operands(expr)
        return Value(f"({a} {expr.name} {b})", null)

    def _function(self, expr: Call) -> Value:
        """Return a function of doubles that NumPy has, and that has a value everywhere, if only NaN."""
        codes, null = self.operands(expr)
        return Value(f"np.{_OF_NUMPY[expr.name]}({', '.join(codes)})", null)

    def _whole(self, expr: Call) -> Value:
        """Compute floor and ceil of doubles, as BIGINT."""
        if kind_of(expr.arguments[0].type) != DOUBLE or expr.type != BIGINT:
            return self.outside(expr.name, expr.arguments, expr.type)
        (a,), null = self.operands(expr)
        over = self._writer.name("o")
        lines = [f"{{v}}, {over} = whole(np.{expr.name}({a}))"]
        return self.checked(null, expr.type, lines, over, OVERFLOW)

    def _interval(self, expr: Call) -> Value:
        """Compute a number of units, such as ``num_min minutes``."""
        if expr.arguments[0].type != BIGINT:
            return self.outside(expr.name, expr.arguments, expr.type)
        (a, unit), null = self.operands(expr)
        over = self._writer.name("o")
        return self.checked(null, expr.type, [f"{{v}}, {over} = times({a}, {unit})"], over, OVERFLOW)

    def _dates_apart(self, expr: Call) -> Value:
        (a, b), null = self.operands(expr)
        return Value(f"(({a} - {b}) * 86400000000)", null)

    def _part_of_time(self, expr: Call) -> Value:
        (a,), null = self.operands(expr)
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
        (a,), null = self.operands(expr)
        by = {"micros": 1, "millis": 1_000, "seconds": 1_000_000}[expr.name.split("_")[1]]
        if expr.name.startswith("unix"):
            return Value(a if by == 1 else f"({a} // {by})", null)
        over = self._writer.name("o")
        return self.checked(null, expr.type, [f"{{v}}, {over} = times({a}, {by})"], over, OVERFLOW)

    def _hash(self, expr: Call) -> Value:
        """Compute Spark's hash; a NULL leaves it as it is, and that of a leading text is looked up."""
        values = [self.kept(self.value(argument)) for argument in expr.arguments]
        name = self._writer.name("v")
        self._writer.line(f"{name} = {SEED}")
        prefix = _HASHES[expr.name]
        for i, (value, argument) in enumerate(zip(values, expr.arguments, strict=True)):
            narrow = argument.type.kind in (Kind.TINYINT, Kind.SMALLINT, Kind.INT, Kind.DATE, Kind.BOOLEAN)
            function = "double" if kind_of(argument.type) == DOUBLE else "int" if narrow else "long"
            line = f"{name} = {prefix}_{function}({value.code}, {name})"
            if kind_of(argument.type) == WORD and i == 0:
                line = f"{name} = {self._around.hashes(prefix, argument.type)}[{value.code}]"
            elif kind_of(argument.type) == WORD:
                seeded = (KnownValue(value, argument.type), KnownValue(Value(name), BIGINT))
                line = f"{name} = {self.outside(f'{prefix}_text', seeded, BIGINT).code}"
            if value.null:
                with self._writer.deeper(f"if not {value.null}:"):
                    self._writer.line(line)
            else:
                self._writer.line(line)
        return Value(name)

    def _logarithm(self, expr: Call) -> Value:
        """Compute a logarithm, NULL where it is undefined."""
        codes, null = self.operands(expr)
        low = "-1.0" if expr.name == "log1p" else "0.0"
        nulls = [*([null] if null else []), *(f"({code} <= {low})" for code in codes)]
        plain = [f"np.{'log' if expr.name in ('ln', 'log') else expr.name}({code})" for code in codes]
        return Value(f"({plain[1]} / {plain[0]})" if expr.name == "log" else plain[0], either(*nulls))

    def _whole_days(self, expr: Call) -> Value:
        (a,), null = self.operands(expr)
        return Value(f"({a} // 86400000000)", null)


def is_function(expr: Call) -> bool:
    """Tell whether a function is compiled or interpreted for arguments of these types."""
    if expr.name in _HASHES:
        return all(_is_hashed(argument.type) for argument in expr.arguments)
    types = [expr.type, *(argument.type for argument in expr.arguments)]
    is_outside = any(kind_of(type_) == WORD for type_ in types)
    is_outside |= expr.name == "pmod" and any(type_.kind is Kind.DECIMAL for type_ in types)
    return is_known(expr.name) or (expr.name in _RULES and not is_outside)


def _is_number(code: str) -> bool:
    """Tell whether it is known when it is written, and not less than zero."""
    return code.replace(".", "", 1).isdigit()


def _is_hashed(type_: Type) -> bool:
    """Tell whether Spark's hash of a type is known here."""
    return kind_of(type_) != WORD or type_.kind is Kind.STRING


_HASHES = {"xxhash64": "xx", "hash": "murmur"}
_OF_NUMPY = {
    **{name: name for name in ("sqrt", "exp", "expm1", "sin", "cos", "tan", "sinh", "cosh", "tanh")},
    **{name: name for name in ("cbrt", "radians", "degrees", "isnan")},
    "asin": "arcsin",
    "acos": "arccos",
    "atan": "arctan",
    "atan2": "arctan2",
    "pow": "power",
    "signum": "sign",
}
_MOVES = ("+time", "-time", "+days", "-days", "-times", "+intervals", "-intervals")

_RULES = {
    **dict.fromkeys(("+", "-", "*", *_MOVES), FunctionEmitter._sum),
    "/": FunctionEmitter._quotient,
    **dict.fromkeys(("%", "pmod", "div"), FunctionEmitter._remainder),
    "negative": FunctionEmitter._negative,
    "abs": FunctionEmitter._absolute,
    **dict.fromkeys(("&", "|", "^"), FunctionEmitter._bits),
    **dict.fromkeys(_OF_NUMPY, FunctionEmitter._function),
    **dict.fromkeys(("ln", "log", "log10", "log2", "log1p"), FunctionEmitter._logarithm),
    "days": FunctionEmitter._whole_days,
    **dict.fromkeys(("floor", "ceil"), FunctionEmitter._whole),
    "interval": FunctionEmitter._interval,
    "-dates": FunctionEmitter._dates_apart,
    **dict.fromkeys(
        ("hour", "minute", "second", "year", "month", "day", "dayofweek", "quarter", "dayofyear"),
        FunctionEmitter._part_of_time,
    ),
    **dict.fromkeys(
        (
            *("unix_micros", "unix_millis", "unix_seconds"),
            *("timestamp_micros", "timestamp_millis", "timestamp_seconds"),
        ),
        FunctionEmitter._of_instant,
    ),
}
