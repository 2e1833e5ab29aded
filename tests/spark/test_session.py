"""The embedded Spark: how it is set up, how quiet it is, and what it says when it cannot start."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import millstream
from millstream.spark.host.unix_sockets import forget_old_sockets
from millstream.spark.session import class_archive, session
from millstream.spark.session.session import embedded_session, log_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, as `millstream` runs on a terminal."""
    source = Path(millstream.__file__).parents[1]
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, "PYTHONPATH": str(source), **environment},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


class TestSettings:
    @pytest.mark.spark
    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("spark.master", "local[*,4]"),
            ("spark.sql.session.timeZone", "UTC"),
            ("spark.sql.ansi.enabled", "true"),
            ("spark.sql.execution.arrow.pyspark.enabled", "true"),
            ("spark.ui.enabled", "false"),
        ],
    )
    def test_defaults(self, spark: SparkSession, key: str, value: str) -> None:
        assert spark.conf.get(key) == value

    @pytest.mark.spark
    def test_one_shuffle_partition_for_each_core(self, spark: SparkSession) -> None:
        cores = spark.sparkContext.defaultParallelism
        assert spark.conf.get("spark.sql.shuffle.partitions") == str(cores)

    @pytest.mark.spark
    def test_a_running_session_is_used_again_with_new_settings(self, spark: SparkSession) -> None:
        again = embedded_session(settings={"spark.sql.session.timeZone": "Europe/Zurich"})
        try:
            assert again.sparkContext is spark.sparkContext
            assert spark.conf.get("spark.sql.session.timeZone") == "Europe/Zurich"
        finally:
            spark.conf.set("spark.sql.session.timeZone", "UTC")

    @pytest.mark.spark
    def test_workers_import_what_this_process_can(self, spark: SparkSession) -> None:
        def modules(batches):  # type: ignore[no-untyped-def]
            import millstream.errors

            assert millstream.errors.__name__
            yield from batches

        assert spark.range(3).mapInArrow(modules, "id bigint").toArrow().num_rows == 3

    def test_user_settings_win(self) -> None:
        given = {"spark.master": "local[1]", "spark.driver.memory": "1g", "spark.app.name": "mine"}
        chosen = session._configuration("local[2]", given)
        assert given.items() <= chosen.items()

    def test_java_options_of_the_user_are_added(self) -> None:
        chosen = session._configuration(None, {"spark.driver.extraJavaOptions": "-Dmine=1"})
        options = chosen["spark.driver.extraJavaOptions"]
        assert options.startswith("-Dlog4j2.configurationFile=file:")
        assert options.endswith(" -Dmine=1")

    @pytest.mark.parametrize(
        ("given", "collectors"), [("", ["Parallel"]), ("-Xss4m", ["Parallel"]), ("-XX:+UseG1GC", ["G1"])]
    )
    def test_the_collector_of_the_user_is_the_only_one(self, given: str, collectors: list[str]) -> None:
        chosen = session._configuration(None, {"spark.driver.extraJavaOptions": given})
        assert re.findall(r"\+Use(\w+)GC", chosen["spark.driver.extraJavaOptions"]) == collectors

    def test_only_what_stays_on_this_machine_is_not_compressed(self) -> None:
        assert session._configuration("local[2]", {})["spark.shuffle.compress"] == "false"
        assert "spark.shuffle.compress" not in session._configuration("spark://host:7077", {})

    def test_a_cluster_finds_its_own_modules(self) -> None:
        assert "spark.executorEnv.PYTHONPATH" in session._configuration("local[2]", {})
        assert "spark.executorEnv.PYTHONPATH" not in session._configuration("spark://host:7077", {})

    def test_driver_memory_is_sensible(self) -> None:
        assert 512 <= session._driver_megabytes() <= 8192


@pytest.mark.spark
@pytest.mark.slow
def test_nothing_of_spark_reaches_the_terminal(tmp_path: Path) -> None:
    """The JVM, log4j, Python workers, failing queries and failing callbacks: all go to the log."""
    done = run_python(
        """
        import sys
        from millstream.spark.session.session import embedded_session
        spark = embedded_session("local[1]")

        def noise(batches):
            print("worker says hello")
            print("worker complains", file=sys.stderr)
            yield from batches

        def fail(batch, batch_id):
            raise KeyError("callback")

        spark.range(3).mapInArrow(noise, "id bigint").toArrow()
        for statement in ("SELECT 1 / 0", "SELECT nothing"):
            try:
                spark.sql(statement).toArrow()
            except Exception:
                pass
        rate = spark.readStream.format("rate").load()
        try:
            rate.writeStream.foreachBatch(fail).start().awaitTermination()
        except Exception:
            pass
        print("done")
        """,
        MILLSTREAM_LOG_DIR=str(tmp_path / "logs"),
    )
    assert (done.stdout, done.stderr, done.returncode) == ("done\n", "", 0)
    (log,) = (tmp_path / "logs").iterdir()
    assert "worker complains" in log.read_text()
    assert "DIVIDE_BY_ZERO" in log.read_text()


class TestLog:
    def test_the_directory_can_be_chosen(self, tmp_path: Path) -> None:
        done = run_python(
            "from millstream.spark.session.session import log_file; print(log_file())",
            MILLSTREAM_LOG_DIR=str(tmp_path),
        )
        assert Path(done.stdout.strip()).parent == tmp_path

    def test_a_directory_that_cannot_be_written_to(self) -> None:
        done = run_python(
            """
            from millstream.errors import ExecutionError
            from millstream.spark.session.session import log_file
            try:
                log_file()
            except ExecutionError as error:
                print(error)
            """,
            MILLSTREAM_LOG_DIR="/proc/nowhere",
        )
        assert "set MILLSTREAM_LOG_DIR" in done.stdout

    def test_a_temporary_log_stays_if_somebody_knows_of_it(self) -> None:
        asked = "from millstream.spark.session.session import log_file; print(log_file())"
        unasked = "from millstream.spark.session.session import _log_file; print(_log_file())"
        environment = {"MILLSTREAM_LOG_DIR": ""}
        kept = Path(run_python(asked, **environment).stdout.strip())
        assert kept.is_file()
        assert kept.parent.name.startswith("millstream-")  # it is removed here
        shutil.rmtree(kept.parent)
        assert not Path(run_python(unasked, **environment).stdout.strip()).exists()


class TestNoStart:
    START = """
        from millstream.errors import ExecutionError
        from millstream.spark.session.session import embedded_session
        try:
            embedded_session("local[1]", settings={settings})
        except ExecutionError as error:
            print(error)
        """

    def start(self, *, settings: str = "{}", **environment: str) -> str:
        done = run_python(self.START.replace("{settings}", settings), **environment)
        assert (done.stderr, done.returncode) == ("", 0)
        return done.stdout

    def test_java_is_too_old(self, tmp_path: Path) -> None:
        java = tmp_path / "bin" / "java"
        java.parent.mkdir()
        java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\nexit 1\n")
        java.chmod(0o755)
        said = self.start(JAVA_HOME=str(tmp_path))
        assert said.startswith(f"Spark needs Java 17, and {java} is Java 11\nHint: install Java 17")

    def test_java_home_is_wrong(self, tmp_path: Path) -> None:
        said = self.start(JAVA_HOME=str(tmp_path))
        assert "cannot be run: No such file or directory" in said
        assert "set JAVA_HOME" in said

    def test_there_is_no_java(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
        monkeypatch.setenv("PATH", "/nowhere")
        assert "there is none on the PATH" in str(session._explain_missing_jvm())

    @pytest.mark.spark
    def test_the_jvm_does_not_start(self, tmp_path: Path) -> None:
        said = self.start(settings='{"spark.driver.memory": "much"}', MILLSTREAM_LOG_DIR=str(tmp_path))
        assert said.startswith("the JVM of Spark did not start")
        (log,) = tmp_path.iterdir()
        assert f"Hint: Spark's log is {log}" in said

    @pytest.mark.spark
    @pytest.mark.slow
    def test_the_master_is_none(self) -> None:
        said = self.start(settings='{"spark.master": "nonsense"}')
        assert "Master must either be yarn or start with spark, k8s, or local" in said

    @pytest.mark.spark
    @pytest.mark.slow
    def test_the_master_is_local_nonsense(self) -> None:
        said = self.start(settings='{"spark.master": "local[x]"}')
        assert said.startswith("Spark did not start with master 'local[x]': could not parse Master URL")


@pytest.mark.spark
def test_the_log_of_this_process_has_the_words_of_the_jvm(spark: SparkSession) -> None:
    assert spark.version
    assert "incubator" in log_file().read_text()


class TestArchive:
    def test_it_is_used_if_it_is_there(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
        assert class_archive.java_options("") == ""
        class_archive.archive_file().parent.mkdir()
        class_archive.archive_file().touch()
        assert (
            class_archive.java_options("-Xmx1g") == f'"-XX:SharedArchiveFile={class_archive.archive_file()}"'
        )
        assert class_archive.java_options("-XX:SharedArchiveFile=/mine") == ""


@pytest.mark.spark
def test_the_jvm_forgets_sockets_that_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    """Otherwise a query that runs for months would fill its memory with their names."""
    there, gone, other = tmp_path / "there.sock", tmp_path / "gone.sock", tmp_path / "other.txt"
    there.touch()
    jvm = spark.sparkContext._jvm
    assert jvm is not None
    for path in (there, gone, other):
        jvm.java.io.File(str(path)).deleteOnExit()
    forget_old_sockets(spark.sparkContext)
    field = jvm.java.lang.Class.forName("java.io.DeleteOnExitHook").getDeclaredField("files")
    field.setAccessible(True)
    listed = set(field.get(None).toArray())
    assert {str(there), str(other)} <= listed
    assert str(gone) not in listed
