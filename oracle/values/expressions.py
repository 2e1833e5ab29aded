"""Scalar expressions: from text to a function of a row.

An expression is parsed again from its text (substitution discards its tree), typed by the analysis, and
turned into a function step by step. A node that is not in the tables below is refused by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sqlglot import exp

from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.analysis.types.coercion import common_type_of
from millstream.analysis.types.data_types import from_datatype
from millstream.analysis.types.expression_types import Typer
from millstream.analysis.types.quantities import quantity
from millstream.quantity import Duration
from millstream.syntax import parse_expression
from millstream.types import BIGINT, BOOLEAN, STRING, TIMESTAMP, TIMESTAMP_NTZ, Kind, Type
from oracle.errors import NotInterpreted
from oracle.values.arithmetic import absolute, compute, negated
from oracle.values.casts import cast, try_cast
from oracle.values.logic import COMPARISONS, both, compared, either, equal, is_among, negation
from oracle.values.time_units import moved_by_units, units_between
from oracle.values.values import MICROSECOND, Months, Value, order_key

Row = Sequence[Value]
Function = Callable[[Row], Value]


def compiled(expr: Expr, schema: Sequence[ColumnRef]) -> Function:
    """Return the value of an expression as a function of a row with these columns."""
    return _Compiler(schema).function(parse_expression(expr.sql))


def holds(condition: Expr, schema: Sequence[ColumnRef]) -> Callable[[Row], bool]:
    """Return whether a condition is true for a row; NULL is not."""
    value = compiled(condition, schema)
    return lambda row: value(row) is True


def constant(text: str, type_: Type) -> Value:
    """Return a constant expression as a value of a type."""
    compiler = _Compiler(())
    tree = parse_expression(text)
    return cast(compiler.function(tree)(()), compiler.type_of(tree), type_)


def column_key(column: ColumnRef) -> tuple[str, str]:
    """Return the key of a column; names are case-insensitive."""
    return column.relation.lower(), column.name.lower()


class _Compiler:
    def __init__(self, schema: Sequence[ColumnRef]) -> None:
        self._positions: dict[tuple[str, str], int] = {}
        for i, column in enumerate(schema):
            self._positions.setdefault(column_key(column), i)
        self._schema = schema
        self._typer = Typer(column=self._type_of_column)

    def function(self, node: exp.Expr) -> Function:
        for class_ in type(node).__mro__:
            rule = _RULES.get(class_)
            if rule is not None:
                return rule(self, node)
        raise NotInterpreted(f"the expression {node.key.upper()}")

    def type_of(self, node: exp.Expr) -> Type:
        return self._typer.type_of(node)

    def converted(self, node: exp.Expr, target: Type) -> Function:
        """Return the value of a part, in the type that its neighbours require."""
        value, source = self.function(node), self.type_of(node)
        return value if source == target else lambda row: cast(value(row), source, target)

    def together(self, *nodes: exp.Expr) -> list[Function]:
        """Return several parts in their common type, for a comparison."""
        types = [self.type_of(node) for node in nodes]
        # Decimals of different scale are compared as numbers.
        if all(type_.kind is Kind.DECIMAL or type_.is_integral for type_ in types):
            return [self.function(node) for node in nodes]
        common = common_type_of(types)
        if common is None:
            raise NotInterpreted(f"a comparison of {' and '.join(map(str, types))}")
        return [self.converted(node, common) for node in nodes]

    def _position(self, node: exp.Column) -> int:
        parts = [part.name.lower() for part in node.parts]
        key = (parts[0], parts[1]) if len(parts) == 2 else ("", parts[0])
        if len(parts) > 2 or key not in self._positions:
            raise NotInterpreted(f"the name '{'.'.join(parts)}'")
        return self._positions[key]

    # ------------------------------------------------------------ columns and literals

    def _type_of_column(self, node: exp.Column) -> Type:
        field = self._field(node)
        return self._schema[self._position(node)].type if field is None else field[1]

    def _field(self, node: exp.Column) -> tuple[Function, Type] | None:
        """Return a field of a row, which is a tuple, for a name that is no column of a relation."""
        parts = [part.name.lower() for part in node.parts]
        position = self._positions.get(("", parts[0])) if len(parts) == 2 else None
        if position is None or tuple(parts) in self._positions:
            return None
        fields = self._schema[position].type.fields
        at = [field.name.lower() for field in fields].index(parts[1])
        return lambda row: None if (whole := row[position]) is None else whole[at], fields[at].type

    def column(self, node: exp.Column) -> Function:
        field = self._field(node)
        if field is not None:
            return field[0]
        position = self._position(node)
        return lambda row: row[position]

    def literal(self, node: exp.Literal) -> Function:
        type_ = self.type_of(node)
        # The absolute value of the smallest integer fits no type by itself: the minus is applied with it.
        text = node.name
        value = text if node.is_string else int(text) if type_.is_integral else cast(text, STRING, type_)
        return lambda row: value

    def interval(self, node: exp.Interval) -> Function:
        if not isinstance(node.this, exp.Literal) or not isinstance(node.args.get("unit"), exp.Var):
            raise NotInterpreted("an interval that is no plain literal")
        length = quantity(node)
        assert isinstance(length, Duration)
        value = Months(length.months) if length.months else length.microseconds * MICROSECOND
        return lambda row: value

    def cast(self, node: exp.Cast) -> Function:
        value, source, target = self.function(node.this), self.type_of(node.this), from_datatype(node.to)
        convert = try_cast if isinstance(node, exp.TryCast) else cast
        return lambda row: convert(value(row), source, target)

    def inside(self, node: exp.Paren) -> Function:
        return self.function(node.this)

    # ------------------------------------------------------------ operators

    def arithmetic(self, operator: str, left: exp.Expr, right: exp.Expr, result: Type) -> Function:
        a, b = self.function(left), self.function(right)
        types = self.type_of(left), self.type_of(right)
        return lambda row: compute(operator, a(row), b(row), types, result)

    def comparison(self, node: exp.Binary) -> Function:
        a, b = self.together(node.left, node.right)
        test = COMPARISONS[type(node)]
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            return lambda row: test(order_key(a(row)), order_key(b(row)))
        return lambda row: compared(test, a(row), b(row))

    def conjunction(self, node: exp.And) -> Function:
        a, b = self.converted(node.left, BOOLEAN), self.converted(node.right, BOOLEAN)
        # The operand after a false condition is not evaluated: the condition may guard against its error.
        return lambda row: False if (first := a(row)) is False else both(first, b(row))

    def disjunction(self, node: exp.Or) -> Function:
        a, b = self.converted(node.left, BOOLEAN), self.converted(node.right, BOOLEAN)
        return lambda row: True if (first := a(row)) is True else either(first, b(row))

    def negation(self, node: exp.Not) -> Function:
        value = self.converted(node.this, BOOLEAN)
        return lambda row: negation(value(row))

    def is_(self, node: exp.Is) -> Function:
        if isinstance(node.expression, exp.Null):
            value = self.function(node.this)
            return lambda row: value(row) is None
        value, expected = self.converted(node.this, BOOLEAN), bool(node.expression.this)
        return lambda row: value(row) is expected

    def between(self, node: exp.Between) -> Function:
        ends = node.args["low"], node.args["high"]
        low, high = (self.together(node.this, end) for end in ends)
        at_least, at_most = COMPARISONS[exp.GTE], COMPARISONS[exp.LTE]
        return lambda row: both(
            compared(at_least, low[0](row), low[1](row)), compared(at_most, high[0](row), high[1](row))
        )

    def in_(self, node: exp.In) -> Function:
        if node.args.get("query") is not None:
            raise NotInterpreted("IN with a query")
        value, *elements = self.together(node.this, *node.expressions)
        return lambda row: is_among(value(row), [element(row) for element in elements])

    def case(self, node: exp.Case) -> Function:
        result = self.type_of(node)
        branches: list[tuple[Function, Function]] = []
        for branch in node.args["ifs"]:
            if node.this is None:
                test = self.function(branch.this)
            else:
                a, b = self.together(node.this, branch.this)
                test = _equality(a, b)
            branches.append((test, self.converted(branch.args["true"], result)))
        default = node.args.get("default")
        otherwise = self.converted(default, result) if default is not None else _null

        def chosen(row: Row) -> Value:
            for test, value in branches:
                if test(row) is True:
                    return value(row)
            return otherwise(row)

        return chosen

    def concatenation(self, node: exp.DPipe) -> Function:
        if self.type_of(node).kind is not Kind.STRING:
            raise NotInterpreted(f"|| on {self.type_of(node)}")
        parts = [self.converted(part, STRING) for part in node.flatten(unnest=False)]

        def joined(row: Row) -> Value:
            values = [part(row) for part in parts]
            return None if None in values else "".join(values)

        return joined

    # ------------------------------------------------------------ calls

    def call(self, node: exp.Anonymous) -> Function:
        name = node.name.lower()
        if name not in _CALLS:
            raise NotInterpreted(f"the function '{node.name}'")
        return _CALLS[name](self, node)

    def coalesce(self, node: exp.Anonymous) -> Function:
        result = self.type_of(node)
        values = [self.converted(argument, result) for argument in node.expressions]

        def first(row: Row) -> Value:
            return next((result for value in values if (result := value(row)) is not None), None)

        return first

    def array(self, node: exp.Anonymous) -> Function:
        element = self.type_of(node).element
        assert element is not None
        values = [self.converted(argument, element) for argument in node.expressions]
        return lambda row: [value(row) for value in values]

    def if_(self, node: exp.Anonymous) -> Function:
        result = self.type_of(node)
        test = self.function(node.expressions[0])
        yes, no = (self.converted(argument, result) for argument in node.expressions[1:])
        return lambda row: yes(row) if test(row) is True else no(row)

    def text(self, change: Callable[[str], Value], node: exp.Anonymous) -> Function:
        value = self.converted(node.expressions[0], STRING)
        return lambda row: None if (result := value(row)) is None else change(result)

    def moved(self, node: exp.Anonymous) -> Function:
        unit, amount, time = self._with_unit(node)
        count, start = self.converted(amount, BIGINT), self.converted(time, self.type_of(node))

        def later(row: Row) -> Value:
            by, at = count(row), start(row)
            return None if by is None or at is None else moved_by_units(unit, by, at)

        return later

    def difference(self, node: exp.Anonymous) -> Function:
        unit, *times = self._with_unit(node)
        if unit == "dayofyear":
            # Spark refuses it when the first row comes.
            raise NotInterpreted(f"the function '{node.name}' in days of the year")
        # Spark counts on timestamps of the session's zone, which is UTC.
        target = TIMESTAMP_NTZ if all(self.type_of(t) == TIMESTAMP_NTZ for t in times) else TIMESTAMP
        first, last = (self.converted(time, target) for time in times)

        def units(row: Row) -> Value:
            a, b = first(row), last(row)
            return None if a is None or b is None else units_between(unit, a, b)

        return units

    def _with_unit(self, node: exp.Anonymous) -> tuple[str, exp.Expr, exp.Expr]:
        if not isinstance(node.expressions[0], exp.Var):
            raise NotInterpreted(f"the function '{node.name}' without a unit")
        unit, first, second = node.expressions
        return unit.name.lower(), first, second

    def unary(self, change: Callable[[Value, Type], Value], node: exp.Expr, operand: exp.Expr) -> Function:
        value, given, result = self.function(operand), self.type_of(operand), self.type_of(node)
        return lambda row: change(cast(value(row), given, result), result)


def _null(row: Row) -> Value:
    return None


def _equality(a: Function, b: Function) -> Function:
    return lambda row: equal(a(row), b(row))


def _binary(operator: str) -> Callable[[_Compiler, Any], Function]:
    return lambda compiler, node: compiler.arithmetic(operator, node.left, node.right, compiler.type_of(node))


_RULES: dict[type, Callable[[_Compiler, Any], Function]] = {
    exp.Column: _Compiler.column,
    exp.Literal: _Compiler.literal,
    exp.Boolean: lambda compiler, node: lambda row: bool(node.this),
    exp.Null: lambda compiler, node: _null,
    exp.Interval: _Compiler.interval,
    exp.Cast: _Compiler.cast,
    exp.Paren: _Compiler.inside,
    exp.Add: _binary("+"),
    exp.Sub: _binary("-"),
    exp.Mul: _binary("*"),
    exp.Div: _binary("/"),
    exp.Mod: _binary("%"),
    exp.IntDiv: _binary("div"),
    exp.Neg: lambda compiler, node: compiler.unary(negated, node, node.this),
    **dict.fromkeys(COMPARISONS, _Compiler.comparison),
    exp.And: _Compiler.conjunction,
    exp.Or: _Compiler.disjunction,
    exp.Not: _Compiler.negation,
    exp.Is: _Compiler.is_,
    exp.Between: _Compiler.between,
    exp.In: _Compiler.in_,
    exp.Case: _Compiler.case,
    exp.DPipe: _Compiler.concatenation,
    exp.Anonymous: _Compiler.call,
}

_CALLS: dict[str, Callable[[_Compiler, exp.Anonymous], Function]] = {
    "coalesce": _Compiler.coalesce,
    "if": _Compiler.if_,
    "array": _Compiler.array,
    "abs": lambda compiler, node: compiler.unary(absolute, node, node.expressions[0]),
    "mod": lambda compiler, node: compiler.arithmetic(
        "%", node.expressions[0], node.expressions[1], compiler.type_of(node)
    ),
    **dict.fromkeys(("dateadd", "date_add", "timestampadd"), _Compiler.moved),
    **dict.fromkeys(("datediff", "date_diff", "timestampdiff"), _Compiler.difference),
    "upper": lambda compiler, node: compiler.text(str.upper, node),
    "lower": lambda compiler, node: compiler.text(str.lower, node),
    "length": lambda compiler, node: compiler.text(len, node),
}
