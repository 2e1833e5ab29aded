"""Syntax nodes that ESL adds to SQL.

All others are sqlglot's. A node lists its arguments in ``arg_types`` (True: required), as sqlglot's own nodes
do, so that copying, comparing and walking work on mixed trees.
"""

from __future__ import annotations

from sqlglot import exp


class Statement(exp.Expression):
    """A statement of a script that is not a query."""


# ---------------------------------------------------------------- streams, tables, sinks


class CreateStream(Statement):
    """CREATE STREAM, either with a schema and a source or AS a query."""

    arg_types = {
        "this": True,
        "columns": False,
        "order_by": False,
        "format": False,
        "options": False,
        "source": False,
        "clauses": False,
        "late": False,
        "bad": False,
        "query": False,
        "replace": False,
        "exists": False,
    }


class CreateTable(Statement):
    """CREATE TABLE, with a schema and a source or AS a query."""

    arg_types = {
        "this": True,
        "columns": False,
        "order_by": False,
        "format": False,
        "options": False,
        "refresh": False,
        "query": False,
        "replace": False,
        "exists": False,
    }


class CreateSink(Statement):
    """CREATE SINK: a target for results."""

    arg_types = {"this": True, "format": True, "options": False, "replace": False, "exists": False}


class CreateView(Statement):
    """CREATE VIEW v AS a windowed query: the papers' concrete view."""

    arg_types = {"this": True, "query": True, "replace": False, "exists": False}


class UnknownType(exp.DataType):
    """A word in the place of a column's type that is not a type."""

    arg_types = {**exp.DataType.arg_types, "word": True, "hint": False}


class ColumnDeclaration(exp.Expression):
    """A column or parameter; old listings omit the type. A column may be computed from those before it."""

    arg_types = {"this": True, "kind": False, "computed": False}


class Option(exp.Expression):
    """A key and its value in OPTIONS, both literals."""

    arg_types = {"this": True, "value": True}


class Slack(exp.Expression):
    """SLACK INTERVAL t | n ROWS [GENEROUS | CONSISTENT] [ON attr]."""

    arg_types = {"this": True, "mode": False, "on": False}


class OrderedPer(exp.Expression):
    """ORDERED PER (cols) [IDLE AFTER INTERVAL t] [ON attr]."""

    arg_types = {"expressions": True, "idle": False, "on": False}


class PunctuatedBy(exp.Expression):
    """PUNCTUATED BY (predicate) [PER (cols)] [ON attr]."""

    arg_types = {"this": True, "per": False, "on": False}


class Heartbeat(exp.Expression):
    """HEARTBEAT INTERVAL t [ON attr], or HEARTBEAT NONE without a time."""

    arg_types = {"this": False, "on": False}


class Late(exp.Expression):
    """LATE INTO s, or LATE DROP when there is no name."""

    arg_types = {"this": False}


class SplitStream(Statement):
    """SPLIT STREAM s INTO branches."""

    arg_types = {"this": True, "branches": True}


class Branch(exp.Expression):
    """A branch of a split stream: a name and its query."""

    arg_types = {"this": True, "query": True}


# ---------------------------------------------------------------- functions and aggregates


class CreateFunction(Statement):
    """A function: ``body`` is an expression, or ``python`` names a Python function.

    A table function has ``columns`` instead of a type, and a ``query`` instead of an expression.
    """

    arg_types = {
        "this": True,
        "parameters": False,
        "returns": False,
        "columns": False,
        "body": False,
        "query": False,
        "python": False,
        "replace": False,
        "exists": False,
    }


class CreateAggregate(Statement):
    """A user-defined aggregate, in ESL (``tables`` and ``blocks``) or in Python (``python``)."""

    arg_types = {
        "this": True,
        "window": False,
        "parameters": False,
        "returns": False,
        "columns": False,
        "algebraic": False,
        "tables": False,
        "blocks": False,
        "python": False,
        "replace": False,
        "exists": False,
    }


class Algebraic(exp.Expression):
    """ALGEBRAIC [USING (partial, final)]."""

    arg_types = {"partial": False, "final": False}


class LocalTable(exp.Expression):
    """TABLE t(columns) inside an aggregate."""

    arg_types = {"this": True, "columns": True}


class StateBlock(exp.Expression):
    """INITIALIZE, ITERATE, TERMINATE or EXPIRE and its statements."""

    arg_types = {"this": True, "statements": False}


class InsertInto(Statement):
    """INSERT INTO a sink, a local table or RETURN; VALUES may have a WHERE, as in the papers."""

    arg_types = {"this": True, "columns": False, "values": False, "query": False, "where": False}


# ---------------------------------------------------------------- windows and patterns


class RowCount(exp.Expression):
    """n ROWS."""

    arg_types = {"this": True}


class StreamWindow(exp.Expression):
    """A bracket window over a stream; ``kind`` is its first word, or PREDICATE for START WHEN."""

    arg_types = {
        "kind": True,
        "range": False,
        "slide": False,
        "wattr": False,
        "rattr": False,
        "sattr": False,
        "pattr": False,
        "start_at": False,
        "end_at": False,
        "inclusive": False,
        "lag": False,
        "stamp": False,
        "emit_empty": False,
        "gap": False,
        "start_when": False,
        "end_when": False,
        "origin": False,
        "emit": False,
    }

    @property
    def kind(self) -> str:
        return str(self.args["kind"])


class OverSpec(exp.WindowSpec):
    """The frame of an OVER, with ESL's additions."""

    arg_types = {**exp.WindowSpec.arg_types, "slide": False, "active": False, "emit": False}


class Along(exp.Expression):
    """``RANGE 10`` after SLIDE: a distance along the timestamp, and not a number of tuples."""

    arg_types = {"this": True}


class StreamTable(exp.Table):
    """A stream or table in FROM with a bracket window or a sequence pattern."""

    arg_types = {**exp.Table.arg_types, "window": False, "pattern": False}


class StreamSubquery(exp.Subquery):
    """A query in FROM with a bracket window or a sequence pattern."""

    arg_types = {**exp.Subquery.arg_types, "window": False, "pattern": False}


class TableCall(exp.Table):
    """TABLE(f(x)) in FROM."""


class Pattern(exp.Expression):
    """[PARTITION BY cols] [SEQUENCE BY cols] AS (X, *Y, Z)."""

    arg_types = {"partition_by": False, "sequence_by": False, "elements": True}


class Element(exp.Expression):
    """A variable of a pattern; a star takes one or more tuples."""

    arg_types = {"this": True, "star": False}


class Starred(exp.Expression):
    """``*Y`` or ``*Y.price`` as the argument of an aggregate, or an expression: the aggregate is final."""

    arg_types = {"this": True}


# ---------------------------------------------------------------- housekeeping


class Explain(Statement):
    """EXPLAIN [LOGICAL | PHYSICAL | CODE | PATTERN [DOT | MERMAID]] query."""

    arg_types = {"this": True, "mode": False}


class ShowEntries(Statement):
    """SHOW STREAMS and the like; ``this`` is the word."""

    arg_types = {"this": True}


class DescribeEntry(Statement):
    """DESCRIBE name."""

    arg_types = {"this": True}


class DropEntry(Statement):
    """DROP kind [IF EXISTS] name."""

    arg_types = {"this": True, "kind": True, "exists": False}


class SetOption(Statement):
    """SET key = value, both literals."""

    arg_types = {"this": True, "value": True}
