"""Display of errors."""

from millstream.errors import EslSyntaxError, Source


def shown(text: str, start: int, end: int) -> list[str]:
    return str(EslSyntaxError("oh", span=(start, end)).locate(Source("a.esl", text))).splitlines()


def test_the_place_is_named_and_underlined() -> None:
    assert shown("SELECT a\n  FROM bids", 16, 19) == [
        "a.esl:2:8: oh",
        "  2 |   FROM bids",
        "    |        ^^^^",
    ]


def test_tabs_keep_the_marks_in_their_place() -> None:
    assert shown("SELECT\ta", 7, 7)[1:] == ["  1 | SELECT\ta", "    |       \t^"]


def test_of_several_lines_the_first_is_shown() -> None:
    assert shown("ab\ncd", 1, 4)[1:] == ["  1 | ab", "    |  ^"]


def test_of_a_very_long_line_a_part_is_shown() -> None:
    head, line, marks = shown("x" * 1_000_000 + "!" + "y" * 1_000_000, 1_000_000, 1_999_000)
    assert head == "a.esl:1:1000001: oh"
    assert len(line) < 200
    assert line[marks.index("^")] == "!"


def test_the_end_of_the_text_is_a_place() -> None:
    assert shown("SELECT", 6, 6) == ["a.esl:1:7: oh", "  1 | SELECT", "    |       ^"]
