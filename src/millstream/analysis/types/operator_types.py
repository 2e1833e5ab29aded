"""The types of operators: arithmetic, comparisons, conditions, CASE."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types import coercion
from millstream.analysis.types.arithmetic_types import arithmetic, bitwise
from millstream.analysis.types.function_types.function_call import beside
from millstream.analysis.types.function_types.scalars import concatenated
from millstream.analysis.types.literal_checks import check_literal
from millstream.types import BOOLEAN, INT, NULL, STRING, UNKNOWN, Type

if TYPE_CHECKING:
    from millstream.analysis.types.expression_types import Typer

ARITHMETIC: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
}

_CONDITIONS = (BOOLEAN, STRING, NULL, UNKNOWN)


def _arithmetic(typer: Typer, node: exp.Binary) -> Type:
    operator = ARITHMETIC[type(node)]
    left, right = typer.type_of(node.left), typer.type_of(node.right)
    result = arithmetic(operator, beside(right, left, node.left), beside(left, right, node.right))
    if result is None:
        hint = None
        if operator in "+-" and (left.is_time and right.is_numeric):
            hint = "use an interval, such as INTERVAL 5 SECONDS"
        raise error_at(node, f"cannot compute {left} {operator} {right}", hint=hint)
    for operand, beside_it in ((node.left, right), (node.right, left)):
        if beside_it.is_numeric:
            check_literal(operand, beside_it)
    return result


def _bitwise(typer: Typer, node: exp.Binary) -> Type:
    left, right = typer.type_of(node.left), typer.type_of(node.right)
    result = bitwise(left, right)
    if result is None:
        raise error_at(node, f"bitwise operators are for whole numbers, not for {left} and {right}")
    return result


def _bitwise_not(typer: Typer, node: exp.BitwiseNot) -> Type:
    type_ = typer.type_of(node.this)
    if type_ == NULL:
        return INT
    if type_.is_known and not type_.is_integral:
        raise error_at(node, f"bitwise operators are for whole numbers, not for {type_}")
    return type_


def _concatenation(typer: Typer, node: exp.DPipe) -> Type:
    return concatenated(typer.call("||", node, *node.flatten(unnest=False)))


# ---------------------------------------------------------------- comparisons


def _comparison(typer: Typer, node: exp.Binary) -> Type:
    left, right = typer.type_of(node.left), typer.type_of(node.right)
    _check_comparable(node, left, right)
    check_literal(node.left, right, whole=True)
    check_literal(node.right, left, whole=True)
    return BOOLEAN


def _between(typer: Typer, node: exp.Between) -> Type:
    value = typer.type_of(node.this)
    for end in (node.args["low"], node.args["high"]):
        _check_comparable(end, value, typer.type_of(end))
        check_literal(end, value)
    return BOOLEAN


def _is(typer: Typer, node: exp.Is) -> Type:
    type_ = typer.type_of(node.this)
    if isinstance(node.expression, exp.Boolean):
        _check_comparable(node, type_, BOOLEAN)
    return BOOLEAN


def _check_comparable(node: exp.Expr, left: Type, right: Type) -> None:
    if not coercion.can_compare(left, right):
        raise error_at(node, f"cannot compare {left} with {right}")


def _in(typer: Typer, node: exp.In) -> Type:
    value = typer.type_of(node.this)
    query = node.args.get("query")
    if query is not None and isinstance(node.this, exp.Tuple):
        return BOOLEAN
    elements = typer.types_of(node.expressions if query is None else [query])
    alike = all(coercion.same_shape(value, element) for element in elements)
    if not (alike or coercion.common_type_of([value, *elements])) or not all(
        coercion.can_sort(type_) for type_ in (value, *elements)
    ):
        listed = ", ".join(dict.fromkeys(map(str, elements)))
        raise error_at(node, f"cannot look for {value} among {listed}")
    for element in node.expressions:
        check_literal(element, value)
    return BOOLEAN


def _matching(typer: Typer, node: exp.Binary) -> Type:
    """Type LIKE, ILIKE and RLIKE; the pattern may be ANY or ALL of a list."""
    pattern = node.expression
    if isinstance(pattern, exp.Any | exp.All):
        listed = pattern.this.unnest()
        patterns = listed.expressions if isinstance(listed, exp.Tuple) else [listed]
    else:
        patterns = [pattern]
    for part in (node.this, *patterns):
        type_ = typer.type_of(part)
        if not coercion.converts(type_, STRING):
            raise error_at(part, f"cannot match {type_} with a pattern")
    return BOOLEAN


# ---------------------------------------------------------------- conditions


def check_condition_type(type_: Type, node: exp.Expr, what: str) -> None:
    """Raise unless the type of a clause is that of a condition."""
    if type_.is_known and type_ not in (BOOLEAN, NULL):
        raise error_at(node, f"{what} must be a condition, but this is of type {type_}")


def check_condition(typer: Typer, node: exp.Expr, what: str) -> None:
    """Raise unless an expression is a condition."""
    type_ = typer.type_of(node)
    if type_ not in (BOOLEAN, UNKNOWN):
        raise error_at(node, f"{what} needs a condition, but this is {type_}")


def _connective(typer: Typer, node: exp.Connector) -> Type:
    """Type AND and OR of booleans and NULLs, and of a string beside a boolean."""
    before: Type | None = None
    for operand in node.flatten(unnest=False):
        type_ = typer.type_of(operand)
        if type_ not in _CONDITIONS:
            raise error_at(operand, f"{node.key.upper()} joins conditions, but this is {type_}")
        pair = {before, type_}
        if before and STRING in pair and not pair & {BOOLEAN, UNKNOWN}:
            raise error_at(operand, f"{node.key.upper()} joins conditions, not {before} and {type_}")
        before = BOOLEAN if before else type_
    return BOOLEAN


def _not(typer: Typer, node: exp.Not) -> Type:
    type_ = typer.type_of(node.this)
    if type_ not in _CONDITIONS:
        raise error_at(node.this, f"NOT needs a condition, but this is {type_}")
    return BOOLEAN


def _case(typer: Typer, node: exp.Case) -> Type:
    branches: Sequence[exp.If] = node.args["ifs"]
    value = None if node.this is None else typer.type_of(node.this)
    for branch in branches:
        if value is None:
            check_condition(typer, branch.this, "WHEN")
        else:
            _check_comparable(branch.this, value, typer.type_of(branch.this))
            check_literal(branch.this, value)
    results = [branch.args["true"] for branch in branches]
    default = node.args.get("default")
    so_far = NULL
    for result in [*results, default] if default is not None else results:
        type_ = typer.type_of(result)
        together = coercion.common_type(so_far, type_)
        if together is None:
            raise error_at(result, f"the branches of CASE have no common type: {so_far} and {type_}")
        so_far = together
    return so_far


RULES: dict[type[exp.Expr], Callable[[Typer, Any], Type]] = {
    **dict.fromkeys(ARITHMETIC, _arithmetic),
    **dict.fromkeys((exp.BitwiseAnd, exp.BitwiseOr, exp.BitwiseXor), _bitwise),
    exp.BitwiseNot: _bitwise_not,
    exp.DPipe: _concatenation,
    **dict.fromkeys((exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE), _comparison),
    **dict.fromkeys((exp.NullSafeEQ, exp.NullSafeNEQ), _comparison),
    exp.Between: _between,
    exp.Is: _is,
    exp.In: _in,
    **dict.fromkeys((exp.Like, exp.ILike, exp.RegexpLike), _matching),
    **dict.fromkeys((exp.And, exp.Or), _connective),
    exp.Not: _not,
    exp.Case: _case,
}
