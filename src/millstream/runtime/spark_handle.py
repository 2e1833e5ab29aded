"""The Spark session of a connection: the caller's, or the embedded one of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.errors import ExecutionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_users_of_embedded_spark: set[int] = set()
"""Identities of the handles that use the embedded session, which ends with the last of them."""


class SparkHandle:
    """Starts the embedded session when it is first needed, unless the caller has passed one.

    Settings made before that are passed to the session at its start.
    """

    def __init__(self, external: SparkSession | None, master: str | None) -> None:
        if external is not None:
            from millstream.spark.session.external_session import check_session

            check_session(external)
        self._external = external
        self._session = external
        self._master = master
        self._settings: dict[str, str] = {}
        self._is_closed = False

    @property
    def session(self) -> SparkSession:
        if self._is_closed:
            raise ExecutionError("this connection is closed", hint="make another one: millstream.connect()")
        if self._session is None:
            from millstream.spark.errors.error_chain import FAILURES, translate
            from millstream.spark.session.session import embedded_session

            try:
                self._session = embedded_session(self._master, self._settings)
            except FAILURES as error:
                raise translate(error) from None
            _users_of_embedded_spark.add(id(self))
        return self._session

    def configure(self, key: str, value: str) -> None:
        """Change a setting of the session, or store it for the start of the session."""
        if self._session is None:
            self._settings[key] = value
        else:
            self._session.conf.set(key, value)

    def table(self, name: str) -> DataFrame | None:
        """Return a table or temporary view of the session; None before its start."""
        if self._session is None or not self._session.catalog.tableExists(name):
            return None
        frame = self._session.table(name)
        return None if frame.isStreaming else frame

    def close(self) -> None:
        """Refuse further use of the session."""
        self._is_closed = True

    def stop(self) -> None:
        """Stop the embedded session, unless another connection uses it."""
        if self._session is not None and self._external is None:
            _users_of_embedded_spark.discard(id(self))
            if not _users_of_embedded_spark:
                from millstream.spark.session.session import stop_session

                stop_session(self._session)
            self._session = None

    def kill(self) -> None:
        """Kill the JVM of the embedded session without waiting."""
        if self._external is None:
            from millstream.spark.session import jvm

            _users_of_embedded_spark.clear()
            self._session = None
            jvm.kill()
