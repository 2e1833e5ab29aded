"""Warnings that Spark reports only in its log, written to a file."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession


def divert(spark: SparkSession, pattern: str, path: Path) -> None:
    """Copy messages of Spark's log that match a pattern to a file, a line each."""
    jvm = spark._jvm
    assert jvm is not None
    log4j = jvm.org.apache.logging.log4j
    core = log4j.core
    context = log4j.LogManager.getContext(False)
    accept, deny = core.Filter.Result.ACCEPT, core.Filter.Result.DENY
    matching = core.filter.RegexFilter.createFilter(pattern, None, False, accept, deny)
    layout = core.layout.PatternLayout.newBuilder().withPattern("%m%n").build()
    builder = core.appender.FileAppender.newBuilder().withFileName(str(path))
    appender = builder.setName(str(path)).setLayout(layout).setFilter(matching).build()
    appender.start()
    root = context.getConfiguration().getRootLogger()
    root.addAppender(appender, log4j.Level.WARN, None)
    context.updateLoggers()
