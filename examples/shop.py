"""The Python functions of examples/shop.esl and of the documents."""

from collections.abc import Iterator


def luhn(number: str) -> bool:
    """Whether the last digit of a card number agrees with the others."""
    digits = [int(c) for c in number if c.isdigit()]
    doubled = [sum(divmod(2 * d, 10)) for d in digits[-2::-2]]
    return len(digits) > 11 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def masked(number: str) -> str:
    """A card number that may be shown: the last four digits."""
    digits = "".join(c for c in number if c.isdigit())
    return "*" * (len(digits) - 4) + digits[-4:]


def grams(text: str) -> Iterator[str]:
    """All pairs of letters that stand side by side."""
    yield from (text[i : i + 2] for i in range(len(text) - 1))
