"""Random windows over a stream."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from tests.oracle.shapes import Amounts, Draw, Source, condition


@dataclass(frozen=True)
class Bracket:
    """The text of a window without PATTR, and the types of its columns and of its results' timestamp."""

    text: str
    edge_type: str
    time_type: str
    wid_type: str = "BIGINT"
    emits: bool = False


@st.composite
def brackets(draw: Draw, source: Source, everything: bool) -> Bracket:
    """A window; sliding windows on the timestamp only, unless everything is wanted."""
    if not everything:
        return draw(_sliding(source, False))
    by_tuple = [_tuple_slide] if source.attributes else []
    kinds = (_sliding, _rows, _landmark, _session, *by_tuple)
    plain = st.sampled_from(kinds).flatmap(lambda kind: kind(source, True))
    now = st.just(Bracket("NOW", source.time_type, source.time_type, source.time_type))
    return draw(st.one_of(plain, plain, plain, _predicate(source), now))


@st.composite
def _line(draw: Draw, source: Source, everything: bool) -> tuple[str, str]:
    """WATTR or nothing, and the type of the attribute."""
    attribute = draw(st.sampled_from(["", *sorted(source.attributes)])) if everything else ""
    return (f" WATTR {attribute}", source.columns[attribute]) if attribute else ("", source.time_type)


@st.composite
def _emit(draw: Draw, type_: str) -> str:
    every = draw(st.integers(1, 8))
    return draw(st.sampled_from(["", f" EMIT EVERY {Amounts(type_).length(every)}"]))


@st.composite
def _sliding(draw: Draw, source: Source, everything: bool) -> Bracket:
    wattr, type_ = draw(_line(source, everything))
    amounts = Amounts(type_)
    size, step = draw(st.integers(1, 20)), draw(st.integers(1, 10))
    sliding = f"RANGE {amounts.length(size)} SLIDE {amounts.length(step)}"
    window = draw(st.sampled_from([sliding, f"TUMBLE {amounts.length(size)}"])) + wattr
    if draw(st.booleans()):
        window += f" ORIGIN {amounts.origin(draw(st.integers(0, 9)))}"
    emit = draw(_emit(type_)) if everything else ""
    return Bracket(window + emit, type_, type_, emits=bool(emit))


@st.composite
def _rows(draw: Draw, source: Source, everything: bool) -> Bracket:
    size, step, every = (draw(st.integers(1, most)) for most in (8, 5, 4))
    texts = [f"ROWS {size}", f"ROWS {size} SLIDE {step}", f"TUMBLE {size} ROWS"]
    if source.arrives:
        texts.append(f"RANGE {size} ROWS SLIDE {step} ROWS WATTR row_num")
    emit = draw(st.sampled_from(["", f" EMIT EVERY {every} ROWS"]))
    return Bracket(draw(st.sampled_from(texts)) + emit, "BIGINT", source.time_type, emits=bool(emit))


@st.composite
def _tuple_slide(draw: Draw, source: Source, everything: bool) -> Bracket:
    attribute = draw(st.sampled_from(sorted(source.attributes)))
    type_ = source.columns[attribute]
    size, every = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    texts = ["SLIDE 1 ROW SATTR row_num", f"SLIDE {every} ROWS SATTR rank({attribute})"]
    if source.arrives:
        texts.append(f"SLIDE {every} ROWS SATTR row_num")
    text = f"RANGE {Amounts(type_).length(size)} RATTR {attribute} {draw(st.sampled_from(texts))}"
    return Bracket(text, type_, type_, type_)


@st.composite
def _landmark(draw: Draw, source: Source, everything: bool) -> Bracket:
    wattr, type_ = draw(_line(source, everything))
    amounts = Amounts(type_)
    start, end, step = (draw(st.integers(least, most)) for least, most in ((0, 20), (5, 27), (1, 10)))
    at = amounts.origin(start)
    if type_ == "TIMESTAMP":
        at = draw(st.sampled_from([at, f"'12:00:{start:02}'"]))
    bounds = [f"LANDMARK START AT {at}", f"LANDMARK END AT {amounts.origin(end)}"]
    both = f"{bounds[0]} END AT {amounts.origin(max(start + 1, end))}"
    bounds += [both, "UNBOUNDED", f"UNBOUNDED START AT {at}"]
    slide = draw(st.sampled_from(["", f" SLIDE {amounts.length(step)}"]))
    emit = draw(_emit(type_))
    return Bracket(draw(st.sampled_from(bounds)) + wattr + slide + emit, type_, type_, emits=bool(emit))


@st.composite
def _session(draw: Draw, source: Source, everything: bool) -> Bracket:
    wattr, type_ = draw(_line(source, everything))
    emit = draw(_emit(type_))
    text = f"SESSION GAP {Amounts(type_).length(draw(st.integers(1, 6)))}{wattr}{emit}"
    return Bracket(text, type_, type_, emits=bool(emit))


@st.composite
def _predicate(draw: Draw, source: Source) -> Bracket:
    starts, ends = draw(condition(source)), draw(condition(source))
    emit = draw(_emit(source.time_type))
    text = f"START WHEN {starts} END WHEN {ends}{emit}"
    return Bracket(text, source.time_type, source.time_type, emits=bool(emit))
