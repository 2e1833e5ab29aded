"""Arguments of functions and aggregates that users have defined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.analysis.types.coercion import converts
from millstream.errors import AnalysisError, UnknownNameError
from millstream.syntax.spans import span_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from millstream.catalog import Catalog
    from millstream.catalog.entries import Aggregate, ScalarFunction
    from millstream.types import Type


def check_clear(catalog: Catalog, name: str, node: exp.Expr) -> None:
    """A function or aggregate whose definition has a mistake is not the built-in one of that name."""
    if catalog.is_unclear(name, is_function=True):
        raise UnknownNameError("function", name, span=span_of(node), hint=None)


def check_arguments(called: Aggregate | ScalarFunction, node: exp.Expr, given: Sequence[Type]) -> None:
    """As many arguments as parameters, of types that Spark converts without being asked."""
    wanted = called.parameters
    star = next((one for one in node.args.get("expressions") or () if isinstance(one, exp.Star)), None)
    if star is not None:
        listed = ", ".join(parameter.name for parameter in wanted)
        raise AnalysisError(
            f"'{called.name}' takes values, not *",
            span=span_of(star) or span_of(node),
            hint=f"name the values: {called.name}({listed})",
        )
    if len(wanted) != len(given):
        count = f"{len(wanted)} argument{'' if len(wanted) == 1 else 's'}"
        raise AnalysisError(f"'{called.name}' takes {count}, not {len(given)}", span=span_of(node))
    for parameter, type_ in zip(wanted, given, strict=True):
        if not converts(type_, parameter.type):
            raise AnalysisError(
                f"'{called.name}' takes {parameter.type} as '{parameter.name}', not {type_}",
                span=span_of(node),
            )
