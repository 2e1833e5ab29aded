"""Expressions of a body as generated source.

Conditions are written so that what stands behind a false one is not computed.
"""

from __future__ import annotations

from millstream.catalog.functions import is_deterministic
from millstream.codegen.core.function_emitter import FunctionEmitter, is_function
from millstream.codegen.core.value_emitter import KnownValue, Value, either
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Call, Case, Cast, Constant, Expr
from millstream.ir.value_kinds import TRUTH, kind_of, zero
from millstream.types import Type

_LONGEST = 200
"""Parts of an expression that is looked for among those computed before: each part makes that slower."""


class ExpressionEmitter(FunctionEmitter):
    """Emitter of expressions."""

    # ------------------------------------------------------------ values

    def value(self, expr: Expr | KnownValue) -> Value:
        """Compute a value; one of arguments and columns only is computed once."""
        if isinstance(expr, KnownValue | typed_nodes.Parameter):
            return self._value(expr)
        used = self._settled(expr)
        if used is None:
            # Python reads no more than so many parentheses in each other.
            return self.kept(self._value(expr))
        if not used:
            return self._value(expr)
        # The text tells 0.0 and -0.0 apart, which are equal.
        what = repr(expr), used
        known: Value | None = self._writer.recall(what)
        if known is None:
            known = self.kept(self._value(expr))
            self._writer.remember(what, known)
        return known

    def _settled(self, expr: Expr) -> tuple[Value, ...] | None:
        """Return the values in an expression if all of them stay the same, else (); None if it is long."""
        if not isinstance(expr, Call | Cast | typed_nodes.Column):
            return ()
        used: dict[Value, None] = {}
        for number, part in enumerate(typed_nodes.walk(expr)):
            if number == _LONGEST:
                return None
            match part:
                case typed_nodes.Parameter() | typed_nodes.Column() | typed_nodes.Oldest():
                    value = self._around.settled(part)
                    if value is None:
                        return ()
                    used[value] = None
                case Call(name, arguments):
                    if not is_deterministic(name, len(arguments)):
                        return ()
                case Constant() | Cast():
                    pass
                case _:
                    return ()
        return tuple(used)

    def _may_be_null(self, expr: Expr) -> bool:
        """Tell whether an expression can be NULL, as far as its form tells."""
        match expr:
            case Constant(value):
                return value is None
            case typed_nodes.SqlCode() | typed_nodes.Exists() | Call("isnull" | "<=>" | "hash" | "xxhash64"):
                return False
            case typed_nodes.Parameter() | typed_nodes.Column() | typed_nodes.Oldest():
                settled = self._around.settled(expr)
                return settled is None or bool(settled.null)
            case Call("coalesce", arguments):
                return all(map(self._may_be_null, arguments))
            case Case(branches, otherwise):
                values = [otherwise, *(value for _, value in branches)]
                return any(value is None or self._may_be_null(value) for value in values)
            case Call(_, arguments):
                return any(map(self._may_be_null, arguments))
            case Cast(argument, _, gently):
                return gently or self._may_be_null(argument)
            case _:
                return True

    def _value(self, expr: Expr | KnownValue) -> Value:
        match expr:
            case KnownValue(value):
                return value
            case Constant():
                return self._constant(expr)
            case typed_nodes.Parameter(index):
                return self._around.parameter(index)
            case typed_nodes.Column():
                return self._around.column(expr)
            case typed_nodes.SqlCode():
                return Value("sqlcode")
            case typed_nodes.Oldest(position, index, type_):
                return self._around.oldest(self.value(position), index, type_)
            case typed_nodes.GroupColumn(index):
                return self._around.grouped(index)
            case typed_nodes.Scalar(query):
                return self._around.scalar(query)
            case Case():
                return self._case(expr)
            case Cast():
                return self.cast(expr)
            case Call() if kind_of(expr.type) == TRUTH and expr.name in _CONDITIONS:
                return self._as_value(expr)
            case typed_nodes.Exists() | typed_nodes.InQuery():
                return self._as_value(expr)
            case Call("coalesce"):
                return self._coalesce(expr)
            case Call("greatest" | "least"):
                return self._extreme(expr)
            case Call():
                return self.call(expr)
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
        """Return a condition as a value, of which both sides must be known."""
        if not self._may_be_null(expr):
            return Value(self.truth(expr))
        yes = self._kept(self.truth(expr))
        no = self.falsity(expr)
        return Value(yes, self._kept(f"not ({yes} or {no})"))

    # ------------------------------------------------------------ conditions

    def truth(self, expr: Expr) -> str:
        """Return a condition that is true where the expression is, and not where it is false or NULL."""
        match expr:
            case Constant(value):
                return str(value is True)
            case typed_nodes.Exists(query):
                return self._around.exists(query)
            case typed_nodes.InQuery(values):
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
                tests = [self.test("=", value, self.kept(self.value(o)), a.type) for o in others]
                return either(*tests) if tests else "False"
            case Call(name, (a, b)) if name in _COMPARISONS:
                return self.test(name, self.value(a), self.value(b), a.type)
        value = self.value(expr)
        return f"({value.code} and not {value.null})" if value.null else value.code

    def falsity(self, expr: Expr) -> str:
        """Return a condition that is true where the expression is false, so not where it is NULL."""
        match expr:
            case Constant(value):
                return str(value is False)
            case typed_nodes.Exists(query):
                return f"(not {self._around.exists(query)})"
            case typed_nodes.InQuery(values):
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
                tests = [self.test("<>", value, self.kept(self.value(o)), a.type) for o in others]
                return f"({' and '.join(tests)})" if tests else "True"
            case Call("<=>", (a, b)):
                return f"(not {self.test('<=>', self.value(a), self.value(b), a.type)})"
            case Call(name, (a, b)) if name in _COMPARISONS:
                return self.test(_OPPOSITES[name], self.value(a), self.value(b), a.type)
        value = self.value(expr)
        null = f" and not {value.null}" if value.null else ""
        return f"(not {value.code}{null})"

    def _shortly(self, first: str, second: Expr, word: str, side: object) -> str:
        """Join two conditions; the second is computed only where it matters."""
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

    def test(self, operator: str, a: Value, b: Value, type_: Type) -> str:
        if operator == "<=>":
            a, b = self.kept(a), self.kept(b)
            same = self.plain_test("=", a.code, b.code, type_)
            if not a.null and not b.null:
                return same
            one, other = a.null or "False", b.null or "False"
            return f"(({one} and {other}) or (not {one} and not {other} and {same}))"
        plain = self.plain_test(operator, a.code, b.code, type_)
        nulls = [f"not {null}" for null in (a.null, b.null) if null]
        return f"({' and '.join([*nulls, plain])})" if nulls else plain

    def plain_test(self, operator: str, a: str, b: str, type_: Type) -> str:
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
        nullable = self._may_be_null(expr)
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
        """Return the first that is not NULL; those behind it are not computed."""
        first, *others = expr.arguments
        value = self.value(first)
        if not value.null:
            return value
        result, null = self._writer.name("v"), self._writer.name("n")
        self._assign(result, null, value)
        for other in others:
            with self._writer.deeper(f"if {null}:"):
                value = self.value(other)
                self._assign(result, null, value)
            if not value.null:
                return Value(result)
        return Value(result, null)

    def _extreme(self, expr: Call) -> Value:
        """Compute greatest and least, which ignore NULLs."""
        result, null = self._writer.name("v"), self._writer.name("n")
        self._writer.lines(f"{result} = {zero(kind_of(expr.type))}", f"{null} = True")
        operator = ">" if expr.name == "greatest" else "<"
        for argument in expr.arguments:
            value = self.kept(self.value(argument))
            better = self.plain_test(operator, value.code, result, expr.type)
            known = f"not {value.null} and " if value.null else ""
            with self._writer.deeper(f"if {known}({null} or {better}):"):
                self._writer.lines(f"{result} = {value.code}", f"{null} = False")
        return Value(result, null)


def is_supported(expr: Call) -> bool:
    """Tell whether a call can be generated."""
    return expr.name in _CONDITIONS or expr.name in ("coalesce", "greatest", "least") or is_function(expr)


def _is_odd(value: float) -> bool:
    return value != value or value in (float("inf"), float("-inf"))


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
