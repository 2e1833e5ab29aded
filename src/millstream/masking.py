"""Masks secrets in text that people see: messages, source lines, plans, lists and logs.

A secret is the user information of an address, or the value of a name that speaks of a password, a token, a
secret or a key. The mask is as long as the secret: marks under a source line stay where they are.
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
    """A text without its secrets.

    >>> masked("csv 's3a://KEY:abc@bucket/x'")
    "csv 's3a://*******@bucket/x'"
    >>> masked("OPTIONS (user 'me', password 'pass', url 'jdbc:h2:x;password=abc')")
    "OPTIONS (user 'me', password '****', url 'jdbc:h2:x;password=***')"
    """
    return _SECRET.sub(_mask, text)


def _mask(found: re.Match[str]) -> str:
    group = next((name for name in ("quoted", "plain") if found[name] is not None), 0)
    start, end = found.start(group) - found.start(), found.end(group) - found.start()
    return f"{found[0][:start]}{'*' * (end - start)}{found[0][end:]}"
