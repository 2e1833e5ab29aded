"""Masking of secrets in text shown to people: messages, source lines, plans, lists and logs.

A secret is the user information of an address, or the value of a name that contains a word for passwords,
tokens, secrets or keys. The mask has the length of the secret, so marks under a source line stay aligned.
"""

from __future__ import annotations

import re

_NAMES = (
    r"[\w.-]*(?:password|passwd|pwd|secret|token|credential|(?:access|account|api|private)[._-]?key)[\w.-]*"
)
_USER = r"(?<=://)[^\s/@'\"]+(?=@)"
_QUOTED = (
    rf"(?<![\w.'\"]){_NAMES}[`'\"]?\s*(?:=\s*|\s)(?P<quote>['\"])(?P<quoted>(?:(?!(?P=quote)).)+)(?P=quote)"
)
_PLAIN = rf"(?<![\w.]){_NAMES}=(?P<plain>[^\s;&,'\"()=][^\s;&,'\"()]*)"
_SECRET = re.compile(rf"{_QUOTED}|{_PLAIN}|{_USER}", re.IGNORECASE)


def masked(text: str) -> str:
    """Return a text with its secrets masked.

    >>> masked("csv 's3a://KEY:abc@bucket/x'")
    "csv 's3a://*******@bucket/x'"
    >>> masked("OPTIONS (user 'me', password 'pass', url 'jdbc:h2:x;password=abc')")
    "OPTIONS (user 'me', password '****', url 'jdbc:h2:x;password=***')"
    """
    return _SECRET.sub(_mask, text)


def _mask(match: re.Match[str]) -> str:
    group = next((name for name in ("quoted", "plain") if match[name] is not None), 0)
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return f"{match[0][:start]}{'*' * (end - start)}{match[0][end:]}"
