"""Numbers of analyses of bodies and of generated programs, and refusals without a generated program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from millstream.analysis.udas.aggregate_versions import bodies_of
from millstream.analysis.udas.body_statements import BodyStatements
from millstream.cli.check_command import check_script, explain_script
from millstream.codegen.udas import program_emitter, uda_compiler
from millstream.codegen.udas.body_facts import unsupported
from millstream.ir.typed_nodes import Body
from millstream.types import DOUBLE, INT, STRING, Type, decimal
from tests.analysis.defining import a_catalog, define

MYAVG = """
CREATE AGGREGATE myavg(x DOUBLE) : DOUBLE {
    TABLE state(total DOUBLE, n INT);
    INITIALIZE : { INSERT INTO state VALUES (x, 1); }
    ITERATE    : { UPDATE state SET total = total + x, n = n + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT total / n FROM state; } };
"""
QUERY = """
CREATE STREAM s (t TIMESTAMP, k INT, v DOUBLE) ORDER BY t SOURCE 'port4445';
SELECT myavg(v) OVER (PARTITION BY k ROWS 9 PRECEDING) AS a,
       myavg(v) OVER (PARTITION BY k ROWS 9 PRECEDING) AS b FROM s;
"""
UNTYPED = MYAVG.replace("x DOUBLE", "x").replace("total DOUBLE", "total")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts analysed statements and generated programs."""
    counts: Counter[str] = Counter()

    def count(owner: type, name: str, what: str) -> None:
        plain = getattr(owner, name)

        def counting(*arguments: Any) -> Any:
            counts[what] += 1
            return plain(*arguments)

        monkeypatch.setattr(owner, name, counting)

    count(BodyStatements, "analyse", "statements")
    count(program_emitter.ProgramEmitter, "program", "programs")
    return counts


@pytest.mark.parametrize("command", [check_script, explain_script])
def test_two_equal_calls_cost_nothing_beyond_create(
    command: Callable[[str, str], None], counted: Counter[str]
) -> None:
    command(MYAVG + QUERY, "script")
    assert counted == {"statements": 3}


def test_a_body_without_types_is_specialised_once_for_equal_calls(counted: Counter[str]) -> None:
    define(UNTYPED)
    at_create = counted["statements"]
    counted.clear()
    check_script(UNTYPED + QUERY, "script")
    # The first pass learns the types, the second is the first with all of them.
    assert counted == {"statements": at_create + 6}


def test_other_types_are_specialised_for_themselves(counted: Counter[str]) -> None:
    catalog = a_catalog()
    define(UNTYPED, catalog)
    versions = [bodies_of("myavg", [type_], catalog).base for type_ in (INT, DOUBLE, INT)]
    assert versions[0] is versions[2]
    assert [version.parameters[0].type for version in versions if version] == [INT, DOUBLE, INT]


def test_an_aggregate_is_analysed_again_when_one_that_it_calls_is_replaced() -> None:
    inner = """AGGREGATE inner_one(x INT) : INT {
        INITIALIZE : { INSERT INTO RETURN VALUES (x); } ITERATE : { INSERT INTO RETURN VALUES (x + 1); } };"""
    outer = """AGGREGATE outer_one(x INT) : INT { TABLE t(a INT);
        INITIALIZE : { INSERT INTO t VALUES (x); }
        ITERATE : { INSERT INTO t VALUES (x); INSERT INTO RETURN SELECT inner_one(a) FROM t; } };"""
    catalog = a_catalog()
    define(inner + outer, catalog)
    before = bodies_of("outer_one", [INT], catalog).base
    assert bodies_of("outer_one", [INT], catalog).base is before
    define(inner.replace("x + 1", "x + 2"), catalog)
    after = bodies_of("outer_one", [INT], catalog).base
    assert after != before
    assert bodies_of("outer_one", [INT], catalog).base is after


LONG, SHORT = decimal(30, 2), decimal(10, 2)


@pytest.mark.parametrize(
    ("expression", "type_", "refused"),
    [
        ("abs(x)", LONG, True),
        ("abs(x)", SHORT, False),
        ("-x", LONG, True),
        ("-x", SHORT, False),
        ("pmod(x, x)", SHORT, True),
        ("pmod(x, x)", INT, False),
        ("x % x", LONG, False),
        ("x + x", LONG, False),
        ("greatest(x, x)", LONG, False),
        ("coalesce(x, x)", STRING, False),
        ("hash(x)", STRING, False),
        ("hash(x)", LONG, True),
        ("upper(x)", STRING, False),
        ("floor(x)", LONG, False),
        ("round(x, 1)", DOUBLE, False),
        ("x = x", LONG, False),
    ],
)
def test_functions_without_code_are_refused_by_the_form_as_by_the_generator(
    expression: str, type_: Type, refused: bool
) -> None:
    catalog = a_catalog()
    entry = define(
        f"""AGGREGATE f(x {type_}) : (r) {{ TABLE t(a {type_});
            INITIALIZE : {{ INSERT INTO t VALUES (x); }}
            ITERATE : {{ INSERT INTO RETURN VALUES ({expression}); }} }}""",
        catalog,
    )
    bodies = bodies_of("f", [type_], catalog)
    assert (bodies.unfit is not None) == refused
    (_, form), *_ = entry.definition.forms.values()  # type: ignore[attr-defined]
    assert (form.refusal is not None) == refused
    if refused:
        assert str(bodies.unfit).startswith("in aggregate 'f', the function '")
        assert str(type_) in str(bodies.unfit)
    else:
        assert isinstance(bodies.base, Body)
        assert unsupported(bodies.base) is None
        uda_compiler.compile_uda(bodies.base, uda_compiler.CONTENT)


def test_an_aggregate_of_the_users_is_refused_with_group_by(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = a_catalog()
    text = """AGGREGATE f(x INT) : DOUBLE { TABLE t(a INT, v DOUBLE);
        INITIALIZE : { INSERT INTO t VALUES (x, 0.5); }
        ITERATE : { INSERT INTO RETURN SELECT myavg(v) FROM t GROUP BY a; } };"""
    define(MYAVG + text, catalog)
    assert bodies_of("f", [INT], catalog).unfit == "in aggregate 'f', 'myavg' with GROUP BY or DISTINCT"
    monkeypatch.setattr("millstream.analysis.udas.body_analyzer.unsupported", lambda body: None)
    define(MYAVG + text, catalog)
    body = bodies_of("f", [INT], catalog).base
    assert isinstance(body, Body)
    with pytest.raises(AssertionError, match="'myavg' with GROUP BY or DISTINCT"):
        uda_compiler.compile_uda(body, uda_compiler.CONTENT)
