"""Printing of ESL: parsing the text again gives the same tree."""

from __future__ import annotations

import re

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.parser_base import RESERVED
from millstream.syntax.spark_sql_generator import PlainSqlGenerator, transforms

_PLAIN_KEY = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class EslGenerator(PlainSqlGenerator):
    """Generator for the nodes that ESL adds to SQL."""

    # ------------------------------------------------------------ helpers

    def created(self, expression: exp.Expression, kind: str) -> str:
        replace = " OR REPLACE" if expression.args.get("replace") else ""
        exists = " IF NOT EXISTS" if expression.args.get("exists") else ""
        return f"CREATE{replace} {kind}{exists} {self.sql(expression, 'this')}"

    def sourced(self, expression: exp.Expression) -> str:
        options = expression.args.get("options")
        return self.clause(expression, "format", "USING") + (
            f" OPTIONS ({self.listed(options)})" if options else ""
        )

    # ------------------------------------------------------------ streams, tables, sinks

    def createstream_sql(self, expression: nodes.CreateStream) -> str:
        columns = expression.args.get("columns")
        return "".join(
            (
                self.created(expression, "STREAM"),
                f" ({self.listed(columns)})" if columns else "",
                self.clause(expression, "order_by", "ORDER BY"),
                self.sourced(expression),
                self.clause(expression, "source", "SOURCE"),
                *(f" {self.sql(clause)}" for clause in expression.args.get("clauses") or ()),
                f" {self.sql(expression, 'late')}" if expression.args.get("late") else "",
                self.clause(expression, "bad", "BAD INTO"),
                self.clause(expression, "query", "AS"),
            )
        )

    def createtable_sql(self, expression: nodes.CreateTable) -> str:
        columns = expression.args.get("columns")
        return "".join(
            (
                self.created(expression, "TABLE"),
                f" ({self.listed(columns)})" if columns else "",
                self.clause(expression, "order_by", "ORDER BY"),
                self.sourced(expression),
                self.clause(expression, "refresh", "REFRESH EVERY"),
                self.clause(expression, "query", "AS"),
            )
        )

    def createsink_sql(self, expression: nodes.CreateSink) -> str:
        return self.created(expression, "SINK") + self.sourced(expression)

    def createview_sql(self, expression: nodes.CreateView) -> str:
        return self.created(expression, "VIEW") + self.clause(expression, "query", "AS")

    def unknowntype_sql(self, node: nodes.UnknownType) -> str:
        return str(node.args["word"])

    def columndeclaration_sql(self, expression: nodes.ColumnDeclaration) -> str:
        declared = f"{self.sql(expression, 'this')} {self.sql(expression, 'kind')}".rstrip()
        computed = self.sql(expression, "computed")
        return f"{declared} AS ({computed})" if computed else declared

    def option_sql(self, expression: nodes.Option) -> str:
        return f"{self.sql(expression, 'this')} {self.sql(expression, 'value')}"

    def slack_sql(self, expression: nodes.Slack) -> str:
        mode = expression.args.get("mode")
        return f"SLACK {self.sql(expression, 'this')}{f' {mode}' if mode else ''}" + self.clause(
            expression, "on", "ON"
        )

    def orderedper_sql(self, expression: nodes.OrderedPer) -> str:
        return (
            f"ORDERED PER ({self.listed(expression.expressions)})"
            + self.clause(expression, "idle", "IDLE AFTER")
            + self.clause(expression, "on", "ON")
        )

    def punctuatedby_sql(self, expression: nodes.PunctuatedBy) -> str:
        per = expression.args.get("per")
        return (
            f"PUNCTUATED BY ({self.sql(expression, 'this')})"
            + (f" PER ({self.listed(per)})" if per else "")
            + self.clause(expression, "on", "ON")
        )

    def heartbeat_sql(self, expression: nodes.Heartbeat) -> str:
        return f"HEARTBEAT {self.sql(expression, 'this') or 'NONE'}" + self.clause(expression, "on", "ON")

    def late_sql(self, expression: nodes.Late) -> str:
        return f"LATE INTO {self.sql(expression, 'this')}" if expression.this else "LATE DROP"

    def splitstream_sql(self, expression: nodes.SplitStream) -> str:
        return f"SPLIT STREAM {self.sql(expression, 'this')} INTO {self.listed(expression.args['branches'])}"

    def branch_sql(self, expression: nodes.Branch) -> str:
        return f"{self.sql(expression, 'this')} AS ({self.sql(expression, 'query')})"

    # ------------------------------------------------------------ functions and aggregates

    def createfunction_sql(self, expression: nodes.CreateFunction) -> str:
        python, columns = expression.args.get("python"), expression.args.get("columns")
        return (
            f"{self.created(expression, 'FUNCTION')}({self.listed(expression.args.get('parameters'))})"
            f" : {f'TABLE ({self.listed(columns)})' if columns else self.sql(expression, 'returns')}"
            + (
                f" LANGUAGE PYTHON AS {self.sql(python)}"
                if python
                else self.clause(expression, "query" if columns else "body", "AS")
            )
        )

    def createaggregate_sql(self, expression: nodes.CreateAggregate) -> str:
        columns = expression.args.get("columns")
        python = expression.args.get("python")
        head = "".join(
            (
                self.created(
                    expression, "WINDOW AGGREGATE" if expression.args.get("window") else "AGGREGATE"
                ),
                f"({self.listed(expression.args.get('parameters'))}) : ",
                f"({self.listed(columns)})" if columns else self.sql(expression, "returns"),
                f" {self.sql(expression, 'algebraic')}" if expression.args.get("algebraic") else "",
            )
        )
        if python:
            return f"{head} LANGUAGE PYTHON AS {self.sql(python)}"
        parts = [*(expression.args.get("tables") or ()), *(expression.args.get("blocks") or ())]
        return f"{head} {{ {' '.join(self.sql(part) for part in parts)} }}"

    def algebraic_sql(self, expression: nodes.Algebraic) -> str:
        if not expression.args.get("partial"):
            return "ALGEBRAIC"
        return f"ALGEBRAIC USING ({self.sql(expression, 'partial')}, {self.sql(expression, 'final')})"

    def localtable_sql(self, expression: nodes.LocalTable) -> str:
        return f"TABLE {self.sql(expression, 'this')}({self.listed(expression.args['columns'])});"

    def stateblock_sql(self, expression: nodes.StateBlock) -> str:
        body = " ".join(f"{self.sql(s)};" for s in expression.args.get("statements") or ())
        return f"{expression.this} : {{ {body} }}"

    def insertinto_sql(self, expression: nodes.InsertInto) -> str:
        columns = expression.args.get("columns")
        values = expression.args.get("values")
        head = f"INSERT INTO {self.sql(expression, 'this')}{f' ({self.listed(columns)})' if columns else ''}"
        if values:
            return f"{head} VALUES {self.listed(values)}{self.clause(expression, 'where', 'WHERE')}"
        return f"{head} {self.sql(expression, 'query')}"

    # ------------------------------------------------------------ windows and patterns

    def rowcount_sql(self, expression: nodes.RowCount) -> str:
        return f"{self.sql(expression, 'this')} ROWS"

    def streamwindow_sql(self, expression: nodes.StreamWindow) -> str:
        kind = expression.kind
        head = "" if kind == "PREDICATE" else kind
        size = expression.args.get("range")
        return (
            "["
            + "".join(
                (
                    f"{head} {self.sql(size)}" if size else head,
                    self.clause(expression, "start_at", "START AT"),
                    self.clause(expression, "end_at", "END AT"),
                    " INCLUSIVE" if expression.args.get("inclusive") else "",
                    self.clause(expression, "gap", "GAP"),
                    self.clause(expression, "start_when", "START WHEN"),
                    self.clause(expression, "end_when", "END WHEN"),
                    self.clause(expression, "rattr", "RATTR"),
                    self.clause(expression, "slide", "SLIDE"),
                    self.clause(expression, "lag", "LAG"),
                    self.clause(expression, "wattr", "WATTR"),
                    self.clause(expression, "sattr", "SATTR"),
                    self.clause(expression, "pattr", "PATTR"),
                    self.clause(expression, "origin", "ORIGIN"),
                    self.clause(expression, "stamp", "STAMP"),
                    self.clause(expression, "emit_empty", "EMIT"),
                    self.clause(expression, "emit", "EMIT EVERY"),
                )
            ).strip()
            + "]"
        )

    def overspec_sql(self, expression: nodes.OverSpec) -> str:
        return (
            self.windowspec_sql(expression)
            + self.clause(expression, "slide", "SLIDE")
            + self.clause(expression, "active", "ACTIVE EXPIRATION")
            + self.clause(expression, "emit", "EMIT EVERY")
        )

    def along_sql(self, expression: nodes.Along) -> str:
        return f"RANGE {self.sql(expression, 'this')}"

    def streamtable_sql(self, expression: nodes.StreamTable) -> str:
        return self._stream(expression, ".".join(self.sql(part) for part in expression.parts))

    def streamsubquery_sql(self, expression: nodes.StreamSubquery) -> str:
        return self._stream(expression, f"({self.sql(expression, 'this')})")

    def _stream(self, expression: exp.Expr, name: str) -> str:
        return "".join(
            (
                name,
                *(f" {self.sql(expression, k)}" for k in ("window", "pattern") if expression.args.get(k)),
                self.clause(expression, "alias", "AS"),
                *(self.sql(join) for join in expression.args.get("joins") or ()),
            )
        )

    def tablecall_sql(self, expression: nodes.TableCall) -> str:
        return f"TABLE({self.sql(expression, 'this')}){self.clause(expression, 'alias', 'AS')}"

    def pattern_sql(self, expression: nodes.Pattern) -> str:
        return (
            self.clause(expression, "partition_by", "PARTITION BY")
            + self.clause(expression, "sequence_by", "SEQUENCE BY")
            + f" AS ({self.listed(expression.args['elements'])})"
        ).strip()

    def element_sql(self, expression: nodes.Element) -> str:
        return f"{'*' if expression.args.get('star') else ''}{self.sql(expression, 'this')}"

    def starred_sql(self, expression: nodes.Starred) -> str:
        return f"*{self.sql(expression, 'this')}"

    # ------------------------------------------------------------ housekeeping

    def explain_sql(self, expression: nodes.Explain) -> str:
        mode = expression.args.get("mode")
        return f"EXPLAIN {f'{mode} ' if mode else ''}{self.sql(expression, 'this')}"

    def showentries_sql(self, expression: nodes.ShowEntries) -> str:
        return f"SHOW {expression.this}"

    def describeentry_sql(self, expression: nodes.DescribeEntry) -> str:
        return f"DESCRIBE {self.sql(expression, 'this')}"

    def dropentry_sql(self, expression: nodes.DropEntry) -> str:
        exists = " IF EXISTS" if expression.args.get("exists") else ""
        return f"DROP {expression.args['kind']}{exists} {self.sql(expression, 'this')}"

    def setoption_sql(self, expression: nodes.SetOption) -> str:
        key = expression.this.name
        if not _PLAIN_KEY.fullmatch(key) or key.split(".")[0].upper() in RESERVED:
            key = self.sql(exp.to_identifier(key, quoted=True))
        return f"SET {key} = {self.sql(expression, 'value')}"


def _own_nodes() -> list[type[exp.Expression]]:
    candidates = (value for value in vars(nodes).values() if isinstance(value, type))
    own = [c for c in candidates if issubclass(c, exp.Expression) and c.__module__ == nodes.__name__]
    return [node for node in own if node is not nodes.Statement]


# sqlglot looks up the methods for its own nodes by name; those for ours are registered here.
EslGenerator.TRANSFORMS = transforms(EslGenerator, *_own_nodes())
