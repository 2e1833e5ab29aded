"""Printing of the part of ESL that is Spark SQL, without translation.

sqlglot prints for many systems: it renames functions, expands operators and omits what a system does not
support. Here, parsing the printed text must give the same tree again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from sqlglot import exp
from sqlglot.generator import Generator
from sqlglot.generators.spark import SparkGenerator

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\u0000"})
_TYPE_NAMES = {exp.DType.NULL: "VOID", exp.DType.TIME: "TIME"}
_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ)


class PlainSqlGenerator(SparkGenerator):
    """Generator with one method for each node, named as sqlglot requires."""

    # Calls stay as they were written.
    NORMALIZE_FUNCTIONS: bool | str = False
    # WITH stays in its place.
    EXPRESSIONS_WITHOUT_NESTED_CTES: ClassVar[set[type[exp.Expr]]] = set()

    # ------------------------------------------------------------ helpers

    def listed(self, items: Iterable[exp.Expr] | None) -> str:
        return ", ".join(self.sql(item) for item in items or ())

    def clause(self, expression: exp.Expr, key: str, keyword: str) -> str:
        """Return a keyword and its argument after a space; empty without an argument."""
        value = expression.args.get(key)
        if value is None or value is False:
            return ""
        if value is True:
            return f" {keyword}"
        return f" {keyword} {self.listed(value) if isinstance(value, list) else self.sql(value)}"

    # ------------------------------------------------------------ expressions

    def literal_sql(self, expression: exp.Literal) -> str:
        return f"'{expression.name.translate(_ESCAPES)}'" if expression.is_string else expression.name

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        name = expression.this
        name = self.sql(name) if isinstance(name, exp.Expr) else str(name)
        return f"{name}({self.listed(expression.expressions)})"

    def cast_sql(self, expression: exp.Cast, safe_prefix: str | None = None) -> str:
        function = "TRY_CAST" if isinstance(expression, exp.TryCast) else "CAST"
        return f"{function}({self.sql(expression, 'this')} AS {self.sql(expression, 'to')})"

    def datatype_sql(self, expression: exp.DataType) -> str:
        if expression.this in _TYPE_NAMES:
            return _TYPE_NAMES[expression.this]
        if isinstance(expression.this, exp.Interval):
            return f"INTERVAL {self.sql(expression.this, 'unit')}"
        return super().datatype_sql(expression)

    def interval_sql(self, expression: exp.Interval) -> str:
        return f"INTERVAL {self.sql(expression, 'this')} {self.sql(expression, 'unit')}"

    def strposition_sql(self, expression: exp.StrPosition) -> str:
        needle, text = self.sql(expression, "substr"), self.sql(expression, "this")
        position = self.sql(expression, "position")
        return f"POSITION({needle}, {text}, {position})" if position else f"POSITION({needle} IN {text})"

    def substring_sql(self, expression: exp.Substring) -> str:
        arguments = (expression.args.get(key) for key in ("this", "start", "length"))
        return f"SUBSTRING({self.listed(argument for argument in arguments if argument is not None)})"

    def trim_sql(self, expression: exp.Trim) -> str:
        parts = [expression.args.get("position"), self.sql(expression, "expression")]
        before = "".join(f"{part} " for part in parts if part)
        return f"TRIM({before}{'FROM ' if before else ''}{self.sql(expression, 'this')})"

    def nullsafeeq_sql(self, expression: exp.NullSafeEQ) -> str:
        # A comparison on the right needs no parentheses after the words, but would after the sign.
        sign = "IS NOT DISTINCT FROM" if isinstance(expression.expression, _COMPARISONS) else "<=>"
        return f"{self.sql(expression, 'this')} {sign} {self.sql(expression, 'expression')}"

    def all_sql(self, expression: exp.All) -> str:
        return f"ALL {self.sql(expression, 'this')}"

    def any_sql(self, expression: exp.Any) -> str:
        return f"ANY {self.sql(expression, 'this')}"

    def is_sql(self, expression: exp.Is) -> str:
        return f"{self.sql(expression, 'this')} IS {self.sql(expression, 'expression')}"

    def bitwiseleftshift_sql(self, expression: exp.BitwiseLeftShift) -> str:
        return self.binary(expression, "<<")

    def bitwiserightshift_sql(self, expression: exp.BitwiseRightShift) -> str:
        return self.binary(expression, ">>")

    def intdiv_sql(self, expression: exp.IntDiv) -> str:
        return self.binary(expression, "DIV")

    def regexplike_sql(self, expression: exp.RegexpLike) -> str:
        return self.binary(expression, "RLIKE")

    # ------------------------------------------------------------ queries

    def select_sql(self, expression: exp.Select) -> str:
        modifiers = expression.args.get("operation_modifiers") or ()
        head = "".join(
            (
                "SELECT",
                self.sql(expression, "hint"),
                # Before DISTINCT: after it, `istream - 1` would be a difference.
                *(f" {self.sql(modifier)}" for modifier in modifiers),
                " DISTINCT" if expression.args.get("distinct") else "",
                f" {self.listed(expression.expressions)}",
            )
        )
        query = self.query_modifiers(expression, head, self.sql(expression, "from_"))
        return self.prepend_ctes(expression, query)

    def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
        words = [expression.args.get(key) for key in ("method", "side", "kind")]
        using, matched = expression.args.get("using"), expression.args.get("match_condition")
        return "".join(
            (
                *(f" {word}" for word in words if word),
                f" JOIN {self.sql(expression, 'this')}",
                f" MATCH_CONDITION ({self.sql(matched)})" if matched is not None else "",
                self.clause(expression, "on", "ON"),
                f" USING ({self.listed(using)})" if using else "",
            )
        )

    def lateral_sql(self, expression: exp.Lateral) -> str:
        this = self.sql(expression, "this")
        alias = expression.args.get("alias")
        if alias is None or not expression.args.get("view"):
            return f"LATERAL {this}{self.clause(expression, 'alias', 'AS')}"
        outer = " OUTER" if expression.args.get("outer") else ""
        columns = self.clause(alias, "columns", "AS")
        return f" LATERAL VIEW{outer} {this} {self.sql(alias, 'this')}{columns}"

    def unnest_sql(self, expression: exp.Unnest) -> str:
        """Write the list with its places, whose column has a name with WITH OFFSET only."""
        offset = expression.args.get("offset")
        before = " WITH ORDINALITY" if offset == "ORDINALITY" else ""
        after = ""
        if offset and not before:
            after = " WITH OFFSET" + ("" if offset == "OFFSET" else f" AS {self.sql(offset)}")
        alias = self.clause(expression, "alias", "AS")
        return f"UNNEST({self.listed(expression.expressions)}){before}{alias}{after}"

    def hint_sql(self, expression: exp.Hint) -> str:
        return f" /*+ {self.listed(expression.expressions)} */"


_OVERRIDDEN: tuple[type[exp.Expr], ...] = (
    *(exp.Anonymous, exp.Cast, exp.Interval, exp.StrPosition, exp.Substring, exp.Trim),
    *(exp.NullSafeEQ, exp.BitwiseLeftShift, exp.BitwiseRightShift, exp.IntDiv, exp.RegexpLike),
)


def transforms(
    generator: type[PlainSqlGenerator], *own: type[exp.Expr]
) -> dict[type[exp.Expr], Callable[..., str]]:
    """Return the table in which sqlglot looks up the methods of a generator for these nodes.

    Of sqlglot's own transformations only those remain that all systems share.
    """
    methods = {node: getattr(generator, f"{node.__name__.lower()}_sql") for node in (*_OVERRIDDEN, *own)}
    return {**Generator.TRANSFORMS, exp.TryCast: generator.cast_sql, **methods}
