"""Canonical form of a text, equal for all spellings of the same tokens."""

from __future__ import annotations

import json
import re

from millstream.errors import EslSyntaxError
from millstream.syntax.tokens import Kind, Token, tokenize

_WORD = re.compile(r"[A-Za-z_]\w*")


def canonical_text(text: str) -> str:
    """Return a text without comments, with words in upper case and with one space between tokens.

    >>> canonical_text("select `Price`*2 -- twice")
    'SELECT PRICE * 2'
    >>> canonical_text("Concat(a, 'Ab')")
    'CONCAT ( A , "Ab" )'
    """
    try:
        return " ".join(_written(token) for token in tokenize(text) if token.kind is not Kind.END)
    except EslSyntaxError:  # a name that is not a text of the language
        return " ".join(text.split())


def _written(token: Token) -> str:
    match token.kind:
        case Kind.TEXT:
            return json.dumps(token.text)
        case Kind.NAME:
            # A column without an alias is named by its text.
            plain = _WORD.fullmatch(token.text) is not None
            return token.text.upper() if plain else f"`{canonical_text(token.text)}`"
        case Kind.HINT:
            return f"/*+ {token.text} */"
        case _:
            return token.raw.upper()
