"""Messages and hints for the failures of Spark: a table, and rules for the rest."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyspark

from millstream.errors import MillstreamError, Span, did_you_mean
from millstream.kernels.core.kernel_errors import hint_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Explanation = tuple[str, str | None]
"""A message and a hint."""

LONGEST_TEXT = 300
"""Longer texts are data or a plan, and are cut."""

_LONGEST_TRACE = 4000
"""The user's own traceback is shown in full, unless it is longer."""

_SPARK = ".".join(pyspark.__version__.split(".")[:2])
_PACKAGES = {
    "kafka": f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}",
    "avro": f"org.apache.spark:spark-avro_2.13:{pyspark.__version__}",
    "delta": f"io.delta:delta-spark_2.13:<its version for Spark {_SPARK}>",
    "iceberg": f"org.apache.iceberg:iceberg-spark-runtime-{_SPARK}_2.13:<its version>",
    "hudi": f"org.apache.hudi:hudi-spark{_SPARK}-bundle_2.13:<its version>",
    "mongodb": "org.mongodb.spark:mongo-spark-connector_2.13:<its version>",
}
"""Formats that Spark can be extended with, and the Maven packages that provide them."""

_BUILT_IN = ("csv", "json", "parquet", "orc", "text", "xml", "rate", "socket", "jdbc", "console", "noop")


@dataclass(frozen=True)
class Failure:
    """The relevant parts of one exception of a chain."""

    name: str
    """The class of the exception, or the symbol of an operating system error."""
    text: str
    condition: str | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    span: Span | None = None
    fragment: str = ""
    raised: MillstreamError | None = None
    """The exception itself, if it was one of Millstream's."""

    def at(self, span: Span, fragment: str) -> Self:
        return replace(self, span=span, fragment=fragment)

    def get(self, parameter: str) -> str:
        """Return a parameter without Spark's quotes around names, types and settings."""
        return _local(self.parameters.get(parameter, "").strip('`"'))

    def fill(self, pattern: str) -> str:
        """Replace names in braces by parameters."""
        return re.sub(r"\{(\w+)\}", lambda name: _cut(self.get(name[1])), pattern)


def explain(chain: Sequence[Failure]) -> Explanation:
    """Return the message and hint for a chain of failures; the first failure is the reported one."""
    for failure in reversed(chain):
        explanation = _known(failure)
        if explanation is not None:
            return explanation
    named = [i for i, f in enumerate(chain) if f.condition and f.text and f.condition not in _WRAPPERS]
    if not named:
        with_text = [failure for failure in chain if failure.text]
        return (_plain(with_text[-1].text), None) if with_text else (_short_name(chain[-1].name), None)
    message, hint = _essence(chain[named[-1]])
    # The failures below the last named one often give the reason.
    reasons = [failure.text for failure in chain[named[-1] + 1 :] if failure.text]
    return (f"{message}: {_cut(reasons[-1])}" if reasons else message), hint


def _known(failure: Failure) -> Explanation | None:
    condition = failure.condition or ""
    # The part after the dot is a variant.
    by_condition = _CONDITIONS.get(condition) or _CONDITIONS.get(condition.partition(".")[0])
    if by_condition is not None:
        return by_condition(failure)
    for words, by_words in _WORDS.items():
        if words in failure.text:
            return by_words(failure)
    by_name = _NAMES.get(_short_name(failure.name))
    return by_name(failure) if by_name is not None else None


def _essence(failure: Failure) -> Explanation:
    """Return the first sentence of Spark's message, and its advice if there is any.

    >>> _essence(Failure("", "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide`. SQLSTATE: 22012"))
    ('division by zero', 'use `try_divide`')
    """
    text = re.sub(r"^\s*\[[\w.]+\] ", "", failure.text)
    # The rest is the query, the plan or a stack trace.
    text = re.split(r"\s*(?:SQLSTATE: |\n== |\n\tat )", text, maxsplit=1)[0]
    sentences = re.split(r"(?<=[.?])\s+(?=[A-Z])", text.strip())
    advice = [s for s in sentences[1:] if s.startswith(("Use ", "Did you mean", "Please ", "Consider "))]
    message = _plain(sentences[0])
    better = _SENTENCES.get(failure.condition or "")
    if better and failure.parameters:
        message = failure.fill(better)
    if failure.fragment and failure.fragment not in message:
        message += f" in {_cut(failure.fragment, 80)}"
    if failure.condition and not failure.condition.startswith("_LEGACY"):
        message += f" ({failure.condition})"
    return message, _plain(advice[0]) if advice else None


def is_about_declaration(chain: Sequence[Failure]) -> bool:
    """Whether the cause is how a source was declared, and not what a query does with it."""
    return any(words in failure.text for failure in chain for words in _OF_DECLARATIONS)


def _plain(sentence: str) -> str:
    """Return a sentence without a capital and a full stop, to be part of another."""
    sentence = _cut(sentence).rstrip(".")
    return sentence[0].lower() + sentence[1:] if sentence[1:2].islower() else sentence


def _cut(text: str, longest: int = LONGEST_TEXT) -> str:
    line = " ".join(_local(text).split())
    return line if len(line) <= longest else line[: longest - 3] + "..."


def _short_name(name: str) -> str:
    return name.rpartition(".")[2]


def _unknown_format(failure: Failure) -> Explanation:
    name = failure.get("provider") or "this format"
    package = _PACKAGES.get(name.lower())
    if package:
        hint = f"it is an extension: start Millstream with --set spark.jars.packages={package}"
    else:
        formats = (*_BUILT_IN, *_PACKAGES)
        hint = did_you_mean(name, formats) or f"Spark itself has {', '.join(_BUILT_IN)}"
    return f"there is no data source '{name}'", hint


def _missing_path(failure: Failure) -> Explanation:
    path = failure.get("path") or _path(failure.text)
    return f"there is no file or directory {path}", "paths are relative to where Millstream was started"


def _unknown_column(failure: Failure) -> Explanation:
    near = failure.get("proposal").replace("`", "")
    return f"there is no column '{failure.get('objectName').replace('`', '')}'", (
        f"there are {near}" if near else None
    )


def _wrong_header(failure: Failure) -> Explanation:
    parts = dict(re.findall(r"^\s*(Header|Schema|CSV file): (.*)$", failure.text, re.MULTILINE))
    if len(parts) < 3:
        return _essence(failure)
    return (
        f"{_local(parts['CSV file'])} has the header ({parts['Header']}), and not ({parts['Schema']})",
        "correct the names or their order in the schema, or drop the option header if there is none",
    )


def _header_of_other_length(failure: Failure) -> Explanation:
    """Explain a header of another length; Spark gives the numbers of columns only, the file has the names."""
    numbers = re.search(r"Header length: (\d+), schema size: (\d+)", failure.text)
    file = re.search(r"CSV file: (.*)$", failure.text, re.MULTILINE)
    if numbers is None or file is None:
        return _essence(failure)
    path = _local(file[1].strip())
    header = _first_line(path) or f"{numbers[1]} columns"
    return (
        f"{path} has the header ({header}), and not {numbers[2]} columns",
        "declare the columns that the header names, in its order",
    )


def _first_line(path: str) -> str:
    """Return the first line of a file, if it can be read here."""
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            line = file.readline(LONGEST_TEXT)
    except OSError:
        return ""
    return ", ".join(name.strip().strip('"') for name in line.split(","))


def _bad_record(failure: Failure) -> Explanation:
    return (
        f"a record is not in the schema: {_cut(failure.get('badRecord') or failure.text)}",
        "without the option mode 'FAILFAST' such records are set aside and counted",
    )


def _python(failure: Failure) -> Explanation | None:
    where = failure.parameters.get("where")
    # Without a place it is Spark's wrapper around the message of the Python worker.
    if where is None:
        return None
    name = _short_name(failure.name)
    if name == "PythonAggregateError":
        return _local(failure.text[:_LONGEST_TRACE]), None
    if name in ("KernelError", "UserAggregateError", "PatternError", "GapError"):
        return _cut(failure.text, 400), hint_for(name, failure.text)
    if name == "ModuleNotFoundError" and "'millstream'" in failure.text:
        return (
            "Spark's Python workers run a Python in which Millstream is not installed",
            "set PYSPARK_PYTHON to the Python of this program before Spark is started",
        )
    message = f"{name}: {_cut(failure.text)}" if failure.text else failure.name
    return f"Python code failed with {message}", f"raised at {where}" if where else None


def _connection(failure: Failure) -> Explanation:
    reason = _cut(failure.text) or _short_name(failure.name)
    if "Python worker" in reason:
        return (
            "a Python worker of Spark's did not start in time",
            "this machine may be too busy: try again later",
        )
    return f"no connection: {reason}", "is the other side running, and are host and port right?"


def _jvm_died(failure: Failure) -> Explanation:
    return (
        "Spark's JVM has ended unexpectedly",
        "if memory ran out, give it more or less with --set spark.driver.memory=...",
    )


def _out_of_memory(failure: Failure) -> Explanation:
    return (
        f"Spark ran out of memory ({_cut(failure.text)})",
        "give it more with --set spark.driver.memory=..., or keep smaller windows",
    )


def _too_much_at_once(failure: Failure) -> Explanation:
    return (
        "a micro-batch is too large: a shard got more than 2 GB of it",
        "let Spark read less at once, with the option maxFilesPerTrigger or maxBytesPerTrigger",
    )


def _week_in_pattern(failure: Failure) -> Explanation:
    letter = re.search(r"week-based character: (\w)", failure.text)
    which = f"'{letter[1]}'" if letter else "a letter"
    return (
        f"{which} in a pattern of dates stands for weeks, which Spark does not read",
        "write yyyy for the year, MM for the month and dd for the day",
    )


def _message(pattern: str, hint: str | None = None) -> Callable[[Failure], Explanation]:
    """Return an explanation that needs the failure's parameters only."""

    def explanation(failure: Failure) -> Explanation:
        return failure.fill(pattern), hint

    return explanation


def _advise(hint: str) -> Callable[[Failure], Explanation]:
    """Return an explanation with the failure's own text."""
    return lambda failure: (_cut(failure.text), hint)


def _path(text: str) -> str:
    """Return the path at the beginning of a Java message: `/a/b (No such file or directory)`."""
    match = re.search(r"(?:File |^)(\S+?)(?: does not exist| \(|$)", text, re.MULTILINE)
    return _local(match[1] if match else text)


def _local(text: str) -> str:
    """Shorten paths: `file:///a` and `file:/a` are `/a`."""
    return re.sub(r"\bfile:/+", "/", text)


_CONDITIONS: Mapping[str, Callable[[Failure], Explanation | None]] = {
    "DATA_SOURCE_NOT_FOUND": _unknown_format,
    "KAFKA_DATA_SOURCE_NOT_ENABLED": _unknown_format,
    "AVRO_DATA_SOURCE_NOT_ENABLED": _unknown_format,
    "PATH_NOT_FOUND": _missing_path,
    "FAILED_READ_FILE.FILE_NOT_EXIST": _missing_path,
    "PATH_ALREADY_EXISTS": _message("{outputPath} exists already", "choose another path, or remove it"),
    "UNRESOLVED_COLUMN": _unknown_column,
    "UNRESOLVED_ROUTINE": _message("there is no function '{routineName}'"),
    "TABLE_OR_VIEW_NOT_FOUND": _message("there is no stream or table '{relationName}'"),
    "MALFORMED_RECORD_IN_PARSING": _bad_record,
    "PYTHON_EXCEPTION": _python,
    "USER_RAISED_EXCEPTION": _message("{errorMessage}"),
    "CANNOT_MODIFY_CONFIG": _message(
        "{key} cannot be changed while Spark is running", "give it when Millstream is started, with --set"
    ),
}

_NAMES: Mapping[str, Callable[[Failure], Explanation]] = {
    "FileNotFoundException": _missing_path,
    "NoSuchFileException": _missing_path,
    "ENOENT": _missing_path,
    "ConnectException": _connection,
    "ConnectionRefusedError": _connection,
    "ECONNREFUSED": _connection,
    "UnknownHostException": _connection,
    "NoRouteToHostException": _connection,
    "SocketTimeoutException": _connection,
    "OutOfMemoryError": _out_of_memory,
    "OversizedAllocationException": _too_much_at_once,
    "JvmDied": _jvm_died,
}

_WORDS: Mapping[str, Callable[[Failure], Explanation]] = {
    "CSV header does not conform to the schema": _wrong_header,
    "column in CSV header is not equal to number of fields": _header_of_other_length,
    "All week-based patterns are unsupported": _week_in_pattern,
    "No space left on device": _advise("free some space on that disk"),
    "Disk quota exceeded": _advise("free some space, or ask for a larger quota"),
    "Permission denied": _advise("check the owner and the permissions of the file or directory"),
    "Read-only file system": _advise("choose a directory that can be written to"),
    "Too many open files": _advise("raise the limit with ulimit -n"),
    "Mkdirs failed to create": _advise("check that the directory above it exists and can be written to"),
    "Python worker exited unexpectedly": _message(
        "a Python worker crashed or was killed",
        "most often memory ran out: use smaller batches or fewer cores",
    ),
}
"""Failures without a condition: mostly errors of the operating system, which Java passes on as text only."""

_OF_DECLARATIONS = (
    "CSV header does not conform to the schema",
    "column in CSV header is not equal to number of fields",
    "All week-based patterns are unsupported",
    "Unknown pattern letter",
    "Illegal pattern character",
    "Fail to recognize",
)
"""Words for mistakes in columns and options of a source, wherever that is read."""

_SENTENCES: Mapping[str, str] = {
    "ARITHMETIC_OVERFLOW": "arithmetic overflow",
    "CAST_INVALID_INPUT": "{expression} of type {sourceType} cannot be cast to {targetType}",
    "CAST_OVERFLOW": "{value} of type {sourceType} overflows {targetType}",
}
"""Sentences that replace Spark's."""

_WRAPPERS = frozenset({"STREAM_FAILED", "FOREACH_BATCH_USER_FUNCTION_ERROR", "PYTHON_EXCEPTION"})
"""Conditions of wrappers around another failure."""
