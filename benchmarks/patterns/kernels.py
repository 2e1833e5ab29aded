"""From the text of a query with a pattern to the kernel that searches for it, without a query around it."""

from __future__ import annotations

from millstream.analysis.definitions.statement_analyzer import AnalysedStatement, analyse
from millstream.catalog import Catalog
from millstream.codegen.patterns.pattern_compiler import compile_pattern
from millstream.ir.pattern import Pattern
from millstream.kernels.patterns.pattern_match import PatternMatch
from millstream.kernels.specs import PatternSpec
from millstream.plan import nodes
from millstream.plan.builder import build
from millstream.program.program import Program
from millstream.syntax import parse_script


def form_of(script: str) -> Pattern:
    """The checked form of the pattern in the last statement."""
    catalog = Catalog()
    last: AnalysedStatement | None = None
    for statement in parse_script(script):
        last = analyse(statement, catalog)
    assert last is not None
    [form] = [
        node.pattern.form for node in build(last.meaning.query).walk() if isinstance(node, nodes.PatternMatch)
    ]
    assert form is not None
    return form


def kernel_of(form: Pattern, *, ops: bool = True, counted: bool = False) -> PatternMatch:
    """Tuples have columns of the names in the query; results are called r0, r1 and so on."""
    return PatternMatch(spec_of(compile_pattern(form, ops=ops, counted=counted)))


def spec_of(program: Program) -> PatternSpec:
    arguments = tuple(parameter.name for parameter in program.parameters)
    return PatternSpec(program, arguments, tuple(f"r{i}" for i in range(len(program.returns))))
