"""Bracket windows: which kind it is, on which attribute, and whether that can work on this stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlglot import exp

from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.name_resolver import Resolver
from millstream.analysis.queries.scope import Scope, ScopeRelation
from millstream.analysis.queries.window_constants import begins_month, check_time, comparable
from millstream.analysis.types.quantities import (
    example,
    is_point,
    positive,
    positive_on,
    positive_rows,
    quantity,
)
from millstream.catalog.entries import Timestamp, TimestampKind
from millstream.errors import AnalysisError, did_you_mean
from millstream.quantity import Distance, Duration, Quantity, Rows, size
from millstream.syntax import nodes, to_sql
from millstream.types import BOOLEAN, TIMESTAMP, UNKNOWN, Field, Kind, Type, bound_type
from millstream.windows.window_spec import (
    LandmarkWindow,
    NowWindow,
    PredicateWindow,
    RangeWindow,
    RowWindow,
    SessionWindow,
    TupleSlideWindow,
    Window,
)

ROW_NUM = "row_num"
"""The position of a tuple in order of arrival, which every stream has."""

UNKNOWN_COLUMNS = tuple(Field(name, UNKNOWN) for name in ("window_start", "window_end", "wid", "complete"))
"""The columns of a window about which no more is known."""


@dataclass(frozen=True)
class StreamFacts:
    """Facts about a stream that windows need: its order, its promises, whether it ends."""

    timestamp: Timestamp
    promised: frozenset[str]
    bounded: bool
    stored: bool = False
    """Whether its tuples are rows of tables."""


_WORDS = {"lag": "LAG", "stamp": "STAMP LAST", "emit_empty": "EMIT EMPTY"}
_REPORTS = tuple(_WORDS)
"""Clauses about the reports of windows that slide."""

# Which clauses go with which kind of window; what is not named here is refused by name.
_CLAUSES = {
    "RANGE": {"range", "slide", "wattr", "rattr", "sattr", "pattr", "origin", "emit", *_REPORTS},
    "ROWS": {"range", "slide", "pattr", "emit"},
    "TUMBLE": {"range", "wattr", "pattr", "origin", "emit", *_REPORTS},
    "NOW": {"pattr"},
    "UNBOUNDED": {"start_at", "slide", "wattr", "pattr", "emit"},
    "LANDMARK": {"start_at", "end_at", "inclusive", "slide", "wattr", "pattr", "emit"},
    "SESSION": {"gap", "wattr", "pattr", "emit"},
    "PREDICATE": {"start_when", "end_when", "pattr", "emit"},
}


class WindowAnalyser:
    """Analyser of the bracket behind one relation."""

    def __init__(
        self, node: nodes.StreamWindow, relation: ScopeRelation, facts: StreamFacts, *, declared: bool = True
    ) -> None:
        self.declared = declared
        """True if the stream has a declaration, to which clauses can be added."""
        self.node = node
        self.relation = relation
        self.facts = facts

    def analyse(self, resolver: Resolver) -> Window:
        self._check_clauses()
        match self.node.kind:
            case "RANGE":
                varies = isinstance(self.node.args.get("range"), exp.Case)
                return self._varying(resolver) if varies else self._range()
            case "ROWS":
                return self._rows(positive_rows(self._arg("range"), "ROWS"))
            case "TUMBLE":
                return self._tumble()
            case "NOW":
                return NowWindow(partition_by=self._partition())
            case "UNBOUNDED" | "LANDMARK":
                return self._landmark()
            case "SESSION":
                return self._session()
            case _:
                return self._predicate(resolver)

    # ------------------------------------------------------------ kinds

    def _range(self) -> Window:
        self._check_reports()
        if self._has("rattr") or self._has("sattr"):
            return self._tuple_slide()
        wattr = self._arg("wattr") if self._has("wattr") else None
        if wattr is not None and self._is_row_num(wattr):
            slide = positive_rows(self._arg("slide"), "SLIDE") if self._has("slide") else Rows(1)
            return RowWindow(
                attribute=None,
                partition_by=self._partition(),
                emit_every=self._emit_rows(),
                range=positive_rows(self._arg("range"), "RANGE"),
                slide=slide,
                by_arrival=True,
            )
        attribute, type_ = self._attribute(wattr, rows_refused="")
        named = attribute or "the timestamp"
        return RangeWindow(
            attribute=attribute,
            partition_by=self._partition(),
            emit_every=self._emit_on(named, type_),
            range=self._extent("range", "RANGE", named, type_),
            slide=self._extent("slide", "SLIDE", named, type_) if self._has("slide") else None,
            origin=self._instant("origin", "ORIGIN", type_),
            **self._reporting(named, type_),
        )

    def _varying(self, resolver: Resolver) -> Window:
        """Return windows whose range depends on their end: the widest, with the cases of others."""
        case = self._arg("range")
        attribute, type_ = self._attribute(self.node.args.get("wattr"))
        wrong = next((name for name in ("emit", "emit_empty", "rattr", "sattr") if self._has(name)), None)
        if wrong is not None or not self._has("slide"):
            raise self._error("a RANGE that varies goes with SLIDE, LAG, ORIGIN, STAMP LAST and PATTR", case)
        if attribute is None or type_.kind in (Kind.FLOAT, Kind.DOUBLE):
            raise self._error("a RANGE that varies needs a column that measures it, and not a double", case)
        if case.this is not None or case.args.get("default") is None:
            raise self._error(
                "a RANGE that varies has conditions on window_end, and ELSE",
                case,
                hint="RANGE CASE WHEN hour(window_end) < 7 THEN INTERVAL 1 HOUR ELSE INTERVAL 5 MINUTES END",
            )
        if any(self.relation.find(name) for name in ("window_start", "window_end", "wid")):
            raise self._error("a RANGE that varies does not go with columns that have names of bounds", case)
        bound = ScopeRelation("", (Field("window_end", bound_type(type_)),))
        conditions = resolver.with_aggregates(None, "in RANGE", Scope([bound]))
        cases: list[tuple[object, Duration | Distance]] = []
        for branch in case.args["ifs"]:
            reach = positive_on(branch.args["true"], "RANGE", attribute, type_)
            cases.append((conditions.condition(branch.this, "RANGE"), reach))
        cases.append((None, positive_on(case.args["default"], "RANGE", attribute, type_)))
        return RangeWindow(
            attribute=attribute,
            partition_by=self._partition(),
            range=max((reach for _, reach in cases), key=size),
            slide=self._extent("slide", "SLIDE", attribute, type_),
            origin=self._instant("origin", "ORIGIN", type_),
            cases=tuple(cases),
            **self._reporting(attribute, type_),
        )

    def _check_reports(self) -> None:
        """Refuse clauses about reports of windows that do not end at multiples of SLIDE."""
        given = next((name for name in _REPORTS if self._has(name)), None)
        if given is None:
            return
        word = _WORDS[given]
        wattr, size = self.node.args.get("wattr"), self.node.args.get("range")
        counted = isinstance(size, nodes.RowCount) or (wattr is not None and self._is_row_num(wattr))
        if self._has("rattr") or self._has("sattr") or counted:
            raise self._error(f"{word} does not go with a window that counts rows", self._arg(given))
        if self.node.kind == "RANGE" and not self._has("slide"):
            raise self._error(f"{word} needs SLIDE: without it a window has no reports", self._arg(given))
        if self._has("emit") and self._has("emit_empty"):
            raise self._error("EMIT EMPTY does not go with EMIT EVERY", self._arg("emit_empty"))

    def _reporting(self, attribute: str, type_: Type) -> dict[str, Any]:
        """Return how windows that slide are reported."""
        for name in ("lag", "stamp"):
            if self._has(name) and type_.kind in (Kind.FLOAT, Kind.DOUBLE):
                raise self._error(
                    f"{_WORDS[name]} does not go with '{attribute}', which is of type {type_}",
                    self._arg(name),
                    hint="a whole number, a decimal or a timestamp has a next instant",
                )
        return {
            "lag": self._extent("lag", "LAG", attribute, type_) if self._has("lag") else None,
            "stamp_last": self._has("stamp"),
            "emit_empty": self._has("emit_empty"),
        }

    def _tumble(self) -> Window:
        self._check_reports()
        size = self._arg("range")
        if isinstance(size, nodes.RowCount):
            rows = positive_rows(size, "TUMBLE")
            return RowWindow(
                partition_by=self._partition(), emit_every=self._emit_rows(), range=rows, slide=rows
            )
        attribute, type_ = self._attribute(self.node.args.get("wattr"))
        named = attribute or "the timestamp"
        reach = self._extent("range", "TUMBLE", named, type_)
        return RangeWindow(
            attribute=attribute,
            partition_by=self._partition(),
            emit_every=self._emit_on(named, type_),
            range=reach,
            slide=reach,
            origin=self._instant("origin", "ORIGIN", type_),
            **self._reporting(named, type_),
        )

    def _rows(self, size: Rows) -> Window:
        slide = positive_rows(self._arg("slide"), "SLIDE") if self._has("slide") else Rows(1)
        return RowWindow(
            partition_by=self._partition(), emit_every=self._emit_rows(), range=size, slide=slide
        )

    def _tuple_slide(self) -> Window:
        for other in ("rattr", "sattr", "slide"):
            if not self._has(other):
                raise self._error(
                    f"a window that slides by tuples needs {other.upper()}",
                    hint="[RANGE r RATTR a SLIDE n ROWS SATTR row_num], or SATTR rank(a)",
                )
        if self._has("wattr"):
            raise self._error("WATTR does not go with RATTR and SATTR", self._arg("wattr"))
        if self._has("emit"):
            raise self._error(
                "EMIT EVERY does not go with SATTR: until the tuple comes that ends a window, "
                "the beginning of the window is unknown",
                self._arg("emit"),
                hint="[ROWS n SLIDE m EMIT EVERY e ROWS] has partial results, and so has RANGE with WATTR",
            )
        attribute, type_ = self._attribute(self._arg("rattr"), "RATTR")
        assert attribute is not None
        return TupleSlideWindow(
            attribute=attribute,
            partition_by=self._partition(),
            range=self._extent("range", "RANGE", attribute, type_),
            every=positive_rows(self._arg("slide"), "SLIDE"),
            by_rank=self._by_rank(attribute),
        )

    def _by_rank(self, attribute: str) -> bool:
        sattr = self._arg("sattr")
        if self._is_row_num(sattr):
            return False
        if isinstance(sattr, exp.Anonymous) and sattr.name.lower() == "rank":
            arguments = sattr.expressions
            if len(arguments) == 1 and arguments[0].name.lower() == attribute.lower():
                return True
            raise self._error(f"SATTR must rank by the range attribute: rank({attribute})", sattr)
        raise self._error("SATTR is row_num or rank(a)", sattr)

    def _landmark(self) -> Window:
        if self.node.kind == "LANDMARK" and not self._has("start_at") and not self._has("end_at"):
            raise self._error(
                "a LANDMARK window needs START AT, END AT or both",
                hint="for everything so far write [UNBOUNDED]",
            )
        attribute, type_ = self._attribute(self.node.args.get("wattr"))
        named = attribute or "the timestamp"
        if self._has("start_at") and self._has("end_at"):
            self._check_bounds(self._arg("start_at"), self._arg("end_at"))
        return LandmarkWindow(
            attribute=attribute,
            partition_by=self._partition(),
            emit_every=self._emit_on(named, type_),
            start=self._instant("start_at", "START AT", type_),
            end=self._instant("end_at", "END AT", type_),
            slide=self._extent("slide", "SLIDE", named, type_) if self._has("slide") else None,
            inclusive=self._has("inclusive"),
        )

    def _check_bounds(self, start: exp.Expr, end: exp.Expr) -> None:
        """Refuse bounds between which no tuple can be; bounds that only Spark can compare pass."""
        one, other = comparable(start), comparable(end)
        if one is None or type(one) is not type(other):
            return
        try:
            is_empty = bool(one > other if self._has("inclusive") else one >= other)  # type: ignore[operator]
        except TypeError:  # times with and without a zone
            return
        if is_empty:
            raise self._error(
                f"the window is empty, because END AT {to_sql(end)} is not after START AT {to_sql(start)}",
                end,
                hint="a window holds what is at START AT or after it, and before END AT",
            )

    def _session(self) -> Window:
        if not self._has("gap"):
            raise self._error("a SESSION window needs GAP", hint="[SESSION GAP 30 SECONDS]")
        attribute, type_ = self._attribute(self.node.args.get("wattr"))
        named = attribute or "the timestamp"
        return SessionWindow(
            attribute=attribute,
            partition_by=self._partition(),
            emit_every=self._emit_on(named, type_),
            gap=self._extent("gap", "GAP", named, type_),
        )

    def _predicate(self, resolver: Resolver) -> Window:
        for side in ("start_when", "end_when"):
            if not self._has(side):
                raise self._error("a predicate window needs both START WHEN and END WHEN")
        attribute, type_ = self._attribute(None)
        return PredicateWindow(
            partition_by=self._partition(),
            emit_every=self._emit_on(attribute or "the timestamp", type_),
            start_when=resolver.condition(self._arg("start_when"), "START WHEN"),
            end_when=resolver.condition(self._arg("end_when"), "END WHEN"),
        )

    # ------------------------------------------------------------ parts

    def _attribute(self, node: exp.Expr | None, rows_refused: str = "this window") -> tuple[str | None, Type]:
        """Return the window attribute and its type; None is the stream's own order.

        Row numbers cannot measure ``rows_refused``; it is empty where they can.
        """
        if node is None:
            timestamp = self.facts.timestamp
            if timestamp.kind is TimestampKind.LATENT:
                return None, TIMESTAMP
            return timestamp.column, timestamp.type or UNKNOWN
        if rows_refused and self._is_row_num(node):
            raise error_at(
                node,
                f"{ROW_NUM} numbers tuples, so {rows_refused} cannot be measured by it",
                hint="to count tuples write [ROWS n SLIDE m], or [RANGE n ROWS SLIDE m ROWS WATTR row_num]",
            )
        column = self.relation.find(node.name)
        if column is None:
            known = [f.name for f in self.relation.fields or ()]
            raise error_at(
                node,
                f"unknown window attribute '{node.name}' in '{self.relation.alias}'",
                hint=did_you_mean(node.name, known if rows_refused else [*known, ROW_NUM]),
            )
        if not column.type.is_ordered:
            raise error_at(
                node,
                f"a window cannot be defined on '{column.name}', which is of type {column.type}",
                hint="the attribute must be a timestamp, a date or a number",
            )
        if not self.facts.bounded and column.name.lower() not in self.facts.promised:
            raise error_at(
                node,
                f"nothing promises progress on '{column.name}', so a window on it would never close",
                hint=self._promise_hint(column.name, column.type),
            )
        return column.name, column.type

    def _promise_hint(self, name: str, type_: Type) -> str:
        if not self.declared:
            return (
                f"a query promises nothing about what it computes: '{name}' must come unchanged from a stream"
                f" that is declared with ORDER BY {name}, or with SLACK ... ON {name}; a stateless query over"
                f" a stream without an order gets one by CREATE STREAM s ORDER BY {name} SLACK ... AS SELECT"
                " ..."
            )
        amount = "10" if type_.is_numeric else f"INTERVAL {example(type_, '10 SECONDS')}"
        return f"add a promise to the stream, such as SLACK {amount} ON {name}"

    def _partition(self) -> tuple[str, ...]:
        names = []
        for node in self.node.args.get("pattr") or ():
            column = self.relation.find(node.name)
            if column is None:
                raise error_at(
                    node,
                    f"unknown partitioning column '{node.name}' in '{self.relation.alias}'",
                    hint=did_you_mean(node.name, [f.name for f in self.relation.fields or ()]),
                )
            names.append(column.name)
        return tuple(names)

    def _extent(self, argument: str, what: str, attribute: str, type_: Type) -> Duration | Distance:
        node = self._arg(argument)
        times = [f.name for f in self.relation.fields or () if f.type.is_time]
        if type_.is_numeric and times and isinstance(quantity(node), Duration):
            raise error_at(
                node,
                f"{what} cannot be an interval, because '{attribute}' is of type {type_}",
                hint="write a plain number"
                + (f", or a window on another column: WATTR {times[0]}" if self.facts.bounded else ""),
            )
        if self._of_months():
            return self._months(node, what, attribute, type_)
        return positive_on(node, what, attribute, type_)

    def _of_months(self) -> bool:
        """Tell whether windows that slide are measured in months of the calendar."""
        size = self.node.args.get("range") if self._has("slide") or self.node.kind == "TUMBLE" else None
        amount = quantity(size) if isinstance(size, exp.Interval | exp.Add) else None
        return isinstance(amount, Duration) and amount.months > 0

    def _months(self, node: exp.Expr, what: str, attribute: str, type_: Type) -> Duration:
        """Return a number of months; of windows in months everything is measured in months."""
        amount = positive(node, what)
        if type_.is_known and not type_.is_time:
            raise self._error(f"{what} cannot be {amount}, because '{attribute}' is of type {type_}", node)
        if what not in ("RANGE", "SLIDE", "TUMBLE"):
            raise self._error(f"{what} does not go with a window of months, which differ in length", node)
        if not isinstance(amount, Duration) or amount.microseconds or not amount.months:
            raise self._error(
                f"{what} {amount} is not measured in months, as the window is",
                node,
                hint="write both RANGE and SLIDE in months, or both in units of fixed length",
            )
        origin = self.node.args.get("origin")
        if origin is not None and not begins_month(origin, type_):
            raise self._error(
                "ORIGIN of a window of months is the beginning of a month", origin, hint="write '2026-04-01'"
            )
        return amount

    def _emit_rows(self) -> Rows | None:
        return positive_rows(self._arg("emit"), "EMIT EVERY") if self._has("emit") else None

    def _emit_on(self, attribute: str, type_: Type) -> Quantity | None:
        return self._extent("emit", "EMIT EVERY", attribute, type_) if self._has("emit") else None

    def _instant(self, argument: str, what: str, type_: Type) -> str | None:
        node = self.node.args.get(argument)
        if node is None:
            return None
        is_text = (isinstance(node, exp.Literal) and node.is_string) or isinstance(node, exp.Cast)
        if type_.is_time and not is_text:
            raise error_at(
                node,
                f"{what} must be a time, because the window attribute is of type {type_}",
                hint=f"write {what} '2026-01-31 07:00:00'",
            )
        if not type_.is_numeric:
            if type_.is_time:
                check_time(node, what, type_)
            return to_sql(node)
        amount = None if is_text else quantity(node)
        if not isinstance(amount, Distance):
            raise error_at(node, f"{what} must be a number, because the window attribute is of type {type_}")
        if not is_point(amount.value, type_):
            raise error_at(
                node,
                f"{what} {amount} cannot be a bound on the window attribute, which is of type {type_}",
                hint="use a value of this type",
            )
        return to_sql(node)

    def _check_clauses(self) -> None:
        kind = self.node.kind
        for name, value in self.node.args.items():
            if name != "kind" and value is not None and name not in _CLAUSES[kind]:
                what = value[0] if isinstance(value, list) else value
                raise self._error(
                    f"{name.upper().replace('_', ' ')} does not go with a {kind} window",
                    what if isinstance(what, exp.Expr) else None,
                )

    def _is_row_num(self, node: exp.Expr) -> bool:
        return (
            isinstance(node, exp.Column)
            and node.name.lower() == ROW_NUM
            and self.relation.find(ROW_NUM) is None
        )

    def _has(self, argument: str) -> bool:
        return self.node.args.get(argument) is not None

    def _arg(self, argument: str) -> exp.Expr:
        node = self.node.args[argument]
        assert isinstance(node, exp.Expr)
        return node

    def _error(self, message: str, node: exp.Expr | None = None, hint: str | None = None) -> AnalysisError:
        return error_at(node or self.node, message, hint=hint)


def implicit_columns(window: Window, facts: StreamFacts, relation: ScopeRelation) -> tuple[Field, ...]:
    """Return window_start, window_end and wid of a windowed stream, and complete if it emits early."""
    column = relation.find(window.attribute) if window.attribute else None
    type_ = column.type if column else (facts.timestamp.type or TIMESTAMP)
    edge = window.edge_type(type_)
    fields = (Field("window_start", edge), Field("window_end", edge), Field("wid", window.wid_type(edge)))
    return (*fields, Field("complete", BOOLEAN)) if window.emit_every else fields
