"""Tokenizer with the lexical rules of Spark SQL.

Every word is just a word here: the parser decides by its position whether it is a keyword. So a column may be
called ``slide`` or ``date``.
"""

from __future__ import annotations

import re
import sys
from enum import Enum, auto
from typing import NamedTuple

from millstream.errors import EslSyntaxError, Span
from millstream.syntax.foreign_syntax import CHARACTERS


class Kind(Enum):
    """Kinds of tokens."""

    WORD = auto()
    NAME = auto()  # in backquotes
    TEXT = auto()
    HEX = auto()
    NUMBER = auto()
    SIGN = auto()
    HINT = auto()
    END = auto()


class Token(NamedTuple):
    """A piece of the source.

    Attributes:
        kind: Its kind.
        text: Its value: the content of a quoted text, without quotes and escapes.
        raw: Its spelling.
        key: Its identity for the parser: a word in upper case, a sign, and empty for all others.
        start: Its first character.
        end: Its last character.
    """

    kind: Kind
    text: str
    raw: str
    key: str
    start: int
    end: int

    @property
    def span(self) -> Span:
        return self.start, self.end


# Possessive quantifiers do not backtrack: an unclosed quote fails at once, at its opening.
_TOKEN = re.compile(
    r"""
    (?P<blank>   [\s\ufeff]++ | --[^\r\n]*+ )
  | (?P<comment> /\* )
  | (?P<raw>     [rR] (?: '[^']*+' | "[^"]*+" ) )
  | (?P<hex>     [xX] (?: '[^']*+' | "[^"]*+" ) )
  | (?P<text>    ' (?: [^'\\]++ | \\. | '' )*+ ' | " (?: [^"\\]++ | \\. | "" )*+ " )
  | (?P<name>    ` (?: [^`]++ | `` )*+ ` )
  | (?P<number>  (?: [0-9]++ (?: \.[0-9]*+ )? | \.[0-9]++ ) (?: [eE][+-]?[0-9]++ )?
                 (?: [lLsSyYdDfF] | [bB][dD] )? (?!\w) )
  | (?P<word>    \w++ )
  | (?P<sign>    <=> | \|\| | -> | => | == | <> | != | <= | >= | :: | [()\[\]{},;.:+\-*/%=<>!?~&|^] )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_ESCAPES = {
    quote: re.compile(rf"\\(u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}|[01][0-7]{{2}}|.)|{quote}{quote}", re.DOTALL)
    for quote in "'\""
}
_ESCAPED = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}
_SURROGATE = re.compile("[\ud800-\udfff]")
# Characters that word processors and web pages substitute for quotes and signs.
_LOOKALIKES = {
    **dict.fromkeys("\u2018\u2019\u201a\u2032\u00b4", "the straight quote '"),
    **dict.fromkeys("\u201c\u201d\u201e\u2033\u00ab\u00bb", 'the straight quote "'),
    **dict.fromkeys("\u2010\u2011\u2013\u2014\u2212", "the minus sign -"),
    "\u00d7": "the sign *",
    "\u2264": "the sign <=",
    "\u2265": "the sign >=",
    "\u2260": "the sign <>",
}


def tokenize(text: str) -> list[Token]:
    """Return all tokens, the last of kind END; an EslSyntaxError names a character that begins none.

    >>> [token.key or token.text for token in tokenize("SELECT `a b`, 'it''s' -- so")]
    ['SELECT', 'a b', ',', "it's", '']
    """
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unexpected(text, position)
        group = match.lastgroup
        end = match.end()
        if group == "comment":
            end = _comment_end(text, position)
            if text.startswith("/*+", position) and tokens and tokens[-1].key == "SELECT":
                tokens.append(_token(Kind.HINT, text, position, end, text[position + 3 : end - 2].strip()))
        elif group != "blank":
            tokens.append(_make(str(group), text, position, end))
        position = end
    # The end is shown after the last token, where something may be missing.
    last = tokens[-1].end + 1 if tokens else len(text)
    tokens.append(Token(Kind.END, "", "", "", last, last))
    return tokens


def _token(kind: Kind, source: str, start: int, end: int, text: str, key: str = "") -> Token:
    return Token(kind, text, source[start:end], key, start, end - 1)


def _make(group: str, source: str, start: int, end: int) -> Token:
    raw = source[start:end]
    match group:
        case "word":
            # Only ASCII letters make keywords: some others turn into them in upper case.
            return _token(Kind.WORD, source, start, end, raw, raw.upper() if raw.isascii() else "")
        case "sign":
            return _token(Kind.SIGN, source, start, end, raw, raw)
        case "number":
            return _token(Kind.NUMBER, source, start, end, raw)
        case "name":
            return _token(Kind.NAME, source, start, end, raw[1:-1].replace("``", "`"))
        case "hex":
            return _token(Kind.HEX, source, start, end, raw[2:-1])
        case "raw":
            return _token(Kind.TEXT, source, start, end, raw[2:-1])
        case _:
            return _token(Kind.TEXT, source, start, end, _unescaped(raw))


def _unescaped(raw: str) -> str:
    text = _ESCAPES[raw[0]].sub(_character, raw[1:-1])
    if _SURROGATE.search(text):
        # Surrogate pairs become one character; one without a partner is not a character.
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _character(match: re.Match[str]) -> str:
    escape = match.group(1)
    if escape is None:
        return match.group()[0]
    if len(escape) == 1:
        return _ESCAPED.get(escape, escape)
    code = int(escape, 8) if escape.isdigit() else int(escape[1:], 16)
    return chr(code) if code <= sys.maxunicode else "\ufffd"


def _comment_end(text: str, start: int) -> int:
    """Return the position after a comment, which may contain comments."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    raise EslSyntaxError("this comment is not closed", span=(start, start + 1), hint="add */ where it ends")


def _unexpected(text: str, position: int) -> EslSyntaxError:
    character = text[position]
    span = (position, position)
    if character in "'\"":
        return EslSyntaxError("this text is not closed", span=span, hint=f"add {character} where it ends")
    if character == "`":
        return EslSyntaxError("this name is not closed", span=span, hint="add ` where it ends")
    shown = f"'{character}'" if character.isprintable() else f"U+{ord(character):04X}"
    hint = (
        f"did you mean {_LOOKALIKES[character]}?" if character in _LOOKALIKES else CHARACTERS.get(character)
    )
    return EslSyntaxError(f"did not expect the character {shown} here", span=span, hint=hint)
