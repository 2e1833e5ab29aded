"""The checked form of patterns: which tuple a column is of, what is measured, what is computed before."""

from __future__ import annotations

import pytest

from millstream.analysis.queries.resolved_query import PatternClause
from millstream.ir.pattern import End, Measure, Pattern
from millstream.ir.typed_nodes import Aggregation, Call, Cast, Column, Constant, Expr, GroupColumn
from tests.analysis.test_patterns import (
    ACCIDENTS,
    DOUBLE_BOTTOM,
    ERUPTIONS,
    JAMS,
    PURCHASE,
    VISITED,
    pattern_of,
)


def form_of(clause: PatternClause) -> Pattern:
    assert clause.unfit is None
    assert clause.form is not None
    return clause.form


def shown(expr: Expr, form: Pattern) -> str:
    """An expression as a text: ``Y@now-1.speed`` is of the tuple before the one that Y is to take."""
    match expr:
        case Column(scan, index, _):
            place = form.places[scan]
            back = f"-{place.back}" if place.back else ""
            return f"{form.elements[place.element].name}@{place.end.value}{back}.{form.fields[index].name}"
        case GroupColumn(index, _):
            return measured(form.measures[index], form)
        case Constant(value, type_):
            return f"{value!r}:{type_}"
        case Cast(argument, type_):
            return f"({shown(argument, form)} AS {type_})"
        case Call(name, arguments, _):
            return f"{name}({', '.join(shown(argument, form) for argument in arguments)})"
    raise AssertionError(expr)


def measured(measure: Measure, form: Pattern) -> str:
    made = measure.aggregation
    when = "final" if measure.final else "running" if measure.rows is None else f"last {measure.rows}"
    given = ", ".join(shown(argument, form) for argument in made.arguments)
    return f"{when} {made.name}({given}) of {form.elements[measure.element].name}"


def conditions(form: Pattern) -> dict[str, list[str]]:
    """Return the conditions of each element; a final condition has a ! before it."""
    return {
        ("*" if element.star else "") + element.name: [
            *(shown(condition, form) for condition in element.per_tuple),
            *(f"! {shown(condition, form)}" for condition in element.final),
        ]
        for element in form.elements
    }


def test_plain_elements_ask_for_their_own_tuple() -> None:
    form = form_of(pattern_of(PURCHASE))
    assert conditions(form) == {
        "X": ["=(X@now.PageType, 'a':string)"],
        "Y": ["=(Y@now.PageType, 'd':string)"],
        "Z": ["=(Z@now.PageType, 'p':string)"],
    }
    assert [shown(output, form) for output in form.outputs] == ["Y@now.PageNo", "Z@now.ClickTime"]
    assert [str(field) for field in form.returns] == ["Y.PageNo int", "Z.ClickTime timestamp"]


def test_a_count_of_tuples_has_no_arguments() -> None:
    form = form_of(pattern_of(VISITED))
    assert conditions(form)["*A"] == [
        "<>(A@now.PageType, 'd':string)",
        "! <(final count() of A, 20:bigint)",
    ]
    # A column of the partition is that of the last tuple, and a measure that is known is not made again.
    assert [shown(output, form) for output in form.outputs] == ["B@now.SessNo", "final count() of A"]
    assert len(form.measures) == 1


def test_jams() -> None:
    clause = pattern_of(JAMS)
    form = form_of(clause)
    assert conditions(form) == {
        "X": [">(X@now.speed, 50.0:double)"],
        "*Y": [
            "<(Y@now.speed, Y@now-1.speed)",
            "<=(running count() of Y, 6:bigint)",
            "! <(Y@last.speed, *(0.3:double, X@now.speed))",
        ],
    }
    # The table's column is not the pattern's; what joins with the table is.
    assert [shown(output, form) for output in form.outputs] == ["X@now.stationId", "Y@last.speedTime"]
    assert [str(ref) for ref in clause.returned] == ["X.stationId", "LAST(Y).speedTime"]


def test_accidents() -> None:
    assert conditions(form_of(pattern_of(ACCIDENTS)))["*Z"] == [
        ">(Z@now.speed_diff, *(1.1:double, X@now.speed_diff))",
        "<=(running count() of Z, 60:bigint)",
    ]


def test_eruptions() -> None:
    form = form_of(pattern_of(ERUPTIONS))
    assert conditions(form)["*E"][1] == "! >=(E@last.magnitude, 7.0:double)"
    assert [shown(output, form) for output in form.outputs] == ["V@now.name", "E@last.name"]


def test_double_bottom() -> None:
    form = form_of(pattern_of(DOUBLE_BOTTOM))
    assert conditions(form)["*X"] == [
        ">=(X@now.price, X@now-1.price)",
        "! >=(final count() of X, 5:bigint)",
    ]
    assert [measure.element for measure in form.measures] == [0, 1, 2, 3]
    assert [shown(output, form) for output in form.outputs] == [
        "W@now.name",
        "W@first.time",
        "W@first.price",
        "Z@last.time",
        "Z@last.price",
    ]


def star(condition: str) -> list[str]:
    where = f"SELECT X.speed FROM speed PARTITION BY stationId AS (X, *Y, Z) WHERE {condition}"
    return conditions(form_of(pattern_of(where)))["*Y"]


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("csum(Y.speed) < 9", "<(running sum(Y@now.speed) of Y, 9.0:double)"),
        ("cavg(Y.stationId) < 9", "<(running avg(Y@now.stationId) of Y, 9.0:double)"),
        (
            "csum(Y.stationId) < 9",
            "<(running sum((Y@now.stationId AS bigint)) of Y, 9:bigint)",
        ),
        (
            "cmax(Y.speed - Y.previous.speed) < 9",
            "<(running max(-(Y@now.speed, Y@now-1.speed)) of Y, 9.0:double)",
        ),
        ("ccount(Y.speed) < 9", "<(running count(Y@now.speed) of Y, 9:bigint)"),
        ("ccount(*Y) < 9", "! <(final count() of Y, 9:bigint)"),
        ("avg(Y.speed) OVER (ROWS 4 PRECEDING) < 9", "<(last 5 avg(Y@now.speed) of Y, 9.0:double)"),
        ("drift(Y.speed) < 9", "<(running drift(Y@now.speed) of Y, 9.0:double)"),
        ("spread(*Y.speed) < 9", "! <(final spread(Y@now.speed) of Y, 9.0:double)"),
        ("spread(Y.speed) OVER (ROWS 4 PRECEDING) < 9", "<(last 5 spread(Y@now.speed) of Y, 9.0:double)"),
        ("first(*Y.speed) < 9", "! <(final first(Y@now.speed) of Y, 9.0:double)"),
        ("stddev(*Y.speed) < 9", "! <(final stddev_samp(Y@now.speed) of Y, 9.0:double)"),
        ("Y.speed > FIRST(Y).speed", ">(Y@now.speed, Y@first.speed)"),
        # Tested with every tuple, as it names one: so far that is the last of the star, and these its tuples.
        ("Y.speed > LAST(Y).speed", ">(Y@now.speed, Y@now.speed)"),
        ("Y.speed > avg(*Y.speed)", ">(Y@now.speed, running avg(Y@now.speed) of Y)"),
        ("Y.previous.previous.previous.previous.speed = 0", "=(Y@now-4.speed, 0.0:double)"),
        ("Y.speed > stationId", ">(Y@now.speed, (Y@now.stationId AS double))"),
    ],
)
def test_what_a_star_is_asked(condition: str, expected: str) -> None:
    assert star(condition) == [expected]


def test_the_same_aggregate_is_measured_once_for_each_star() -> None:
    form = form_of(
        pattern_of(
            "SELECT count(*Y) + 1 FROM speed AS (*X, *Y) WHERE count(*X) > 1 AND count(*Y) > count(*X)"
        )
    )
    assert [measure.element for measure in form.measures] == [0, 1]


def test_an_aggregate_of_the_users_has_its_body() -> None:
    form = form_of(pattern_of("SELECT X.speed FROM speed AS (X, *Y) WHERE drift(Y.stationId) < 9"))
    made = form.measures[0].aggregation
    assert isinstance(made, Aggregation)
    assert made.user is not None
    assert made.user.name == "drift"
    assert shown(made.arguments[0], form) == "(Y@now.stationId AS double)"


def test_what_cannot_be_compiled_is_computed_before_the_search() -> None:
    clause = pattern_of(
        "SELECT X.t FROM nested AS (X, *Y) WHERE X.pos.x > 1 AND array_contains(Y.previous.tags, 'a') "
        "AND Y.pos.x > X.pos.x AND size(LAST(Y).tags) > 1"
    )
    form = form_of(clause)
    assert [f"{output.name}: {output.expr}" for output in clause.computed] == [
        "__computed0: nested.pos.x",
        "__computed1: array_contains(nested.tags, 'a')",
        "__computed2: size(nested.tags)",
    ]
    assert [field.name for field in form.fields] == ["t", "pos", "tags", *(o.name for o in clause.computed)]
    assert conditions(form) == {
        "X": [">(X@now.__computed0, 1.0:double)"],
        "*Y": [
            "Y@now-1.__computed1",
            ">(Y@now.__computed0, X@now.__computed0)",
            "! >(Y@last.__computed2, 1:int)",
        ],
    }


def test_results_may_be_anything_that_spark_can_compute_of_a_match() -> None:
    clause = pattern_of(
        "SELECT X.pos.x, concat_ws(',', X.tags), sha1(CAST(count(*Y) AS STRING)), FIRST(Y).pos.x AS f "
        "FROM nested AS (X, *Y)"
    )
    form = form_of(clause)
    assert [str(ref) for ref in clause.returned] == ["X.pos", "X.tags", "count(*Y)", "FIRST(Y).pos"]
    assert [shown(output, form) for output in form.outputs] == [
        "X@now.pos",
        "X@now.tags",
        "final count() of Y",
        "Y@first.pos",
    ]


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("X.speed IN (SELECT stationId FROM stations)", "IN with a query cannot be used in a pattern yet"),
        ("Y.speed > rand()", "the function 'rand' cannot be used in a pattern yet"),
        ("map(X.speed, Y.speed)[X.speed] > 1", "cannot be used in a pattern yet"),
        ("collect_list(*Y) IS NOT NULL", "the whole tuple 'Y' cannot be used in a pattern yet"),
        ("percentile(*Y.speed, rand()) > 1", "'RAND()' in 'percentile' is no constant"),
    ],
)
def test_what_cannot_be_run_yet_has_a_reason(condition: str, reason: str) -> None:
    clause = pattern_of(f"SELECT X.speed FROM speed AS (X, *Y) WHERE {condition}")
    assert clause.form is None
    assert clause.unfit is not None
    assert clause.unfit.startswith("in '")
    assert reason in clause.unfit


def test_a_function_without_code_is_computed_before_or_refused() -> None:
    long = "CAST(Y.speed AS DECIMAL(30, 2))"
    alone = pattern_of(f"SELECT X.speed FROM speed AS (X, *Y) WHERE abs({long}) > 5")
    assert [output.expr.sql.lower() for output in alone.computed] == [
        "abs(cast(`speed`.`speed` as decimal(30, 2)))"
    ]
    both = pattern_of(f"SELECT X.speed FROM speed AS (X, *Y) WHERE abs({long} - X.stationId) > 5")
    assert both.unfit is not None
    assert "the function 'abs' of decimal(31,2) cannot be used in a pattern yet" in both.unfit


def test_a_place_is_one_tuple_and_no_more_places_are_there_than_are_named() -> None:
    form = form_of(pattern_of("SELECT X.speed FROM speed AS (X, *Y) WHERE Y.speed > X.speed AND Y.speed < 9"))
    assert [(place.element, place.end, place.back) for place in form.places] == [
        (1, End.NOW, 0),
        (0, End.NOW, 0),
    ]


def test_an_aggregate_that_declares_no_type_has_that_of_its_body() -> None:
    """Old listings leave types out, and the arguments of the call have their say."""
    clause = pattern_of("SELECT X.speed FROM speed AS (X, *Y) WHERE latest(*Y.speed) / 2 > 9")
    form = form_of(clause)
    assert conditions(form)["*Y"] == ["! >(/(final latest(Y@now.speed) of Y, 2.0:double), 9.0:double)"]
