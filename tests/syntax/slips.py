"""Slips of the pen: texts whose tokens are left out, repeated, swapped or replaced."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from millstream.syntax.tokens import tokenize
from tests.chance import Chance

WORDS = """
    SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET UNION ALL EXCEPT INTERSECT JOIN LEFT SEMI ON USING
    AS AND OR NOT IN BETWEEN LIKE IS NULL TRUE CASE WHEN THEN ELSE END WITH DISTINCT VALUES EXISTS CAST
    INTERVAL LATERAL VIEW WINDOW OVER PARTITION RANGE ROWS PRECEDING CURRENT ROW SLIDE EMIT EVERY ACTIVE
    EXPIRATION WATTR PATTR TUMBLE NOW SESSION GAP LANDMARK START AT ISTREAM CREATE STREAM TABLE AGGREGATE
    FUNCTION SINK SLACK LATE INTO DROP INITIALIZE ITERATE TERMINATE EXPIRE INSERT RETURN UPDATE SET DELETE
    SPLIT EXPLAIN SHOW STREAMS SEQUENCE MINUTES INT STRING ( ) ( ) [ ] { } , , ; : . + - * / % = < > <= <>
    || -> => :: ! ~ & ^ | a b s t f count 1 2.5 3L 'x' `y` X'1F'
"""
VOCABULARY = WORDS.split()
_KEYWORDS = frozenset(word for word in VOCABULARY if len(word) > 1 and word.isupper())


@cache
def raw_tokens(text: str) -> tuple[str, ...]:
    return tuple(token.raw for token in tokenize(text)[:-1])


def slipped(chance: Chance, text: str, words: Sequence[str] = VOCABULARY, most: int = 4) -> str:
    """A text with one to ``most`` slips; ``words`` replace tokens or come between them."""
    tokens = list(raw_tokens(text))
    for _ in range(chance.randint(1, most)):
        i, j = chance.randint(0, len(tokens) - 1), chance.randint(0, len(tokens) - 1)
        match chance.choice(("delete", "repeat", "swap", "replace", "insert")):
            case "delete" if len(tokens) > 1:
                del tokens[i]
            case "repeat":
                tokens.insert(j, tokens[i])
            case "swap":
                tokens[i], tokens[j] = tokens[j], tokens[i]
            case "replace":
                tokens[i] = chance.choice(words)
            case _:
                tokens.insert(i, chance.choice(words))
    return " ".join(tokens)


Kinds = dict[str, list[str]]


def by_kind(words: Sequence[str]) -> Kinds:
    """Words by what they are: names, keywords, numbers, texts, signs."""
    kinds: Kinds = {}
    for word in words:
        kinds.setdefault(_kind(word), []).append(word)
    return kinds


def confused(chance: Chance, text: str, kinds: Kinds, most: int) -> str:
    """A text in which one to ``most`` tokens are replaced by others of the same kind, often its own."""
    own = raw_tokens(text)
    tokens = list(own)
    for _ in range(chance.randint(1, most)):
        i = chance.randint(0, len(tokens) - 1)
        kind = _kind(tokens[i])
        near = [token for token in own if _kind(token) == kind]
        tokens[i] = chance.choice(near if chance.randint(0, 2) and near else kinds.get(kind) or near or own)
    return " ".join(tokens)


@cache
def _kind(raw: str) -> str:
    token = tokenize(raw)[0]
    return "KEYWORD" if token.key in _KEYWORDS and token.text.isalpha() else token.kind.name
