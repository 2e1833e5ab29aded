"""An embedded Spark: started quickly, tuned for small batches, and silent.

Spark talks a lot while it starts and works: the JVM, log4j, the Python workers and PySpark's own
loggers all write to standard error. Here all of that goes into one log file, so that what a person
sees is results and Millstream's own messages.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from millstream.errors import ExecutionError
from millstream.masking import masked
from millstream.scratch import keep, scratch
from millstream.spark.errors.error_chain import translate
from millstream.spark.host.unix_sockets import keep_forgetting
from millstream.spark.session import class_archive, jvm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from py4j.java_gateway import JavaGateway

OLDEST_JAVA = 17
"""What PySpark 4.3 was compiled for: any older Java refuses to load it."""

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})

_DEFAULTS = MappingProxyType(
    {
        "spark.app.name": "Millstream",
        # The 4 lets a task be tried again: in plain local[*] a Python worker that dies ends the query.
        "spark.master": "local[*,4]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Results are spooled to disk on this side (runtime/results/result_log.py), so their size is no
        # danger.
        "spark.driver.maxResultSize": "0",
        # One meaning everywhere, whatever the machine's time zone.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # With the changelog below, this takes about 100 ms off every stateful micro-batch.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
    }
)

_FOR_QUERIES = MappingProxyType(
    {
        # The only one that Spark's stateful processors run with.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Under any limit Spark adds up the size of what it sends to Python again with every row, which is
        # more than half of the cost of sending it. The number of rows is limited as well.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    }
)
"""What a query runs better with, also in a session that somebody else has made."""

_LOCAL = MappingProxyType(
    {
        # What is shuffled stays in this machine's memory, and is mostly numbers that hardly get smaller.
        "spark.shuffle.compress": "false",
    }
)

_COLLECTOR = "-XX:+UseParallelGC -XX:MaxNewSize=512m"
"""Java's default collector works beside the program to keep pauses short. On a few cores, and with blobs of
which each is larger than the pieces that it divides its memory into, it takes more than it gives. Rows live
so briefly that more room for what is new would only be more memory to touch."""

_LONGEST_DIRECTORY = 60
"""The path of a Unix socket has at most 107 characters, and Spark's names for them have 42."""

_tuning = threading.RLock()


class _Launched:
    """The JVM that was started here, whose output is in the log file."""

    gateway: JavaGateway | None = None


_launched = _Launched()

_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.log.ref = log
appender.log.type = Console
appender.log.name = log
appender.log.target = SYSTEM_ERR
appender.log.layout.type = PatternLayout
appender.log.layout.alwaysWriteExceptions = false
appender.log.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1}: \\
%replace{%replace{%m%n%ex}{://[^\\\\s/@]+@}{://***@}}{(?i)(password|passwd|pwd|secret|token)=[^\\\\s;&,]+}{$1=***}
"""
"""Warnings go to the JVM's standard error, which is the log file; so do the Python workers'. Secrets in
addresses are masked."""

# The first two get a record for every exception that knows its place in a query, the third one for
# every exception in foreachBatch. All three are reported by whoever catches the exception.
_PYTHON_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")


def embedded_session(master: str | None = None, settings: Mapping[str, str] = _NO_SETTINGS) -> SparkSession:
    """The Spark of this process, started if need be.

    `master` is a Spark master URL, by default all cores of this machine. `settings` are Spark's own,
    and win over everything that Millstream would choose. A session that runs already is used again:
    of the settings, those that can still be changed are.
    """
    if SparkContext._active_spark_context is None:
        _start(_configuration(master, settings))
    session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    if "spark.sql.shuffle.partitions" not in settings:
        # Spark's 200 would be 200 tasks in every micro-batch.
        cores = session.sparkContext.defaultParallelism
        session.conf.set("spark.sql.shuffle.partitions", str(cores))
    return session


def query_settings(session: SparkSession) -> dict[str, str]:
    """The settings that queries run with where the session has none of its own."""
    cores = session.sparkContext.defaultParallelism
    return {**_FOR_QUERIES, "spark.sql.shuffle.partitions": str(cores)}


@contextlib.contextmanager
def tuned(session: SparkSession) -> Iterator[None]:
    """Inside, queries are started with the settings that suit them, where the session has none of its own.

    A query takes a copy of the session's settings with it, so that they can be put back when it has started.
    """
    wanted = query_settings(session)
    with _tuning:
        chosen = session.conf.getAll
        added = {key: value for key, value in wanted.items() if key not in chosen}
        for key, value in added.items():
            session.conf.set(key, value)
        try:
            yield
        finally:
            for key in added:
                session.conf.unset(key)


def log_file() -> Path:
    """Where everything goes that Spark, the JVM and the Python workers have to say.

    It is in $MILLSTREAM_LOG_DIR if that is set. Otherwise it is temporary and goes away with the
    process, unless somebody has asked for it here: then it stays for them to read.
    """
    path = _log_file()
    keep(path)
    return path


def log_with_details() -> Path | None:
    """Find the log to name in an error; None if it is empty, or another one: that of a caller's session."""
    if SparkContext._gateway is None or SparkContext._gateway is not _launched.gateway:
        return None
    return log_file() if _log_file().stat().st_size else None


def _start(settings: Mapping[str, str]) -> None:
    """Start the JVM and a Spark context in it, with their output in the log file."""
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    _set_environment(local=_is_local(settings["spark.master"]))
    _redirect_python_loggers()
    try:
        gateway = None
        # PySpark keeps the JVM of a stopped context for the next one.
        if SparkContext._gateway is None:
            with _log_file().open("ab") as log, _temporary_files_here():
                gateway = launch_gateway(conf, {"stdout": log, "stderr": log})  # type: ignore[no-untyped-call]
            _launched.gateway = gateway
        with _own_interrupt_handler():
            context = SparkContext(conf=conf, gateway=gateway)
        keep_forgetting(context)
        _silence(context)
    except PySparkRuntimeError as error:
        if error.getCondition() == "JAVA_GATEWAY_EXITED":
            raise _explain_missing_jvm() from None
        raise translate(error) from None
    except (Py4JError, PySparkException, OSError, ValueError) as error:
        reason = translate(error)
        raise ExecutionError(
            f"Spark did not start with master '{settings['spark.master']}': {reason.message}",
            hint=reason.hint or f"Spark's log is {log_file()}",
        ) from None


@contextlib.contextmanager
def _temporary_files_here() -> Iterator[None]:
    """Let PySpark, too, make its temporary files where the next process sweeps them if this one is killed."""
    before = tempfile.tempdir
    # Other threads may be making files that are to stay.
    alone = threading.active_count() == 1
    try:
        tempfile.tempdir = str(scratch()) if alone else before
        yield
    finally:
        tempfile.tempdir = before


def stop_session(session: SparkSession) -> None:
    """Stop Spark; one whose JVM has died is forgotten, so that another can be started."""
    try:
        session.stop()
    except (Py4JError, OSError):
        if not jvm.is_dying():
            raise
    if jvm.has_died():
        jvm.forget()


@contextlib.contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep what the program does on Ctrl-C: Spark's handler would take its place."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        is_default = before in (signal.default_int_handler, None)
        # Only the main thread may set a handler, and in others Spark does not do it either.
        if not is_default and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _configuration(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """Millstream's settings, and over them the user's."""
    chosen = {**_DEFAULTS, **_FOR_QUERIES}
    chosen["spark.driver.memory"] = f"{_driver_megabytes()}m"
    # Without it Spark makes a directory of that name wherever it is started.
    chosen["spark.sql.warehouse.dir"] = (scratch() / "warehouse").as_uri()
    if master is not None:
        chosen["spark.master"] = master
    chosen |= settings
    if _is_local(chosen["spark.master"]):
        # Spark's own directories can be read by everybody, and rows that are shuffled are in them.
        chosen.setdefault("spark.local.dir", str(scratch()))
        chosen.setdefault("spark.executorEnv.PYTHONPATH", _import_path())
        chosen = {**_sockets(), **_LOCAL, **chosen}
    # The only setting that adds up: a user's Java options do not make Spark talk again.
    log4j = scratch() / "log4j2.properties"
    log4j.write_text(_LOG4J)
    given = settings.get("spark.driver.extraJavaOptions", "")
    collector = "" if re.search(r"-XX:\+Use\w*GC\b", given) else _COLLECTOR
    temporary = "" if "-Djava.io.tmpdir=" in given else f'"-Djava.io.tmpdir={scratch()}"'
    log = f"-Dlog4j2.configurationFile={log4j.as_uri()}"
    options = (log, temporary, collector, class_archive.java_options(given), given)
    chosen["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    return chosen


def _sockets() -> dict[str, str]:
    """Over TCP a small task with Python takes some 40 ms longer: it looks like a delayed acknowledgement."""
    directory = str(scratch())
    if len(directory) > _LONGEST_DIRECTORY:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }


def _is_local(master: str) -> bool:
    return master.startswith("local")


def _import_path() -> str:
    """Where Python workers should look for modules besides what is installed: where this process does."""
    installed = (sys.prefix, sys.base_prefix)
    extra = [path for path in sys.path if path and not path.startswith(installed)]
    return os.pathsep.join(str(Path(path).absolute()) for path in extra)


def _set_environment(*, local: bool) -> None:
    """What Spark takes from environment variables only."""
    if local:
        # Workers must be this very Python, with the same packages.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # The address of the host name may change with the network, or not resolve at all.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # A small JVM computes the command line of the large one: it is gone before it could be optimized.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def _driver_megabytes() -> int:
    """Half of the memory that this process may use, up to 8 GB: the other half is for Python workers."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    try:
        # In a container the machine's memory is not all ours.
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        limit = "max"
    if limit.isdigit():
        megabytes = min(megabytes, int(limit) // 2**20)
    return max(512, min(megabytes // 2, 8192))


@functools.cache
def _log_file() -> Path:
    asked = os.environ.get("MILLSTREAM_LOG_DIR")
    directory = Path(asked) if asked else scratch()
    path = directory.absolute() / f"spark-{os.getpid()}.log"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.touch()
    except OSError as error:
        raise ExecutionError(
            f"the log file {path} cannot be written: {error.strerror}",
            hint="set MILLSTREAM_LOG_DIR to a directory that can be written to",
        ) from None
    return path


def _silence(context: SparkContext) -> None:
    """Let nothing be written to standard error if the JVM dies: its end is reported by the queries."""

    def handle_error(request: object, address: object) -> None:
        logging.getLogger("py4j").error("the connection for accumulators broke")

    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = handle_error


class _Masking(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


def _redirect_python_loggers() -> None:
    """Send what PySpark logs in this process to the log file instead of standard error."""
    # Opened at the first record; the handler appends, as the JVM does.
    handler = logging.FileHandler(_log_file(), delay=True)
    handler.setFormatter(_Masking())
    for name in _PYTHON_LOGGERS:
        logger = logging.getLogger(name) if name == "py4j" else PySparkLogger.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    # Broken connections py4j writes to the root logger.
    root = logging.getLogger()
    root.filters = [each for each in root.filters if not isinstance(each, _Diverting)]
    root.addFilter(_Diverting(handler))


class _Diverting(logging.Filter):
    """Takes the records of py4j out of a logger, and hands them to another handler."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler

    def filter(self, record: logging.LogRecord) -> bool:
        if Path(record.pathname).parent.name != "py4j":
            return True
        self._handler.handle(record)
        return False


def _explain_missing_jvm() -> ExecutionError:
    """Why there is no JVM: found out after the fact, since asking Java for its version takes time."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    hint = f"install Java {OLDEST_JAVA} or newer (a JRE is enough), or set JAVA_HOME to where it is"
    if java is None:
        return ExecutionError("Spark needs Java, and there is none on the PATH", hint=hint)
    try:
        asked = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        where = f"JAVA_HOME is {home}, but {java}" if home else java
        return ExecutionError(f"{where} cannot be run: {error.strerror}", hint=hint)
    version = re.search(r'version "(?:1\.)?(\d+)', asked.stderr)
    if version and int(version[1]) < OLDEST_JAVA:
        return ExecutionError(f"Spark needs Java {OLDEST_JAVA}, and {java} is Java {version[1]}", hint=hint)
    # Lines that begin with a space or a tab are those of a stack trace.
    said = re.findall(r"^\S.*", _log_file().read_text(errors="replace"), re.MULTILINE)
    reason = re.sub(r"^Exception in thread \S+ [\w.$]+: ", "", said[-1]) if said else "it said nothing"
    return ExecutionError(f"the JVM of Spark did not start: {reason}", hint=f"Spark's log is {log_file()}")
