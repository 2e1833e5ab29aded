"""Base of the ESL parser: the cursor over tokens, errors, spans, names and lists."""

from __future__ import annotations

from abc import ABC
from typing import TYPE_CHECKING, NoReturn, TypeVar

from sqlglot import exp

from millstream.errors import EslSyntaxError, did_you_mean
from millstream.syntax.foreign_syntax import AMOUNT, PHRASES, Phrase
from millstream.syntax.spans import set_span, span_of
from millstream.syntax.tokens import Kind, Token

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from millstream.errors import Span

Node = TypeVar("Node", bound=exp.Expr)
Item = TypeVar("Item")

# Words that are always keywords. They can be names in backquotes, or after a dot.
RESERVED = frozenset(
    {
        *("SELECT", "FROM", "WHERE", "GROUP", "HAVING", "ORDER", "BY", "LIMIT", "WITH", "INTO", "AS"),
        *("UNION", "EXCEPT", "INTERSECT", "JOIN", "INNER", "CROSS", "NATURAL", "ON", "USING", "DISTINCT"),
        *("AND", "OR", "NOT", "IN", "BETWEEN", "LIKE", "ILIKE", "RLIKE", "REGEXP", "IS"),
        *("CASE", "WHEN", "THEN", "ELSE", "NULL", "TRUE", "FALSE"),
    }
)
_CLOSING = {"(": ")", "[": "]", "{": "}"}
# Deeper than generated SQL, and shallow enough for recursion over a tree.
MAX_NESTING = 250


class BaseParser(ABC):  # noqa: B024 (its parts have the abstract methods)
    """A cursor over tokens that reports errors."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self._tokens = tokens
        self._index = 0
        self.current = tokens[0]
        self._nesting = 0
        self.in_body = False

    # ------------------------------------------------------------ the cursor

    def if_not_exists(self) -> bool | None:
        return self.words("IF", "NOT", "EXISTS") or None

    def mark(self) -> int:
        """Return the position of the cursor, for :meth:`whole_statement`."""
        return self._index

    def whole_statement(self, mark: int) -> Span:
        """Advance to the end of the statement that begins at a mark, and return its span."""
        while self.current.kind is not Kind.END and self.current.key != ";":
            self.advance()
        return self._tokens[mark].start, self.previous.end

    def skip_statement(self, mark: int) -> None:
        """Advance past the statement that begins at a mark, from any position in it.

        It ends at the next ';' outside braces, since bodies of aggregates contain others.
        """
        self._index, depth = mark, 0
        while self._tokens[self._index].kind is not Kind.END:
            key = self._tokens[self._index].key
            if key == ";" and depth == 0:
                break
            depth = max(0, depth + (key == "{") - (key == "}"))
            self._index += 1
        self.current = self._tokens[self._index]
        self._nesting = 0
        self.in_body = False

    def foreign_phrase(self, mark: int, error: EslSyntaxError) -> EslSyntaxError | None:
        """Return an error that names the construct of another system at which parsing failed, if any."""
        last = mark
        while last + 1 < len(self._tokens) and error.span and self._tokens[last + 1].start <= error.span[0]:
            last += 1
        for index in range(mark, last + 1):
            for phrase in PHRASES:
                if last - index > phrase.reach or not self._is_phrase(phrase, index):
                    continue
                words = [token for token in self._phrase(phrase, index) if token.key not in ("(", "[")]
                span = words[0].start, words[-1].end
                return EslSyntaxError(phrase.message, span=span, hint=phrase.instead)
        return None

    @property
    def at_phrase(self) -> bool:
        """Return whether a construct of another system comes next."""
        return any(self._is_phrase(phrase, self._index) for phrase in PHRASES)

    def _phrase(self, phrase: Phrase, index: int) -> Sequence[Token]:
        return self._tokens[index : index + len(phrase.words)]

    def _is_phrase(self, phrase: Phrase, index: int) -> bool:
        tokens = self._phrase(phrase, index)
        return len(tokens) == len(phrase.words) and all(
            token.kind in (Kind.NUMBER, Kind.TEXT) if word == AMOUNT else token.key == word
            for token, word in zip(tokens, phrase.words, strict=True)
        )

    @property
    def previous(self) -> Token:
        return self._tokens[max(0, self._index - 1)]

    def peek(self, distance: int = 1) -> Token:
        return self._tokens[min(self._index + distance, len(self._tokens) - 1)]

    def advance(self) -> Token:
        token = self.current
        if token.kind is not Kind.END:
            self._index += 1
            self.current = self._tokens[self._index]
        return token

    def at(self, *keys: str) -> bool:
        """Return whether one of these words or signs comes next."""
        return self.current.key in keys

    def at_words(self, *words: str) -> bool:
        """Return whether all of these words come next, one after the other."""
        return all(self.peek(i).key == word for i, word in enumerate(words))

    def take(self, *keys: str) -> Token | None:
        """Consume one of these words or signs if it comes next."""
        return self.advance() if self.current.key in keys else None

    def words(self, *words: str) -> bool:
        """Consume these words if they come next, all of them or none."""
        if not self.at_words(*words):
            return False
        for _ in words:
            self.advance()
        return True

    @property
    def at_end(self) -> bool:
        return self.current.kind is Kind.END or self.current.key == ";"

    # ------------------------------------------------------------ errors

    def fail(self, message: str, token: Token | None = None, hint: str | None = None) -> NoReturn:
        """Raise an error at a token, by default the current one."""
        raise EslSyntaxError(message, span=(token or self.current).span, hint=hint)

    def fail_at(self, message: str, node: exp.Expr, hint: str | None = None) -> NoReturn:
        """Raise an error at a node that has been parsed."""
        raise EslSyntaxError(message, span=span_of(node), hint=hint)

    def fail_expecting(self, what: str, known: Collection[str] = (), hint: str | None = None) -> NoReturn:
        """Raise an error for an unexpected token; a hint names a known word that is similar."""
        self.fail(f"expected {what} but found {self.found()}", hint=self.similar(known) or hint)

    def fail_closing(self) -> NoReturn:
        self.fail(f"did not expect {self.found()} here", hint="nothing is open that it could close")

    def similar(self, known: Collection[str], token: Token | None = None) -> str | None:
        """Return a hint if a word is similar to a known one."""
        token = token or self.current
        if token.kind is not Kind.WORD or len(token.text) < 3 or token.key in known:
            return None
        # Swapped letters are the most frequent slip.
        swapped = [word for word in known if sorted(word) == sorted(token.key)]
        return did_you_mean(token.key, swapped or known)

    def found(self, token: Token | None = None) -> str:
        token = token or self.current
        if token.kind is Kind.END or token.key == ";":
            return "the end of the statement"
        raw = " ".join(token.raw.split())
        raw = raw if len(raw) <= 30 else f"{raw[:28]}.."
        return raw if token.kind in (Kind.TEXT, Kind.HEX, Kind.NAME) else f"'{raw}'"

    # ------------------------------------------------------------ spans

    def spanned(self, node: Node, first: Token | exp.Expr) -> Node:
        """Set the span of a node, from its first token or part to the token just consumed."""
        start = first.start if isinstance(first, Token) else (span_of(first) or (0, 0))[0]
        set_span(node, (start, self.previous.end))
        return node

    def enter(self) -> None:
        """Enter a level of nesting; :meth:`leave` leaves it, an error leaves all levels."""
        self._nesting += 1
        if self._nesting > MAX_NESTING:
            self.fail("this is nested too deeply", hint="split it up, for instance with WITH")

    def leave(self) -> None:
        self._nesting -= 1

    # ------------------------------------------------------------ words and signs

    def expect(self, *keys: str) -> None:
        """Consume these words or signs, or raise an error."""
        for key in keys:
            if not self.take(key):
                self.fail_expecting(key if key.isalpha() else f"'{key}'", (key,))

    def open(self, sign: str) -> Token:
        token = self.take(sign)
        if token is None:
            self.fail_expecting(f"'{sign}'")
        return token

    def close(self, opening: Token) -> None:
        """Consume the bracket that closes an opened one."""
        closing = _CLOSING[opening.key]
        if self.take(closing):
            return
        if self.at_end:
            self.fail(f"this '{opening.key}' is not closed", opening, hint=f"add '{closing}'")
        self.fail_expecting(f"'{closing}'", hint=self.comma_hint())

    def comma_hint(self) -> str | None:
        """Return a hint if two items stand side by side in a list: a comma may be missing."""
        begins = self.current.kind in (Kind.TEXT, Kind.NUMBER, Kind.HEX, Kind.NAME) or (
            self.current.kind is Kind.WORD and self.current.key not in RESERVED
        )
        if self.current.raw.startswith('"'):
            return f"is a comma missing before it? A name stands in backquotes: `{self.current.text[:30]}`"
        return "is a comma missing before it?" if begins else None

    # ------------------------------------------------------------ names and lists

    @property
    def at_name(self) -> bool:
        """Return whether a name comes next that is not a reserved word."""
        return self.is_name(self.current)

    @staticmethod
    def is_name(token: Token) -> bool:
        return token.kind is Kind.NAME or (token.kind is Kind.WORD and token.key not in RESERVED)

    def name(self, what: str) -> exp.Identifier:
        """Parse a name; most words are allowed."""
        if not self.at_name:
            hint = "a reserved word can be a name in `backquotes`" if self.current.key in RESERVED else None
            if self.current.kind is Kind.TEXT:
                hint = f"a name stands in backquotes: `{self.current.text[:30]}`"
            self.fail_expecting(f"the name of {what}", hint=hint)
        return self.identifier()

    def identifier(self) -> exp.Identifier:
        """Return the current token as a name, even a reserved word."""
        token = self.advance()
        return self.spanned(exp.Identifier(this=token.text, quoted=token.kind is Kind.NAME), token)

    def dotted_name(self, what: str) -> str:
        """Parse a name like ``kafka.bootstrap.servers``."""
        parts = [self.name(what).name]
        while self.take("."):
            if self.current.kind not in (Kind.WORD, Kind.NAME):
                self.fail_expecting(f"the rest of the name of {what}")
            parts.append(self.advance().text)
        return ".".join(parts)

    def column(self, what: str) -> exp.Column:
        first = self.current
        column = exp.Column(this=self.name(what))
        if self.take("."):
            column = exp.Column(this=self.name(what), table=column.this)
        if self.at("."):
            self.fail(f"the name of {what} is qualified by a stream at most", first)
        return self.spanned(column, first)

    def listed(self, item: Callable[[], Item]) -> list[Item]:
        items = [item()]
        while self.take(","):
            items.append(item())
        return items

    def wrapped(self, item: Callable[[], Item]) -> list[Item]:
        """Parse a list in parentheses."""
        opening = self.open("(")
        items = self.listed(item)
        self.close(opening)
        return items

    def set_once(self, node: exp.Expr, argument: str, value: object, clause: Token) -> None:
        """Set an argument, or report a clause that is repeated."""
        if node.args.get(argument) is not None:
            self.fail(f"{argument.upper().replace('_', ' ')} is given twice", clause)
        node.set(argument, value)

    def text(self, what: str) -> exp.Literal:
        """Parse a text in quotes."""
        token = self.current
        if token.kind is not Kind.TEXT:
            self.fail(f"expected {what} in quotes but found {self.found()}")
        self.advance()
        return self.spanned(exp.Literal.string(token.text), token)
