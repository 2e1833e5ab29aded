"""Elaborator: the types of expressions and their typed form, with explicit conversions."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types.body_functions import CALLS, UNITS
from millstream.analysis.types.coercion import as_decimal
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.types.expression_types import SPECIAL_CALLS, Typer
from millstream.analysis.types.function_types.function_call import beside
from millstream.analysis.types.implicit_casts import converted, together
from millstream.analysis.types.operator_types import ARITHMETIC
from millstream.analysis.types.quantities import quantity
from millstream.errors import AnalysisError
from millstream.ir.typed_nodes import Call, Case, Cast, Constant, Expr
from millstream.quantity import Duration
from millstream.types import BIGINT, BOOLEAN, DATE, DOUBLE, NULL, STRING, TIMESTAMP, Kind, Type

if TYPE_CHECKING:
    from millstream.catalog import Catalog


class Elaborator(Typer, ABC):
    """Typer that also makes the typed form of expressions."""

    where: ClassVar[str]
    """Place of the expressions, for messages."""

    def __init__(
        self,
        catalog: Catalog,
        *,
        column: Callable[[exp.Column], Type | None],
        call: Callable[[str, exp.Expr, list[Type]], Type | None],
        node: Callable[[exp.Expr], Type | None] = lambda node: None,
        query: Callable[[exp.Query], Type],
        names: Callable[[], Collection[str]],
        remember: bool = True,
    ) -> None:
        super().__init__(column=column, call=call, node=node, query=query, names=names, remember=remember)
        self._catalog = catalog

    # ------------------------------------------------------------ for subclasses

    @abstractmethod
    def column(self, node: exp.Column) -> Expr: ...

    @abstractmethod
    def dot(self, node: exp.Dot) -> Expr: ...

    def found(self, node: exp.Expr) -> Expr | None:
        """Return the form of a node that has a meaning as a whole: a key of a group, an aggregate."""
        return None

    def exists(self, node: exp.Exists) -> Expr:
        raise self.refused(node, "EXISTS")

    def subquery(self, node: exp.Expr) -> Expr:
        raise self.refused(node, "a query")

    def among(self, node: exp.In) -> Expr:
        """Make IN with a query."""
        raise self.refused(node, "IN with a query")

    # ------------------------------------------------------------ all nodes

    def of(self, node: exp.Expr) -> Expr:
        """Make the typed form of an expression, or raise the reason why it has none."""
        found = self.found(node)
        if found is not None:
            return found
        rule = next((_RULES[class_] for class_ in type(node).__mro__ if class_ in _RULES), None)
        if rule is None:
            raise self.refused(node, f"'{node.key.upper()}'")
        return rule(self, node)

    def as_(self, node: exp.Expr, wanted: Type) -> Expr:
        return converted(self.of(node), wanted)

    def condition(self, node: exp.Expr) -> Expr:
        return self.as_(node, BOOLEAN)

    def conditions(self, node: exp.Expr | None) -> tuple[Expr, ...]:
        """Make a condition, split at its ANDs."""
        if node is None:
            return ()
        node = node.unnest()
        if isinstance(node, exp.And):
            return (*self.conditions(node.left), *self.conditions(node.right))
        return (self.condition(node),)

    def known_type(self, node: exp.Expr) -> Type:
        type_ = self.type_of(node)
        if not type_.is_known:
            raise error_at(
                node,
                f"the type of '{shown(node)}' cannot be told",
                hint="declare the types of parameters and columns",
            )
        return type_

    def refused(self, node: exp.Expr, what: str) -> AnalysisError:
        return error_at(node, f"{what} cannot be used {self.where} yet")

    # ------------------------------------------------------------ literals

    def literal(self, node: exp.Literal) -> Expr:
        type_ = self.known_type(node)
        if node.is_string:
            return Constant(node.name, STRING)
        if type_.kind is Kind.DECIMAL:
            return Constant(int(Decimal(node.name).scaleb(type_.scale)), type_)
        return Constant(int(node.name) if type_.is_integral else float(node.name), type_)

    def interval(self, node: exp.Interval) -> Expr:
        type_ = self.known_type(node)
        unit = node.args.get("unit")
        if isinstance(node.this, exp.Literal):
            length = quantity(node)
            if isinstance(length, Duration) and not length.months:
                return Constant(length.microseconds, type_)
        name = unit.name.lower().removesuffix("s") if unit is not None else ""
        if name not in UNITS or type_.kind is not Kind.DAY_TIME_INTERVAL:
            raise self.refused(node, f"an interval of {name or 'this kind'}")
        amount = self.of(node.this)
        if not amount.type.is_integral:
            raise self.refused(node, f"a length of type {amount.type} for an interval")
        return Call("interval", (converted(amount, BIGINT), Constant(UNITS[name], BIGINT)), type_)

    def cast(self, node: exp.Cast) -> Expr:
        value, wanted = self.of(node.this), from_datatype(node.to)
        if isinstance(node, exp.TryCast):
            return Cast(value, wanted, gently=True)
        return converted(value, wanted)

    # ------------------------------------------------------------ operators

    def arithmetic(self, node: exp.Binary) -> Expr:
        return self._computed(ARITHMETIC[type(node)], (node.left, node.right), self.known_type(node))

    def _computed(self, operator: str, operands: tuple[exp.Expr, exp.Expr], result: Type) -> Expr:
        left, right = (self.of(operand) for operand in operands)
        if Kind.STRING in (left.type.kind, right.type.kind) and result.is_numeric:
            left, right = converted(left, result), converted(right, result)
        if result.kind is Kind.DECIMAL or (
            operator == "div" and Kind.DECIMAL in (left.type.kind, right.type.kind)
        ):
            types = (
                beside(right.type, left.type, operands[0]),
                beside(left.type, right.type, operands[1]),
            )
            left, right = (
                converted(value, as_decimal(type_)) for value, type_ in zip((left, right), types, strict=True)
            )
            return Call(operator, (left, right), result)
        if result.is_numeric and left.type.is_numeric and right.type.is_numeric:
            common = result if operator != "div" else BIGINT
            return Call(operator, (converted(left, common), converted(right, common)), result)
        return self._of_times(operator, left, right, result)

    def _of_times(self, operator: str, left: Expr, right: Expr, result: Type) -> Expr:
        """Make arithmetic with timestamps, dates and intervals, in microseconds or (dates) days."""
        a, b = left.type, right.type
        if NULL in (a, b):
            return Constant(None, result)
        if operator in "+-" and result.is_time:
            if b.is_time:
                left, right, a, b = right, left, b, a
            if result == DATE:
                days = right if b.is_integral else Call("days", (right,), BIGINT)
                return Call(f"{operator}days", (left, converted(days, BIGINT)), result)
            return Call(f"{operator}time", (converted(left, result), right), result)
        if operator == "-" and (a.is_time or b.is_time):
            if a == b == DATE:
                return Call("-dates", (left, right), result)
            wanted = a if a == b else TIMESTAMP
            return Call("-times", (converted(left, wanted), converted(right, wanted)), result)
        if a.is_interval and b.is_interval and operator in "+-":
            return Call(f"{operator}intervals", (left, right), result)
        if operator == "div" and a.is_interval and b.is_interval:
            return Call("div", (converted(left, BIGINT), converted(right, BIGINT)), BIGINT)
        if operator == "*" and b.is_interval:
            left, right, a, b = right, left, b, a
        if operator == "*" and a.kind is Kind.DAY_TIME_INTERVAL and b.is_integral:
            return Call("interval", (converted(right, BIGINT), left), result)
        if operator in "*/" and a.kind is Kind.DAY_TIME_INTERVAL:
            return Call(f"{operator}interval", (left, converted(right, DOUBLE)), result)
        raise AnalysisError(f"{a} {operator} {b} cannot be computed {self.where} yet")

    def negative(self, node: exp.Neg) -> Expr:
        type_ = self.known_type(node)
        value = self.as_(node.this, type_)
        if isinstance(value, Constant) and value.value is not None:
            return Constant(-value.value, type_)
        return Call("negative", (value,), type_)

    def comparison(self, node: exp.Binary) -> Expr:
        return self._compared(_COMPARISONS[type(node)], node.left, node.right)

    def _compared(self, operator: str, left: exp.Expr, right: exp.Expr) -> Expr:
        return Call(operator, together(self.of(left), self.of(right)), BOOLEAN)

    def connective(self, name: str, node: exp.Binary) -> Expr:
        return Call(name, (self.condition(node.left), self.condition(node.right)), BOOLEAN)

    def negation(self, node: exp.Not) -> Expr:
        return Call("not", (self.condition(node.this),), BOOLEAN)

    def distinct(self, node: exp.NullSafeNEQ) -> Expr:
        return Call("not", (self._compared("<=>", node.left, node.right),), BOOLEAN)

    def is_(self, node: exp.Is) -> Expr:
        if isinstance(node.expression, exp.Null):
            return Call("isnull", (self.of(node.this),), BOOLEAN)
        wanted = Constant(bool(node.expression.this), BOOLEAN)
        return Call("<=>", (self.condition(node.this), wanted), BOOLEAN)

    def between(self, node: exp.Between) -> Expr:
        value = self.of(node.this)
        low, high = (self.of(node.args[name]) for name in ("low", "high"))
        return Call(
            "and",
            (
                Call(">=", together(value, low), BOOLEAN),
                Call("<=", together(value, high), BOOLEAN),
            ),
            BOOLEAN,
        )

    def in_(self, node: exp.In) -> Expr:
        if node.args.get("query") is not None:
            return self.among(node)
        values = together(self.of(node.this), *(self.of(element) for element in node.expressions))
        return Call("in", values, BOOLEAN)

    def case(self, node: exp.Case) -> Expr:
        result = self.known_type(node)
        branches = []
        for branch in node.args["ifs"]:
            if node.this is None:
                condition = self.condition(branch.this)
            else:
                condition = self._compared("=", node.this, branch.this)
            branches.append((condition, self.as_(branch.args["true"], result)))
        default = node.args.get("default")
        return Case(tuple(branches), None if default is None else self.as_(default, result), result)

    def concatenation(self, node: exp.DPipe) -> Expr:
        if self.known_type(node).kind is not Kind.STRING:
            raise self.refused(node, f"|| on {self.known_type(node)}")
        parts = tuple(self.as_(part, STRING) for part in node.flatten(unnest=False))
        return Call("concat", parts, STRING)

    def like(self, node: exp.Binary) -> Expr:
        if isinstance(node.expression, exp.Any | exp.All):
            raise self.refused(node, f"{node.key.upper()} with ANY or ALL")
        name = {exp.Like: "like", exp.ILike: "ilike", exp.RegexpLike: "rlike"}[type(node)]
        test = Call(name, (self.as_(node.this, STRING), self.as_(node.expression, STRING)), BOOLEAN)
        return Call("not", (test,), BOOLEAN) if node.args.get("negate") else test

    def bitwise(self, node: exp.Binary) -> Expr:
        result = self.known_type(node)
        return Call(_BITS[type(node)], (self.as_(node.left, result), self.as_(node.right, result)), result)

    # ------------------------------------------------------------ calls

    def function(self, node: exp.Anonymous) -> Expr:
        return self.called(node.name.lower(), node, node.expressions)

    def special(self, node: exp.Expr) -> Expr:
        name, keys = SPECIAL_CALLS[type(node)]
        written = [node.args[key] for key in keys if node.args.get(key) is not None]
        return self.called(name, node, written)

    def extract(self, node: exp.Extract) -> Expr:
        return self.called(node.name.lower(), node, [node.expression])

    def called(self, name: str, node: exp.Expr, written: Sequence[exp.Expr]) -> Expr:
        if name in ("pi", "e"):
            return Constant(math.pi if name == "pi" else math.e, DOUBLE)
        if name == "mod" and len(written) == 2:
            return self._computed("%", (written[0], written[1]), self.known_type(node))
        rule = CALLS.get(name)
        if rule is None or self._catalog.function(name) is not None:
            raise self.refused(node, f"the function '{name}'")
        arguments = tuple(self.of(argument) for argument in written)
        return rule(name, arguments, self.known_type(node))


def shown(node: exp.Expr) -> str:
    return (
        ".".join(part.name for part in node.parts) if isinstance(node, exp.Column) else node.name or node.key
    )


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
}
_BITS: dict[type[exp.Expr], str] = {exp.BitwiseAnd: "&", exp.BitwiseOr: "|", exp.BitwiseXor: "^"}


_RULES: dict[type, Callable[[Elaborator, Any], Expr]] = {
    exp.Column: lambda values, node: values.column(node),
    exp.Dot: lambda values, node: values.dot(node),
    exp.Literal: Elaborator.literal,
    exp.Boolean: lambda values, node: Constant(bool(node.this), BOOLEAN),
    exp.Null: lambda values, node: Constant(None, NULL),
    exp.Interval: Elaborator.interval,
    exp.Cast: Elaborator.cast,
    exp.Paren: lambda values, node: values.of(node.this),
    exp.Alias: lambda values, node: values.of(node.this),
    **dict.fromkeys(ARITHMETIC, Elaborator.arithmetic),
    exp.Neg: Elaborator.negative,
    **dict.fromkeys(_BITS, Elaborator.bitwise),
    **dict.fromkeys(_COMPARISONS, Elaborator.comparison),
    exp.NullSafeNEQ: Elaborator.distinct,
    exp.And: lambda values, node: values.connective("and", node),
    exp.Or: lambda values, node: values.connective("or", node),
    exp.Not: Elaborator.negation,
    exp.Is: Elaborator.is_,
    exp.Between: Elaborator.between,
    exp.In: Elaborator.in_,
    exp.Exists: lambda values, node: values.exists(node),
    exp.Query: lambda values, node: values.subquery(node),
    exp.Subquery: lambda values, node: values.subquery(node),
    exp.Case: Elaborator.case,
    exp.DPipe: Elaborator.concatenation,
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike), Elaborator.like),
    exp.Anonymous: lambda values, node: values.function(node),
    **dict.fromkeys((exp.If, exp.Trim, exp.Substring, exp.StrPosition), Elaborator.special),
    exp.Extract: Elaborator.extract,
}
