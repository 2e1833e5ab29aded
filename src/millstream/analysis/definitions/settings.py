"""Settings of SET: our own with their values, and all of Spark's."""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import AnalysisError, did_you_mean

SETTINGS = {"millstream.on_error": ("stop", "bad"), "millstream.on_corrupt_file": ("fail", "skip")}
"""Our own settings and the values that they take."""


@dataclass(frozen=True)
class Setting:
    key: str
    value: str


def analyse_setting(key: str, value: str) -> Setting:
    """Return a setting of Spark's or of our own."""
    if key.lower().startswith("spark."):
        return Setting(key, value)
    allowed = SETTINGS.get(key.lower())
    if allowed is None:
        raise AnalysisError(
            f"unknown setting '{key}'",
            hint=did_you_mean(key, SETTINGS)
            or f"settings are {', '.join(SETTINGS)} and Spark's own, spark.*",
        )
    if value.lower() not in allowed:
        raise AnalysisError(
            f"'{value}' is no value of {key}", hint=f"it is one of {', '.join(repr(a) for a in allowed)}"
        )
    return Setting(key.lower(), value.lower())
