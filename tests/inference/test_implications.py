"""Implications of conditions: claims hold for all tuples, and obvious ones are made."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.analysis.queries.query_analyzer import analyse_query
from millstream.analysis.queries.resolved_query import Select
from millstream.catalog import Catalog
from millstream.catalog.entries import Registered, Stream, Timestamp, TimestampKind
from millstream.inference.implications import (
    Known,
    conditions_of,
    excluded,
    implications,
    implied,
    impossible,
)
from millstream.ir.pattern import Pattern
from millstream.ir.typed_nodes import Call, Column, Constant, Expr
from millstream.syntax import parse_script
from millstream.types import BOOLEAN, DOUBLE, INT, STRING, TIMESTAMP, Field, decimal
from tests.codegen.patterns.evaluating import holds

FIELDS = (
    Field("t", TIMESTAMP),
    Field("n", INT),
    Field("m", INT),
    Field("price", DOUBLE),
    Field("high", DOUBLE),
    Field("name", STRING),
    Field("cost", decimal(10, 2)),
    Field("sold", BOOLEAN),
)


def searched(pattern: str, where: str) -> Pattern:
    catalog = Catalog()
    catalog.add(Stream("quote", FIELDS, Registered(), Timestamp(TimestampKind.EXTERNAL, "t", TIMESTAMP)))
    text = f"SELECT A.n FROM quote AS ({pattern}) WHERE {where}"
    (statement,) = parse_script(text)
    query = analyse_query(statement.tree, catalog, statement.source)
    assert isinstance(query, Select)
    assert query.pattern is not None
    assert query.pattern.unfit is None
    assert query.pattern.form is not None
    return query.pattern.form


def followed(first: str, second: str) -> tuple[Known, Known]:
    """Return the second condition where the first holds, and where it does not. The tuple is called q."""
    form = searched("A, B", f"{first.replace('q.', 'A.')} AND {second.replace('q.', 'B.')}")
    known = implications(form)
    return known.theta[0][1], known.phi[0][1]


# ---------------------------------------------------------------- what is found


@pytest.mark.parametrize(
    ("first", "second", "where_it_holds", "where_it_fails"),
    [
        # Equalities.
        ("q.name = 'a'", "q.name = 'a'", True, False),
        ("q.name = 'a'", "q.name = 'd'", False, None),
        ("q.name = 'a'", "q.name <> 'd'", True, None),
        ("q.name <> 'd'", "q.name = 'd'", False, None),
        ("q.name = 'a'", "q.name IN ('a', 'b')", True, None),
        ("q.name IN ('a', 'b')", "q.name = 'a'", None, False),
        ("q.name IN ('a', 'b')", "q.name IN ('c', 'd')", False, None),
        ("q.name NOT IN ('a', 'b')", "q.name = 'b'", False, None),
        ("q.name = 'b'", "q.name BETWEEN 'a' AND 'c'", True, None),
        # Inequalities and ranges.
        ("q.n > 5", "q.n > 3", True, None),
        ("q.n > 3", "q.n > 5", None, False),
        ("q.n > 5", "q.n < 5", False, None),
        ("q.n > 5", "q.n >= 6", True, False),
        ("q.n > 5 ", "q.n < 7", None, None),
        ("q.price > 5", "q.price >= 5", True, None),
        ("q.price > 5", "q.price >= 6", None, False),
        ("q.price BETWEEN 1 AND 2", "q.price BETWEEN 0 AND 3", True, None),
        ("q.price BETWEEN 1 AND 2", "q.price NOT BETWEEN 1.5 AND 1.7", None, None),
        ("q.price BETWEEN 1 AND 2", "q.price > 2", False, None),
        ("q.cost > 1.04", "q.cost >= 1.05", True, False),
        ("q.n > 1.5", "q.n >= 2", True, False),
        # With the tuple before.
        ("q.price > q.previous.price", "q.price > q.previous.price", True, False),
        ("q.price > q.previous.price", "q.price >= q.previous.price", True, None),
        ("q.price > q.previous.price", "q.price <= q.previous.price", False, None),
        ("q.price >= q.previous.price", "q.price <= q.previous.price", None, None),
        ("q.price > q.previous.price", "q.previous.price < q.price", True, False),
        ("q.n > q.previous.n + 5", "q.n > q.previous.n", True, None),
        ("q.n - q.previous.n > 5", "q.n > q.previous.n + 3", True, None),
        ("q.n - q.previous.n > 5", "q.previous.n >= q.n", False, None),
        ("2 * q.n > 2 * q.previous.n + 1", "q.n > q.previous.n", True, False),
        ("3 * q.n > 2 * q.m", "6 * q.n - 4 * q.m < 0", False, None),
        ("3 * q.n <= 2 * q.m AND 3 * q.m <= 4 * q.n", "q.n <= 0", True, None),
        ("q.price > q.previous.price + 5", "q.price > q.previous.price", True, None),
        ("q.price + 1 > q.previous.price + 1", "q.price > q.previous.price", True, None),
        ("q.price > q.previous.price", "q.price + 1 > q.previous.price + 1", None, False),
        ("q.price > q.previous.price", "q.price + 1 >= q.previous.price + 1", True, None),
        ("q.price < 0.98 * q.previous.price", "q.price > 1.02 * q.previous.price", None, None),
        (
            "q.price < 0.98 * q.previous.price AND q.previous.price > 0",
            "q.price > 1.02 * q.previous.price",
            False,
            None,
        ),
        (
            "q.price > 1.02 * q.previous.price AND q.previous.price > 100",
            "q.price > 100",
            True,
            None,
        ),
        ("q.price * 2 > 10", "q.price > 5", True, None),
        ("q.price > 5", "q.price * 2 > 9", True, None),
        ("q.t > q.previous.t + INTERVAL 5 SECONDS", "q.t > q.previous.t + INTERVAL 3 SECONDS", True, None),
        ("q.t - q.previous.t > INTERVAL 5 SECONDS", "q.t > q.previous.t", True, None),
        # Two columns, both kinds of numbers.
        ("q.price < q.high", "q.price >= q.high", False, None),
        ("q.n = 3", "q.m < 5", None, None),
        ("q.price > q.previous.price", "q.price > q.previous.previous.price", None, None),
        # Conjunctions and disjunctions.
        ("(q.n > 1 OR q.n < -1)", "q.n <> 0", True, None),
        ("(q.n > 1 OR q.n < -1)", "q.n = 0", False, None),
        ("q.n = 0", "(q.n > 1 OR q.m > 1)", None, None),
        # NULL is neither: what is not true need not be false.
        ("q.n > 5", "q.n <= 5", False, None),
        ("q.n IS NULL", "q.n IS NOT NULL", False, True),
        ("q.n IS NULL", "q.n > q.m", False, None),
        ("q.n > q.m", "q.n IS NOT NULL", True, None),
        ("q.n + q.m > 1", "q.m IS NULL", False, None),
        ("q.name <=> 'd'", "NOT (q.name <=> 'd')", False, True),
        ("q.name <=> NULL", "q.name IS NULL", True, False),
        ("(q.n > 5) IS NOT TRUE", "q.n > 5", False, True),
        # What is not understood is at least the same as itself.
        ("q.name LIKE 'a%'", "q.name LIKE 'a%'", True, False),
        ("q.name LIKE 'a%'", "q.name NOT LIKE 'a%'", False, None),
        ("q.name LIKE 'a%'", "q.name LIKE 'b%'", None, None),
        ("q.sold", "q.sold", True, False),
        ("q.sold", "NOT q.sold", False, None),
        ("upper(q.name) = 'A'", "upper(q.name) = 'B'", False, None),
        ("q.price / 2 > 1", "q.price / 2 > 0.5", True, None),
    ],
)
def test_what_follows(first: str, second: str, where_it_holds: Known, where_it_fails: Known) -> None:
    found = followed(first, second)
    assert found == (where_it_holds, where_it_fails)


def test_an_element_without_conditions_takes_everything() -> None:
    known = implications(searched("A, B", "A.n > 1"))
    assert known.theta[0][1] is True
    assert known.phi[0][1] is True
    assert known.phi[1][0] is False


def test_a_condition_about_another_element_is_never_known_to_hold_but_may_be_known_to_fail() -> None:
    known = implications(searched("A, B, C", "B.n > A.n AND C.n > A.n AND B.m > 1 AND C.m < 1"))
    assert known.theta[1][1] is None
    assert known.theta[1][2] is False
    assert known.theta[1][0] is True
    assert known.phi[1][2] is None


def test_aggregates_are_unknown_but_do_not_keep_an_attempt_from_starting() -> None:
    known = implications(searched("*A, B", "A.n > 1 AND ccount(A) < 5 AND B.n > 2"))
    assert known.theta[1][:2] == (None, True)
    assert known.theta[1][2] is True
    assert known.phi[0] == (None, None, None)


# ---------------------------------------------------------------- what is claimed

INTS = [None, *range(-3, 4)]
ODD = [float("nan"), float("inf"), -float("inf"), -0.0]
DOUBLES = [None, *ODD, 0.0, 0.1, 0.3, 1.0, 1.1, -1.0, 3.5, 1e16, 1e308]
NAMES = [None, "a", "b", "ab", ""]

numbers = st.sampled_from([1, 2]).flatmap(
    lambda i: st.builds(Column, st.integers(0, 1), st.just(i), st.just(INT))
)
prices = st.sampled_from([3, 4]).flatmap(
    lambda i: st.builds(Column, st.integers(0, 1), st.just(i), st.just(DOUBLE))
)
names = st.builds(Column, st.integers(0, 1), st.just(5), st.just(STRING))
some_int = st.builds(Constant, st.integers(-3, 3), st.just(INT))
some_double = st.builds(Constant, st.sampled_from([*ODD[1:], *DOUBLES[5:]]), st.just(DOUBLE))
factor = st.builds(Constant, st.sampled_from([0.1, 0.5, 1.0, 1.1, 2.0, -1.0, 0.0]), st.just(DOUBLE))
some_name = st.builds(Constant, st.sampled_from(["a", "b", "ab", None]), st.just(STRING))


def call(names: list[str], *arguments: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    return st.builds(
        lambda name, given: Call(name, given, given[0].type), st.sampled_from(names), st.tuples(*arguments)
    )


ints = st.one_of(
    numbers,
    some_int,
    call(["+", "-"], numbers, numbers),
    call(["+", "-", "*"], numbers, some_int),
    call(["*"], some_int, numbers),
    call(["negative"], numbers),
)
doubles = st.one_of(
    prices,
    some_double,
    call(["+", "-"], prices, some_double),
    call(["*"], factor, prices),
    call(["+"], call(["*"], prices, factor), some_double),
    call(["-"], prices, prices),
)
texts = st.one_of(names, some_name)


def compared(values: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    operator = st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>"])
    one = st.builds(lambda name, a, b: Call(name, (a, b), BOOLEAN), operator, values, values)
    several = st.builds(lambda a, rest: Call("in", (a, *rest), BOOLEAN), values, st.lists(values, max_size=2))
    return st.one_of(one, one, several, st.builds(lambda a: Call("isnull", (a,), BOOLEAN), values))


conditions = st.recursive(
    st.one_of(compared(ints), compared(doubles), compared(texts)),
    lambda inner: st.one_of(
        st.builds(lambda a: Call("not", (a,), BOOLEAN), inner),
        st.builds(
            lambda name, a, b: Call(name, (a, b), BOOLEAN), st.sampled_from(["and", "or"]), inner, inner
        ),
    ),
    max_leaves=4,
)


def some_tuples(seed: int, count: int) -> list[list[list[object]]]:
    pick = random.Random(seed)
    pools = [[0], INTS, INTS, DOUBLES, DOUBLES, NAMES, [0], [True, False, None]]
    return [[[pick.choice(pool) for pool in pools] for _ in range(2)] for _ in range(count)]


@settings(max_examples=150, deadline=None)
@given(
    first=st.lists(conditions, min_size=1, max_size=3),
    second=st.lists(conditions, min_size=1, max_size=2),
    seed=st.integers(0, 2**32),
)
def test_whatever_is_claimed_is_true(first: list[Expr], second: list[Expr], seed: int) -> None:
    claims = {
        "implied": implied(first, second),
        "excluded": excluded(first, second),
        "implied by the opposite": impossible((), [first, second]),
        "excluded by the opposite": implied(second, first),
    }
    if not any(claims.values()):
        return
    for tuples in some_tuples(seed, 150):
        one, other = holds(first, tuples), holds(second, tuples)
        assert not (claims["implied"] and one) or other
        assert not (claims["excluded"] and one) or not other
        assert not (claims["implied by the opposite"] and not one) or other
        assert not (claims["excluded by the opposite"] and not one) or not other


def test_conditions_of_an_element_are_about_the_tuple_and_those_before_it() -> None:
    found = conditions_of(1, searched("A, B", "B.n > B.previous.previous.n"))
    assert found.whole
    assert found.always == (Call(">", (Column(0, 1, INT), Column(2, 1, INT)), BOOLEAN),)
