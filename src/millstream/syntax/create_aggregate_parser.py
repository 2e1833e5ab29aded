"""Parsing of functions and aggregates: CREATE FUNCTION, CREATE [WINDOW] AGGREGATE and their bodies."""

from __future__ import annotations

from sqlglot import exp

from millstream.syntax import nodes
from millstream.syntax.foreign_syntax import COLUMNS
from millstream.syntax.query_parser import QueryParser
from millstream.syntax.tokens import Kind, Token

BLOCKS = ("INITIALIZE", "ITERATE", "TERMINATE", "EXPIRE")
_BODY_STATEMENTS = ("INSERT", "UPDATE", "DELETE")


class AggregateParser(QueryParser):
    """Parser of the statements that define functions and aggregates."""

    def function(self, first: Token) -> nodes.CreateFunction:
        """Parse CREATE FUNCTION f(x INT) : INT AS expr | TABLE (y INT) AS query | LANGUAGE PYTHON ..."""
        exists = self.if_not_exists()
        node = nodes.CreateFunction(this=self.name("the function"), exists=exists)
        node.set("parameters", self._parameters())
        if not self.words("RETURNS"):
            self._expect_colon()
        is_table = self.at_words("TABLE", "(")
        if is_table:
            self.advance()
            node.set("columns", self.wrapped(self.column_declaration))
        else:
            node.set("returns", self.datatype())
        if self.take("LANGUAGE"):
            node.set("python", self._python())
            return self.spanned(node, first)
        if not self.take("AS"):
            self.fail_expecting("AS and the function's expression", ("AS", "LANGUAGE"))
        if is_table:
            node.set("query", self.query())
        else:
            node.set("body", self.condition("an expression"))
        return self.spanned(node, first)

    def aggregate(self, first: Token, window: bool) -> nodes.CreateAggregate:
        """Parse CREATE [WINDOW] AGGREGATE f(x INT) : INT [ALGEBRAIC] { ... } | LANGUAGE PYTHON AS '...'."""
        exists = self.if_not_exists()
        node = nodes.CreateAggregate(this=self.name("the aggregate"), window=window, exists=exists)
        node.set("parameters", self._parameters())
        self._expect_colon()
        if self.at("("):
            node.set("columns", self.wrapped(self.column_declaration))
        else:
            node.set("returns", self.datatype())
        if self.at("ALGEBRAIC"):
            node.set("algebraic", self._algebraic())
        if self.take("LANGUAGE"):
            node.set("python", self._python())
        else:
            self._body(node)
        return self.spanned(node, first)

    def column_declaration(self, *, collected: bool = False) -> nodes.ColumnDeclaration:
        """Parse ``price DOUBLE``, or just ``price`` in old listings.

        With ``collected``, an unknown type is left to the analysis, which collects errors, and a column may
        be computed: ``at TIMESTAMP AS (timestamp_millis(ms))``.
        """
        first = self.current
        node = nodes.ColumnDeclaration(this=self.name("a column"))
        if not self.at(",", ")") and not self.at_end:
            if not self.at(*COLUMNS):
                unknown = self._unknown_type() if collected else None
                node.set("kind", unknown or self.datatype())
            if collected and (self.at("AS") or self.words("GENERATED", "ALWAYS")):
                node.set("computed", self._computed())
            if self.at(*COLUMNS):
                self.fail(
                    f"did not expect {self.found()} in the declaration of a column",
                    hint=COLUMNS[self.current.key],
                )
        return self.spanned(node, first)

    def _computed(self) -> exp.Expr:
        """Parse ``AS (expression)`` behind a column."""
        if not self.take("AS"):
            self.fail_expecting("AS and an expression", ("AS",))
        if not self.at("("):
            hint = "at TIMESTAMP AS (timestamp_millis(ms))"
            if self.at("PROCTIME"):
                hint = "ORDER BY current_time stamps tuples on arrival: current_time TIMESTAMP"
            self.fail_expecting("the expression of a computed column in parentheses", hint=hint)
        opening = self.open("(")
        computed = self.condition("the expression of a column")
        self.close(opening)
        return computed

    def _unknown_type(self) -> exp.DataType | None:
        """Parse a single word in the place of a type."""
        token = self.current
        if token.kind is not Kind.WORD or self.is_type(token) or self.peek().key not in (",", ")", "AS"):
            return None
        hint = self.hint_of_type(token)
        self.advance()
        return self.spanned(nodes.UnknownType(this=exp.DType.UNKNOWN, word=token.raw, hint=hint), token)

    def _parameters(self) -> list[nodes.ColumnDeclaration]:
        if self.at("(") and self.peek().key == ")":
            self.advance()
            self.advance()
            return []
        return self.wrapped(self.column_declaration)

    def _expect_colon(self) -> None:
        if not self.take(":"):
            self.fail_expecting("':' and a type", hint="the type of the result follows: f(x DOUBLE) : DOUBLE")

    def _algebraic(self) -> nodes.Algebraic:
        first = self.advance()
        node = nodes.Algebraic()
        if self.take("USING"):
            names = self.wrapped(lambda: self.name("an aggregate"))
            if len(names) != 2:
                self.fail("ALGEBRAIC USING takes two aggregates, (partial, final)", first)
            node = nodes.Algebraic(partial=names[0], final=names[1])
        return self.spanned(node, first)

    def _python(self) -> exp.Literal:
        if not self.take("PYTHON"):
            self.fail(f"LANGUAGE {self.found()} is not known", hint="the other language is PYTHON")
        if not self.take("AS"):
            self.fail_expecting("AS 'module:name'", ("AS",))
        return self.text("'module:name'")

    # ------------------------------------------------------------ bodies

    def _body(self, node: nodes.CreateAggregate) -> None:
        if not self.at("{"):
            self.fail_expecting("'{' and the body of the aggregate", ("ALGEBRAIC", "LANGUAGE"))
        opening = self.advance()
        self.in_body = True
        tables, blocks = [], []
        while not self.at("}") and not self._ended:
            first = self.current
            if self.at("TABLE"):
                tables.append(self._local_table())
            elif self.at(*BLOCKS) and self.peek().key in (":", "{"):
                blocks.append(self._block())
            else:
                known = ("TABLE", *BLOCKS)
                expected = f"TABLE, {', '.join(BLOCKS)} or '}}'"
                self.fail_expecting(expected, known, hint=f"is a '}}' missing before {self.found(first)}?")
        self._close_brace(opening)
        self.in_body = False
        node.set("tables", tables)
        node.set("blocks", blocks)

    @property
    def _ended(self) -> bool:
        return self.current.kind is Kind.END

    def _close_brace(self, opening: Token) -> None:
        """Parse the closing brace; unlike other brackets, braces have semicolons between them."""
        if not self.take("}"):
            self.fail("this '{' is not closed", opening, hint="add '}'")

    def _local_table(self) -> nodes.LocalTable:
        first = self.advance()
        table = nodes.LocalTable(this=self.name("a table"))
        table.set("columns", self.wrapped(self.column_declaration))
        self.spanned(table, first)
        self.take(";")
        return table

    def _block(self) -> nodes.StateBlock:
        first = self.advance()
        block = nodes.StateBlock(this=first.key)
        self.expect(":")
        opening = self.open("{")
        statements = []
        while not self.at("}") and not self._ended:
            statements.append(self._body_statement())
            if not self.take(";") and not self.at("}") and not self._ended:
                self.fail_expecting("';' or '}' after a statement")
        self._close_brace(opening)
        block.set("statements", statements)
        self.spanned(block, first)
        self.take(";")
        return block

    def _body_statement(self) -> exp.Expr:
        kind = self.take(*_BODY_STATEMENTS)
        if kind is None:
            hint = self.similar(_BODY_STATEMENTS)
            if self.at(*BLOCKS, "TABLE"):
                hint = f"is a '}}' missing before {self.found()}?"
            elif self.at("SELECT"):
                hint = "to return rows, write INSERT INTO RETURN SELECT ..."
            self.fail_expecting("INSERT, UPDATE or DELETE", hint=hint)
        match kind.key:
            case "INSERT":
                return self.insert(kind)
            case "UPDATE":
                return self.update(kind)
            case _:
                return self.delete(kind)

    def insert(self, first: Token) -> nodes.InsertInto:
        """Parse INSERT INTO name [(columns)] VALUES ... [WHERE cond] | query."""
        self.expect("INTO")
        if self.at("TABLE") and self.is_name(self.peek()):
            self.advance()
        node = nodes.InsertInto(this=self.name("a sink or table"))
        if self.at("(") and self.peek().key != "(" and not self.at_query(1):
            node.set("columns", self.wrapped(lambda: self.name("a column")))
        if self.take("VALUES"):
            node.set("values", self.listed(self._row))
            if self.take("WHERE"):
                node.set("where", self.condition("a condition"))
        else:
            node.set("query", self.any_query("VALUES or a query"))
        return self.spanned(node, first)

    def _row(self) -> exp.Tuple:
        first = self.current
        return self.spanned(exp.Tuple(expressions=self.wrapped(self.expression)), first)

    def update(self, first: Token) -> exp.Update:
        """Parse UPDATE name SET column = value, ... [WHERE cond]."""
        node = exp.Update(this=self._changed_table("SET"))
        self.expect("SET")
        node.set("expressions", self.listed(self._assignment))
        if self.at("WHERE"):
            node.set("where", self.where())
        return self.spanned(node, first)

    def _assignment(self) -> exp.EQ:
        first = self.current
        column = self.column("a column")
        if not self.take("=", "=="):
            self.fail_expecting("'='")
        return self.spanned(exp.EQ(this=column, expression=self.expression()), first)

    def delete(self, first: Token) -> exp.Delete:
        """Parse DELETE FROM name [WHERE cond]."""
        self.expect("FROM")
        node = exp.Delete(this=self._changed_table("WHERE"))
        if self.at("WHERE"):
            node.set("where", self.where())
        return self.spanned(node, first)

    def _changed_table(self, following: str) -> exp.Table:
        first = self.current
        table = exp.Table(this=self.name("a table"))
        if self.take("AS") or (self.at_name and not self.at(following)):
            alias = self.current
            table.set("alias", self.spanned(exp.TableAlias(this=self.name("the alias")), alias))
        return self.spanned(table, first)
