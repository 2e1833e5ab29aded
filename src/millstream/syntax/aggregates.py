"""Parsing of functions and aggregates: CREATE FUNCTION, CREATE [WINDOW] AGGREGATE and their bodies."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.tokens import Token, TokenType

from millstream.syntax import nodes
from millstream.syntax.windows import WindowParser

BLOCKS = ("INITIALIZE", "ITERATE", "TERMINATE", "EXPIRE")
_TYPE_ENDS = (TokenType.COMMA, TokenType.R_PAREN)


class AggregateParser(WindowParser):
    """The statements that define functions of the user's own."""

    def parse_function(self, first: Token) -> nodes.CreateFunction:
        """CREATE FUNCTION f(x DOUBLE) : DOUBLE AS expr | LANGUAGE PYTHON AS 'module:name'."""
        node = nodes.CreateFunction(this=self.name("the function"), parameters=self._parse_parameters())
        self.expect_token(TokenType.COLON, ":")
        node.set("returns", self.datatype())
        if self.words("LANGUAGE"):
            node.set("python", self._parse_python())
        else:
            if not self._match(TokenType.ALIAS):
                self.fail(f"expected AS and the function's expression but found {self.found()}")
            node.set("body", self.condition("an expression"))
        return self.spanned(node, first)

    def parse_aggregate(self, first: Token, window: bool) -> nodes.CreateAggregate:
        """CREATE [WINDOW] AGGREGATE name(parameters) : type [ALGEBRAIC] { ... } | LANGUAGE PYTHON AS '...'."""
        node = nodes.CreateAggregate(this=self.name("the aggregate"), window=window)
        node.set("parameters", self._parse_parameters())
        self.expect_token(TokenType.COLON, ":")
        if self._match(TokenType.L_PAREN, advance=False):
            node.set("columns", self.wrapped(self.column_declaration))
        else:
            node.set("returns", self.datatype())
        if self.words("ALGEBRAIC"):
            node.set("algebraic", self._parse_algebraic())
        if self.words("LANGUAGE"):
            node.set("python", self._parse_python())
        else:
            self._parse_body(node)
        return self.spanned(node, first)

    def column_declaration(self) -> nodes.ColumnDeclaration:
        """``price DOUBLE``, or just ``price`` in old listings."""
        first = self._curr
        node = nodes.ColumnDeclaration(this=self.name("a column"))
        if self._curr and self._curr.token_type not in _TYPE_ENDS:
            node.set("kind", self.datatype())
        return self.spanned(node, first)

    def datatype(self) -> exp.DataType:
        first = self._curr
        node = self._parse_types(check_func=False, schema=False)
        if not isinstance(node, exp.DataType) or node.is_type(exp.DType.USERDEFINED):
            self.fail(f"'{first.text}' is not a type" if first else "expected a type", first or None)
        return self.spanned(node, first)

    def _parse_parameters(self) -> list[nodes.ColumnDeclaration]:
        if self._match_pair(TokenType.L_PAREN, TokenType.R_PAREN):
            return []
        return self.wrapped(self.column_declaration)

    def _parse_algebraic(self) -> nodes.Algebraic:
        first = self._prev
        node = nodes.Algebraic()
        if self._match(TokenType.USING):
            names = self.wrapped(lambda: self.name("an aggregate"))
            if len(names) != 2:
                self.fail("ALGEBRAIC USING takes two aggregates, (partial, final)", self._prev)
            node = nodes.Algebraic(partial=names[0], final=names[1])
        return self.spanned(node, first)

    def _parse_python(self) -> exp.Literal:
        if not self.words("PYTHON"):
            self.fail(f"LANGUAGE {self.found()} is not known", hint="the other language is PYTHON")
        if not self._match(TokenType.ALIAS):
            self.fail(f"expected AS 'module:name' but found {self.found()}")
        return self.string("'module:name'")

    def string(self, what: str) -> exp.Literal:
        first = self._curr
        if not self._match(TokenType.STRING):
            self.fail(f"expected {what} in quotes but found {self.found()}")
        return self.spanned(exp.Literal.string(self._prev.text), first)

    # ------------------------------------------------------------ bodies

    def _parse_body(self, node: nodes.CreateAggregate) -> None:
        self.expect_token(TokenType.L_BRACE, "{")
        self._in_body = True
        tables, blocks = [], []
        while not self._match(TokenType.R_BRACE):
            first = self._curr
            if self.words("TABLE"):
                table = nodes.LocalTable(this=self.name("a local table"))
                table.set("columns", self.wrapped(self.column_declaration))
                tables.append(self.spanned(table, first))
                self._match(TokenType.SEMICOLON)
            elif self._match_texts(BLOCKS):
                blocks.append(self._parse_block(first))
            else:
                self.fail(f"expected TABLE, {', '.join(BLOCKS)} or '}}' but found {self.found()}")
        self._in_body = False
        node.set("tables", tables)
        node.set("blocks", blocks)

    def _parse_block(self, first: Token) -> nodes.StateBlock:
        block = nodes.StateBlock(this=first.text.upper())
        self.expect_token(TokenType.COLON, ":")
        self.expect_token(TokenType.L_BRACE, "{")
        statements = []
        while not self._match(TokenType.R_BRACE):
            statements.append(self._parse_body_statement())
            if not self._match(TokenType.SEMICOLON) and not self._match(TokenType.R_BRACE, advance=False):
                self.fail(f"expected ';' or '}}' after a statement but found {self.found()}")
        block.set("statements", statements)
        self._match(TokenType.SEMICOLON)
        return self.spanned(block, first)

    def _parse_body_statement(self) -> exp.Expr:
        first = self._curr
        node: exp.Expr | None
        if self._match(TokenType.INSERT):
            node = self.parse_insert(first)
        elif self._match(TokenType.UPDATE):
            node = self._parse_update()
        elif self._match(TokenType.DELETE):
            node = self._parse_delete()
        else:
            self.fail(f"expected INSERT, UPDATE or DELETE but found {self.found()}")
        return self.spanned(node, first)

    def parse_insert(self, first: Token) -> nodes.InsertInto:
        """INSERT INTO name [(columns)] VALUES ... [WHERE cond] | query."""
        self.expect("INTO")
        self._match(TokenType.TABLE)
        node = nodes.InsertInto(this=self.name("a sink or table"))
        if self._match(TokenType.L_PAREN, advance=False) and self._next.token_type is not TokenType.SELECT:
            node.set("columns", self.wrapped(lambda: self.name("a column")))
        if self._match(TokenType.VALUES):
            node.set("values", self.listed(self._parse_row))
            if self._match(TokenType.WHERE):
                node.set("where", self.condition("a condition"))
        else:
            node.set("query", self.query())
        return self.spanned(node, first)

    def _parse_row(self) -> exp.Tuple:
        first = self._curr
        return self.spanned(exp.Tuple(expressions=self.wrapped(lambda: self.condition("a value"))), first)
