"""Parsing of types, which are those of Spark SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from millstream.syntax.foreign_syntax import TYPES
from millstream.syntax.operator_parser import OperatorParser
from millstream.syntax.tokens import Kind

if TYPE_CHECKING:
    from millstream.syntax.tokens import Token

INTERVAL_UNITS = frozenset(
    unit + plural
    for unit in ("MICROSECOND", "MILLISECOND", "SECOND", "MINUTE", "HOUR", "DAY", "WEEK", "MONTH", "YEAR")
    for plural in ("", "S")
)
_SIMPLE = {
    "BOOLEAN": exp.DType.BOOLEAN,
    "BYTE": exp.DType.TINYINT,
    "TINYINT": exp.DType.TINYINT,
    "SHORT": exp.DType.SMALLINT,
    "SMALLINT": exp.DType.SMALLINT,
    "INT": exp.DType.INT,
    "INTEGER": exp.DType.INT,
    "LONG": exp.DType.BIGINT,
    "BIGINT": exp.DType.BIGINT,
    "FLOAT": exp.DType.FLOAT,
    "REAL": exp.DType.FLOAT,
    "DOUBLE": exp.DType.DOUBLE,
    "DATE": exp.DType.DATE,
    "TIME": exp.DType.TIME,
    "TIMESTAMP": exp.DType.TIMESTAMPTZ,
    "TIMESTAMP_LTZ": exp.DType.TIMESTAMPLTZ,
    "TIMESTAMP_NTZ": exp.DType.TIMESTAMPNTZ,
    "STRING": exp.DType.TEXT,
    "BINARY": exp.DType.BINARY,
    "VARIANT": exp.DType.VARIANT,
    "VOID": exp.DType.NULL,
}
_DECIMAL = ("DECIMAL", "DEC", "NUMERIC")
_CHARACTERS = ("CHAR", "CHARACTER", "VARCHAR")
_TYPES = (*_SIMPLE, *_DECIMAL, *_CHARACTERS, "INTERVAL", "ARRAY", "MAP", "STRUCT")


class DataTypeParser(OperatorParser):
    """Parser of types of columns, parameters and casts."""

    def datatype(self) -> exp.DataType:
        first = self.current
        name = first.key
        if name not in _TYPES:
            if first.kind is not Kind.WORD:
                self.fail_expecting("a type")
            self.fail(f"{self.found()} is not a type", hint=self.hint_of_type(first))
        self.enter()
        self.advance()
        if name in _SIMPLE:
            node = exp.DataType(this=_SIMPLE[name], nested=False)
        elif name in _DECIMAL:
            node = exp.DataType(this=exp.DType.DECIMAL, nested=False)
            if self.at("("):
                node.set("expressions", self._sizes(2))
        elif name in _CHARACTERS:
            # To Spark these are strings, and their length matters only in tables that Spark itself stores.
            if self.at("("):
                self._sizes(1)
            node = exp.DataType(this=exp.DType.TEXT, nested=False)
        elif name == "INTERVAL":
            node = self._interval_type()
        else:
            node = self._nested_type(name)
        if self.at("COLLATE") and node.this is exp.DType.TEXT:
            self.advance()
            node.set("collate", exp.Column(this=self.name("a collation")))
        self.leave()
        return self.spanned(node, first)

    def is_type(self, token: Token) -> bool:
        return token.key in _TYPES

    def hint_of_type(self, token: Token) -> str | None:
        """Return a hint for a word that is not a type: a synonym, or a similar type."""
        known = TYPES.get(token.key)
        return self.similar(_TYPES, token) if known is None else f"write {known}"

    def _sizes(self, most: int) -> list[exp.DataTypeParam]:
        opening = self.open("(")
        sizes = self.listed(self._size)
        if len(sizes) > most:
            self.fail(f"expected at most {most} number{'s' * (most > 1)} for the size of a type", opening)
        self.close(opening)
        return sizes

    def _size(self) -> exp.DataTypeParam:
        token = self.current
        if token.kind is not Kind.NUMBER or not token.text.isdigit():
            self.fail_expecting("a whole number")
        self.advance()
        return self.spanned(exp.DataTypeParam(this=exp.Literal.number(token.text)), token)

    def _interval_type(self) -> exp.DataType:
        if not self.at_unit:
            return exp.DataType(this=exp.DType.INTERVAL)
        return exp.DataType(this=exp.Interval(unit=self.unit_span()))

    @property
    def at_unit(self) -> bool:
        return self.current.key in INTERVAL_UNITS

    def unit_span(self) -> exp.Var | exp.IntervalSpan:
        """Parse ``MINUTES`` or ``DAY TO SECOND``."""
        first = self.current
        unit = self.unit()
        if not self.at("TO"):
            return unit
        self.advance()
        return self.spanned(exp.IntervalSpan(this=unit, expression=self.unit()), first)

    def unit(self) -> exp.Var:
        token = self.current
        if not self.at_unit:
            hint = "units are SECONDS, MINUTES, HOURS, DAYS and so on"
            self.fail_expecting("a unit of time", INTERVAL_UNITS, hint)
        self.advance()
        return self.spanned(exp.Var(this=token.key), token)

    def _nested_type(self, name: str) -> exp.DataType:
        opening = self.current
        if not self.take("<"):
            self.fail_expecting(f"'<' behind {name}")
        if name == "STRUCT":
            parts: list[exp.Expr] = list(self.listed(self._field)) if not self.at(">") else []
        else:
            parts = list(self.listed(self.datatype))
            if len(parts) != (2 if name == "MAP" else 1):
                self.fail("MAP takes two types and ARRAY one", opening)
        if not self.take(">"):
            self.fail_expecting("'>'")
        return exp.DataType(this=exp.DType[name], expressions=parts, nested=True)

    def _field(self) -> exp.ColumnDef:
        first = self.current
        name = self.name("a field")
        self.take(":")
        return self.spanned(exp.ColumnDef(this=name, kind=self.datatype()), first)
