"""ESL as a dialect of sqlglot, on top of Spark's."""

from __future__ import annotations

import sqlglot
from sqlglot.dialects.spark import Spark
from sqlglot.tokens import TokenType

from millstream.errors import MillstreamError
from millstream.syntax.generator import EslGenerator
from millstream.syntax.statements import EslParser

if not sqlglot.parser.__file__.endswith(".py"):
    raise MillstreamError(
        "Millstream needs sqlglot in pure Python, but a compiled sqlglot is installed",
        hint="pip uninstall sqlglotc",
    )


class Esl(Spark):
    """The language of Millstream."""

    class Tokenizer(Spark.Tokenizer):
        # Opaque commands would swallow EXPLAIN, SHOW and whatever is misspelt.
        COMMANDS: set[TokenType] = set()
        # Jinja's blocks would swallow the braces of aggregate bodies.
        KEYWORDS = {
            text: token
            for text, token in Spark.Tokenizer.KEYWORDS.items()
            if token not in (TokenType.BLOCK_START, TokenType.BLOCK_END)
        }

    Parser = EslParser
    Generator = EslGenerator
