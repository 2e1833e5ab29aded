"""Translation of Spark's exceptions to a message and a hint, without stack traces.

An exception of Spark is a chain: a query failed because a batch failed because a task failed because a
division did. Spark names its errors by *condition* (`DIVIDE_BY_ZERO`) with parameters, so the chain is
searched from its end for the first link that is known in `spark/errors/error_messages.py`; unknown ones are
shortened by general rules.
"""

from __future__ import annotations

import errno
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from py4j.java_gateway import JavaObject, is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.errors.exceptions.captured import CapturedException

from millstream import errors
from millstream.errors import ExecutionError, MillstreamError, Place
from millstream.spark.errors.error_messages import Failure, explain, is_about_declaration
from millstream.spark.session import jvm

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

FAILURES = (MillstreamError, PySparkException, Py4JError, OSError, ValueError)
"""Exceptions of Spark, or of Millstream's code that calls it."""

_NAMES_AND_THE_REST = re.compile(r"(?:`([^`]+)`\.)?`([^`]+)`|([^`]+)")

_LONGEST_CHAIN = 20
"""Limit on the length of a chain: Java allows a chain of causes to be a circle."""


def translate(
    error: BaseException,
    *,
    text: str | None = None,
    log: Callable[[], Path | None] | None = None,
    declared: Place | None = None,
) -> MillstreamError:
    """Translate an exception of Spark to an error of Millstream.

    With the `text` that Spark was given, the error's span is a place in that text; without it, the span is
    Spark's, relative to the expression or statement. Without another hint, the hint names the `log`, which is
    called only then and returns None if Spark writes its log elsewhere. A mistake in columns or options has
    the place where the source is ``declared``, if that is known.

    The query only has the text of an exception in foreachBatch: catch it inside the function and translate it
    there.
    """
    if isinstance(error, MillstreamError):
        return error
    chain = [failure if text is None else _placed(failure, text) for failure in _chain(error)]
    for failure in reversed(chain):
        if failure.raised is not None:
            return failure.raised
    message, hint = explain(chain)
    if hint is None and log is not None:
        hint = f"details are in {log() or 'the log of the Spark session'}"
    spans = [failure.span for failure in chain if failure.span is not None]
    explained = ExecutionError(message, hint=hint, span=spans[-1] if spans else None)
    if declared is not None and is_about_declaration(chain):
        explained.place = declared
    return explained


def _placed(failure: Failure, text: str) -> Failure:
    """Return a failure with its place in the text, and in the words of the text.

    Spark's own offsets count from the start of its input, which is often a single expression; there, columns
    have their full names in backquotes.
    """
    if failure.span is None or not failure.fragment:
        return failure
    start, end = failure.span
    if text[start : end + 1] == failure.fragment:
        return failure
    pattern = "".join(
        f"(?:{re.escape(relation)}\\s*\\.\\s*)?`?{re.escape(column)}`?" if column else re.escape(other)
        for relation, column, other in _NAMES_AND_THE_REST.findall(failure.fragment)
    )
    matches = list(re.finditer(pattern, text, re.IGNORECASE))
    # Only a unique occurrence is certain to be the right one.
    if len(matches) != 1:
        return replace(failure, span=None)
    return failure.at((matches[0].start(), matches[0].end() - 1), matches[0][0])


def _chain(error: BaseException) -> Iterator[Failure]:
    """Yield the failures of an exception, from the reported one to the first cause."""
    if isinstance(error, Py4JJavaError):
        yield from _java_chain(error.java_exception)
    elif isinstance(error, CapturedException):
        if error._origin is not None:
            yield from _java_chain(error._origin)
        else:
            yield Failure("", error._desc or "")
            if error._cause is not None:
                yield from _chain(error._cause)
    elif isinstance(error, PySparkException):
        yield Failure(type(error).__name__, error.getMessage(), error.getCondition())
    elif isinstance(error, (Py4JError, ConnectionError)) and jvm.is_dying():
        yield Failure("JvmDied", "Spark's JVM has ended unexpectedly")
    elif isinstance(error, OSError) and error.errno is not None:
        # Java has no error numbers, but the same words for them.
        name = errno.errorcode.get(error.errno, "OSError")
        yield Failure(name, f"{error.filename or ''} ({error.strerror})".strip())
    else:
        yield Failure(type(error).__name__, str(error))
        if error.__cause__ is not None:
            yield from _chain(error.__cause__)


def _java_chain(throwable: JavaObject) -> Iterator[Failure]:
    try:
        for _ in range(_LONGEST_CHAIN):
            failure = _java_failure(throwable)
            yield failure
            if "Traceback (most recent call last)" in failure.text:
                yield from _python_failures(failure)
            throwable = throwable.getCause()
            if throwable is None:
                return
    except Py4JError as lost:
        # The JVM that holds the exception has died, and that is the error to report.
        yield Failure("JvmDied" if jvm.is_dying() else type(lost).__name__, str(lost))


def _java_failure(throwable: JavaObject) -> Failure:
    name = str(throwable.getClass().getName())
    text = str(throwable.getMessage() or "")
    if not is_instance_of(SparkContext._gateway, throwable, "org.apache.spark.SparkThrowable"):
        return Failure(name, text)
    assert SparkContext._jvm is not None
    utilities = SparkContext._jvm.PythonErrorUtils
    failure = Failure(
        name,
        text,
        utilities.getCondition(throwable),
        dict(utilities.getMessageParameters(throwable)),
    )
    for context in utilities.getQueryContext(throwable):
        # The contexts of expressions made by calls contain only a line of Python.
        if context.contextType().toString() == "SQL":
            return failure.at((context.startIndex(), context.stopIndex()), context.fragment())
    return failure


def _python_failures(failure: Failure) -> Iterator[Failure]:
    """Yield the exceptions of a Python worker, or of a function called by Spark, parsed from text."""
    trace = failure.parameters.get("traceback", failure.text)
    lines = trace.strip().splitlines()
    frames = [i for i, line in enumerate(lines) if line.startswith('  File "')]
    if not frames:
        return
    # After the last frame come its indented source line and marks, and then the exception itself.
    raised = frames[-1] + 1
    while raised < len(lines) and lines[raised].startswith(" "):
        raised += 1
    body = "\n".join(lines[raised:])
    causes = re.findall(r"^(?:Caused by|): (\S+?): (.*?)(?=\n\tat |\Z)", body, re.MULTILINE | re.DOTALL)
    if causes:
        # Python had called Spark, so the trace ends with that of the JVM.
        for name, text in causes:
            yield Failure(name, text, _condition(text))
        return
    # In the message of Spark's exception its own SQLSTATE follows.
    name, _, text = re.sub(r"\s*SQLSTATE: \w+\s*\Z", "", body).partition(": ")
    if name.startswith("pyspark.errors."):
        yield Failure(name, text, _condition(text))
        return
    frame = re.match(r'  File "(.*)", line (\d+), in (.*)', lines[frames[-1]])
    where = f"{frame[1]}:{frame[2]}, in {frame[3]}" if frame else ""
    yield Failure(name, text, "PYTHON_EXCEPTION", {"where": where}, raised=_own_error(name, text))


def _condition(text: str) -> str | None:
    condition = re.match(r"\[([A-Z0-9_.]+)\] ", text)
    return condition[1] if condition else None


def _own_error(name: str, text: str) -> MillstreamError | None:
    """Recreate an error of Millstream that was raised in another process."""
    module, _, short = name.rpartition(".")
    kind = getattr(errors, short, None) if module == errors.__name__ else None
    if kind is None or not issubclass(kind, MillstreamError):
        return None
    message, _, hint = text.partition("\nHint: ")
    own: MillstreamError = kind(message, hint=hint or None)
    return own
