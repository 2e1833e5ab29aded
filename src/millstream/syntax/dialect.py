"""ESL as a dialect of sqlglot, which holds and prints the trees."""

from __future__ import annotations

import sqlglot
from sqlglot.dialects.spark import Spark

from millstream.errors import MillstreamError
from millstream.syntax.generator import EslGenerator

if not sqlglot.generator.__file__.endswith(".py"):
    raise MillstreamError(
        "Millstream needs sqlglot in pure Python, but a compiled sqlglot is installed",
        hint="pip uninstall sqlglotc",
    )


class Esl(Spark):
    """Spark's dialect, printed as ESL; its texts are parsed by :mod:`millstream.syntax.script`."""

    Generator = EslGenerator
