"""A call of a built-in function, as the rules for result types see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.types import coercion
from millstream.types import Kind, Type, decimal


@dataclass(frozen=True)
class Call:
    """A call, with the types of its arguments; for a rule, after conversion to what the signature wants."""

    name: str
    node: exp.Expr
    arguments: Sequence[exp.Expr]
    types: Sequence[Type]
    lambda_type: Callable[[exp.Expr, Sequence[Type]], Type]
    """The type of a lambda's body, given those of its parameters."""

    def fail(self, message: str, hint: str | None = None) -> NoReturn:
        raise error_at(self.node, message, hint=hint)

    def common(self, types: Sequence[Type]) -> Type:
        found = coercion.common_type_of(types)
        if found is None:
            kinds = " and ".join(dict.fromkeys(map(str, types)))
            self.fail(f"the arguments of '{self.name}' have no common type: {kinds}")
        return found


Rule = Callable[[Call], Type]

# The parser's form of 1L and 1S is a cast; a literal with Y is to Spark as wide as its type.
_SUFFIXED = (exp.DType.BIGINT, exp.DType.SMALLINT)


def literal_integer(node: exp.Expr) -> int | None:
    """Return the value of an integer as it is written, with its sign.

    >>> literal_integer(exp.Neg(this=exp.Literal.number(12)))
    -12
    """
    if isinstance(node, exp.Paren):
        return literal_integer(node.this)
    if isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal):
        value = literal_integer(node.this)
        return None if value is None else -value
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal) and node.is_type(*_SUFFIXED):
        return literal_integer(node.this)
    return int(node.name) if isinstance(node, exp.Literal) and node.is_int else None


def beside(other: Type, type_: Type, node: exp.Expr) -> Type:
    """Return the type of an operand: an integer that is written out beside a decimal counts by its digits."""
    value = literal_integer(node) if other.kind is Kind.DECIMAL and type_.is_integral else None
    return type_ if value is None else decimal(len(str(abs(value))), 0)
