"""Generated source is such that Python can read it."""

from contextlib import ExitStack

import pytest

from millstream.codegen.core.source_writer import SourceWriter
from millstream.errors import AnalysisError


def test_blocks_are_no_deeper_than_python_reads_them() -> None:
    writer = SourceWriter()
    with ExitStack() as stack:
        for _ in range(98):
            stack.enter_context(writer.deeper("if True:"))
        with (
            pytest.raises(AnalysisError, match="nested too deeply to be compiled"),
            writer.deeper("if True:"),
        ):
            pass
    compile(writer.text(), "<generated>", "exec")
