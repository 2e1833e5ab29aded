"""Checked conditions of patterns as texts for people."""

from __future__ import annotations

from millstream.catalog.builtin_aggregates import RUNNING_NAMES
from millstream.ir.pattern import End, Measure, Pattern, Place
from millstream.ir.typed_nodes import Call, Case, Cast, Column, Constant, Expr, GroupColumn
from millstream.program.content_aggregate import ContentAggregate
from millstream.types import Kind

_SIGNS = {"+time": "+", "-time": "-", "-times": "-", "+days": "+", "-days": "-", "-dates": "-"}
_STRENGTH = {
    "or": 1,
    "and": 2,
    "not": 3,
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">=", "<=>", "like", "rlike", "in", "isnull"), 4),
    **dict.fromkeys(("+", "-", *_SIGNS), 5),
    **dict.fromkeys(("*", "/", "%", "div"), 6),
}
"""Precedence of operators; other expressions have parentheses of their own."""
_CALL = 9


class ConditionText:
    """The text of expressions of one pattern, without casts."""

    def __init__(self, form: Pattern) -> None:
        self._form = form

    def conditions(self, conditions: tuple[Expr, ...]) -> str:
        return " AND ".join(self._held(condition, _STRENGTH["and"]) for condition in conditions)

    def of(self, expr: Expr) -> str:
        match expr:
            case Column(place, index):
                return f"{self.place(self._form.places[place])}.{self._form.fields[index].name}"
            case GroupColumn(index):
                return self.measure(self._form.measures[index])
            case Constant():
                return _constant(expr)
            case Cast(argument):
                return self.of(argument)
            case Case(branches, otherwise):
                ways = [f"WHEN {self.of(condition)} THEN {self.of(value)}" for condition, value in branches]
                rest = [] if otherwise is None else [f"ELSE {self.of(otherwise)}"]
                return " ".join(["CASE", *ways, *rest, "END"])
            case Call("not", (Call("isnull", (a,)),)):
                return f"{self._held(a, 5)} IS NOT NULL"
            case Call("isnull", (a,)):
                return f"{self._held(a, 5)} IS NULL"
            case Call("not", (a,)):
                return f"NOT {self._held(a, 4)}"
            case Call("negative", (a,)):
                return f"-{self._held(a, _CALL)}"
            case Call("in", (a, *others)):
                return f"{self._held(a, 5)} IN ({', '.join(map(self.of, others))})"
            case Call(name, (a, b)) if name in _STRENGTH:
                strength = _STRENGTH[name]
                # Of a - b - c the first two belong together, and comparisons are not chained.
                left = self._held(a, strength + (strength == _STRENGTH["="]))
                right = self._held(b, strength + (strength > _STRENGTH["not"]))
                return f"{left} {_SIGNS.get(name, name.upper())} {right}"
            case Call(name, arguments):
                return f"{name}({', '.join(map(self.of, arguments))})"
        raise AssertionError(expr)

    def _held(self, expr: Expr, strength: int) -> str:
        """Return an operand, in parentheses if precedence requires them."""
        inside = expr.argument if isinstance(expr, Cast) else expr
        own = _STRENGTH.get(inside.name, _CALL) if isinstance(inside, Call) else _CALL
        return self.of(expr) if own >= strength else f"({self.of(expr)})"

    def place(self, place: Place) -> str:
        """Return the text of a tuple: ``Y``, ``FIRST(Y)``, ``Y.previous``."""
        name = self._form.elements[place.element].name
        whole = name if place.end is End.NOW else f"{place.end.value.upper()}({name})"
        return ".".join([whole, *["previous"] * place.back])

    def measure(self, measure: Measure) -> str:
        """Return the text of a measure: ``count(*Y)``, or running ``avg(Y.v) OVER (ROWS 4 PRECEDING)``."""
        made, name = measure.aggregation, self._form.elements[measure.element].name
        star = "*" if measure.final else ""
        given = [("" if isinstance(a, Constant) else star) + self.of(a) for a in made.arguments]
        runs = not measure.final and measure.rows is None and made.name in RUNNING_NAMES.values()
        over = "" if measure.rows is None else f" OVER (ROWS {measure.rows - 1} PRECEDING)"
        constants = made.parameters if isinstance(made, ContentAggregate) else ()
        order = made.order if isinstance(made, ContentAggregate) else ()
        # The sort expression is the first argument of a percentile, and the last of a list.
        count = len(given) - len(order) if made.name == "listagg" else 0
        keys, given = given[count : count + len(order)], given[:count] + given[count + len(order) :]
        sorting = (f"{key}{' DESC' * by.descending}" for key, by in zip(keys, order, strict=True))
        within = f" WITHIN GROUP (ORDER BY {', '.join(sorting)})" if order else ""
        given += [f"'{c}'" if isinstance(c, str) else f"{c:g}" for c in constants]
        inside = f"{'DISTINCT ' if made.distinct else ''}{', '.join(given) or star + name}"
        wanted = "" if made.filter is None else f" FILTER (WHERE {self.of(made.filter)})"
        return f"{'c' if runs else ''}{made.name}({inside}){within}{wanted}{over}"


def _constant(constant: Constant) -> str:
    value, type_ = constant.value, constant.type
    if value is None:
        return "NULL"
    match type_.kind:
        case Kind.STRING:
            return "'" + str(value).replace("'", "''") + "'"
        case Kind.BOOLEAN:
            return str(value).upper()
        case Kind.DECIMAL:
            digits = str(abs(value)).rjust(type_.scale + 1, "0")
            whole = f"{digits[: len(digits) - type_.scale]}.{digits[len(digits) - type_.scale :]}"
            return f"{'-' if value < 0 else ''}{whole.rstrip('.')}"
        case Kind.DAY_TIME_INTERVAL:
            return f"INTERVAL {value / 1_000_000:g} SECONDS"
    return f"{value:g}" if isinstance(value, float) and value.is_integer() else str(value)
