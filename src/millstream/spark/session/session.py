"""Embedded Spark: it starts quickly, is tuned for small batches, and prints nothing.

The JVM, log4j, the Python workers and PySpark's own loggers all write to standard error. Here all of that
goes into one log file, so that the user sees only results and Millstream's own messages.
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
"""The Java version that PySpark 4.3 was compiled for; older ones cannot load it."""

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})

_DEFAULTS = MappingProxyType(
    {
        "spark.app.name": "Millstream",
        # The 4 permits retries of a task: in plain local[*] a Python worker that dies ends the query.
        "spark.master": "local[*,4]",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # Results are spooled to disk on this side (runtime/results/result_log.py), so their size is no
        # danger.
        "spark.driver.maxResultSize": "0",
        # The same meaning on every machine, regardless of its time zone.
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        # With the changelog below, this saves about 100 ms in every stateful micro-batch.
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
    }
)

_FOR_QUERIES = MappingProxyType(
    {
        # The only provider that supports Spark's stateful processors.
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        # Under any limit Spark adds up the size of the rows sent to Python with every row, which is more than
        # half of the cost of sending them. The number of rows is limited as well.
        "spark.sql.execution.arrow.maxBytesPerBatch": str(2**31 - 1),
    }
)
"""Settings that improve queries, also in a session made by the caller."""

_LOCAL = MappingProxyType(
    {
        # Shuffled rows stay in this machine's memory, and are mostly numbers that hardly compress.
        "spark.shuffle.compress": "false",
    }
)

_COLLECTOR = "-XX:+UseParallelGC -XX:MaxNewSize=512m"
"""Java's default collector runs concurrently to keep pauses short. On a few cores, and with blobs larger than
its regions, it costs more than it saves. Rows live so briefly that a larger young generation would only
touch more memory.
"""

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

# The first two loggers get a record for every exception that knows its place in a query, the third one for
# every exception in foreachBatch. The code that catches the exception reports it.
_PYTHON_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger", "py4j")


def embedded_session(master: str | None = None, settings: Mapping[str, str] = _NO_SETTINGS) -> SparkSession:
    """Return the Spark session of this process; start it if necessary.

    `master` is a Spark master URL, by default all cores of this machine. `settings` are Spark's own, and
    override Millstream's defaults. A running session is reused: those of the settings that can still be
    changed are applied.
    """
    if SparkContext._active_spark_context is None:
        _start(_configuration(master, settings))
    session = SparkSession.builder.config(map=dict(settings)).getOrCreate()
    if "spark.sql.shuffle.partitions" not in settings:
        # Spark's default would be 200 tasks in every micro-batch.
        cores = session.sparkContext.defaultParallelism
        session.conf.set("spark.sql.shuffle.partitions", str(cores))
    return session


def query_settings(session: SparkSession) -> dict[str, str]:
    """Return the settings for queries; the session's own settings take precedence."""
    cores = session.sparkContext.defaultParallelism
    return {**_FOR_QUERIES, "spark.sql.shuffle.partitions": str(cores)}


@contextlib.contextmanager
def tuned(session: SparkSession) -> Iterator[None]:
    """Apply the settings for queries while a query is started, unless the session has its own.

    A query copies the session's settings at its start, so that they can be restored afterwards.
    """
    settings = query_settings(session)
    with _tuning:
        chosen = session.conf.getAll
        added = {key: value for key, value in settings.items() if key not in chosen}
        for key, value in added.items():
            session.conf.set(key, value)
        try:
            yield
        finally:
            for key in added:
                session.conf.unset(key)


def log_file() -> Path:
    """Return the log file of Spark, the JVM and the Python workers, and keep it after the process ends.

    It is in $MILLSTREAM_LOG_DIR if that is set. Otherwise it is temporary, and is removed with the process
    unless this function was called.
    """
    path = _log_file()
    keep(path)
    return path


def log_with_details() -> Path | None:
    """Return the log to name in an error; None if it is empty, or of a session of the caller's."""
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
    """Let PySpark create its temporary files in the scratch directory, which is swept after a kill."""
    before = tempfile.tempdir
    # Other threads may be creating files that are to stay.
    alone = threading.active_count() == 1
    try:
        tempfile.tempdir = str(scratch()) if alone else before
        yield
    finally:
        tempfile.tempdir = before


def stop_session(session: SparkSession) -> None:
    """Stop Spark; reset PySpark if its JVM has died, so that another can be started."""
    try:
        session.stop()
    except (Py4JError, OSError):
        if not jvm.is_dying():
            raise
    if jvm.has_died():
        jvm.forget()


@contextlib.contextmanager
def _own_interrupt_handler() -> Iterator[None]:
    """Keep the program's handler of Ctrl-C, which Spark would replace."""
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        is_default = before in (signal.default_int_handler, None)
        # Only the main thread may set a handler, and in other threads Spark sets none either.
        if not is_default and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)


def _configuration(master: str | None, settings: Mapping[str, str]) -> dict[str, str]:
    """Return Millstream's settings, overridden by the user's."""
    chosen = {**_DEFAULTS, **_FOR_QUERIES}
    chosen["spark.driver.memory"] = f"{_driver_megabytes()}m"
    # Otherwise Spark creates a directory of that name in the working directory.
    chosen["spark.sql.warehouse.dir"] = (scratch() / "warehouse").as_uri()
    if master is not None:
        chosen["spark.master"] = master
    chosen |= settings
    if _is_local(chosen["spark.master"]):
        # Other users can read Spark's own directories, which contain shuffled rows.
        chosen.setdefault("spark.local.dir", str(scratch()))
        chosen.setdefault("spark.executorEnv.PYTHONPATH", _import_path())
        chosen = {**_sockets(), **_LOCAL, **chosen}
    # Java options are merged, so that the user's do not re-enable Spark's output.
    log4j = scratch() / "log4j2.properties"
    log4j.write_text(_LOG4J)
    user_options = settings.get("spark.driver.extraJavaOptions", "")
    collector = "" if re.search(r"-XX:\+Use\w*GC\b", user_options) else _COLLECTOR
    temporary = "" if "-Djava.io.tmpdir=" in user_options else f'"-Djava.io.tmpdir={scratch()}"'
    log = f"-Dlog4j2.configurationFile={log4j.as_uri()}"
    options = (log, temporary, collector, class_archive.java_options(user_options), user_options)
    chosen["spark.driver.extraJavaOptions"] = " ".join(filter(None, options))
    return chosen


def _sockets() -> dict[str, str]:
    """Return the settings for Unix sockets: over TCP a small task with Python takes some 40 ms longer."""
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
    """Return the import path of this process besides installed packages, for the Python workers."""
    installed = (sys.prefix, sys.base_prefix)
    extra = [path for path in sys.path if path and not path.startswith(installed)]
    return os.pathsep.join(str(Path(path).absolute()) for path in extra)


def _set_environment(*, local: bool) -> None:
    """Set the environment variables that Spark reads."""
    if local:
        # Workers must be this very Python, with the same packages.
        os.environ["PYSPARK_PYTHON"] = sys.executable
        # The address of the host name may change with the network, or not resolve at all.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    else:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    # A small JVM computes the command line of the large one; it ends before optimization pays.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")


def _driver_megabytes() -> int:
    """Return half of the memory that this process may use, up to 8 GB; the rest is for Python workers."""
    megabytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    try:
        # In a container the limit may be lower than the machine's memory.
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
    except OSError:
        limit = "max"
    if limit.isdigit():
        megabytes = min(megabytes, int(limit) // 2**20)
    return max(512, min(megabytes // 2, 8192))


@functools.cache
def _log_file() -> Path:
    log_directory = os.environ.get("MILLSTREAM_LOG_DIR")
    directory = Path(log_directory) if log_directory else scratch()
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
    """Suppress output to standard error if the JVM dies: the queries report its end."""

    def handle_error(request: object, address: object) -> None:
        logging.getLogger("py4j").error("the connection for accumulators broke")

    server = getattr(context, "_accumulatorServer", None)
    if server is not None:
        server.handle_error = handle_error


class _Masking(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


def _redirect_python_loggers() -> None:
    """Redirect PySpark's logs in this process to the log file instead of standard error."""
    # Opened at the first record; the handler appends, as the JVM does.
    handler = logging.FileHandler(_log_file(), delay=True)
    handler.setFormatter(_Masking())
    for name in _PYTHON_LOGGERS:
        logger = logging.getLogger(name) if name == "py4j" else PySparkLogger.getLogger(name)
        logger.handlers = [handler]
        logger.propagate = False
    # py4j reports broken connections to the root logger.
    root = logging.getLogger()
    root.filters = [each for each in root.filters if not isinstance(each, _Diverting)]
    root.addFilter(_Diverting(handler))


class _Diverting(logging.Filter):
    """Removes the records of py4j from a logger, and passes them to another handler."""

    def __init__(self, handler: logging.Handler) -> None:
        super().__init__()
        self._handler = handler

    def filter(self, record: logging.LogRecord) -> bool:
        if Path(record.pathname).parent.name != "py4j":
            return True
        self._handler.handle(record)
        return False


def _explain_missing_jvm() -> ExecutionError:
    """Return the reason why no JVM started; checked afterwards, as asking Java for its version takes time."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")
    hint = f"install Java {OLDEST_JAVA} or newer (a JRE is enough), or set JAVA_HOME to where it is"
    if java is None:
        return ExecutionError("Spark needs Java, and there is none on the PATH", hint=hint)
    try:
        probe = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except OSError as error:
        where = f"JAVA_HOME is {home}, but {java}" if home else java
        return ExecutionError(f"{where} cannot be run: {error.strerror}", hint=hint)
    version = re.search(r'version "(?:1\.)?(\d+)', probe.stderr)
    if version and int(version[1]) < OLDEST_JAVA:
        return ExecutionError(f"Spark needs Java {OLDEST_JAVA}, and {java} is Java {version[1]}", hint=hint)
    # Lines that begin with a space or a tab belong to a stack trace.
    lines = re.findall(r"^\S.*", _log_file().read_text(errors="replace"), re.MULTILINE)
    reason = (
        re.sub(r"^Exception in thread \S+ [\w.$]+: ", "", lines[-1])
        if lines
        else "it wrote nothing to its log"
    )
    return ExecutionError(f"the JVM of Spark did not start: {reason}", hint=f"Spark's log is {log_file()}")
