"""EMIT EVERY on a stream that does not end: partial results come when they are due (semantics, section 6)."""

import socket
import time
from datetime import UTC, datetime

import pytest

from millstream.testing import Streams

pytestmark = pytest.mark.spark


def test_the_first_look_at_ten_minutes_is_there_after_the_first_second(streams: Streams) -> None:
    port = streams.engine.listen()
    streams.engine.execute(f"CREATE STREAM s (v INT, t TIMESTAMP) ORDER BY t SOURCE 'port{port}'")
    with socket.create_connection(("127.0.0.1", port)) as sender:
        sender.sendall(b"3,2026-01-01 12:00:00.2\n5,2026-01-01 12:00:00.7\n")
        query = streams.engine.start("""
            SELECT window_start, window_end, sum(v) AS total, complete
            FROM s [TUMBLE 10 MINUTES EMIT EVERY 1 SECOND]
        """)
        try:
            while query.progress.rows_in < 2:
                time.sleep(0.1)
            assert query.progress.rows_out == 0
            # The stream is a second old with this tuple, which comes after the look. There is no other one.
            sender.sendall(b"4,2026-01-01 12:00:01\n")
            row = next(query.results())
        finally:
            query.stop()
    assert (f"{row.window_start:%H:%M}", f"{row.window_end:%H:%M}") == ("12:00", "12:10")
    assert (row.total, row.complete) == (8, False)


def test_a_heartbeat_is_enough_for_a_look(streams: Streams) -> None:
    port = streams.engine.listen()
    streams.engine.execute(f"""
        CREATE STREAM s (v INT, current_time TIMESTAMP) ORDER BY current_time
        SOURCE 'port{port}' HEARTBEAT INTERVAL 1 SECOND
    """)
    # Now no window ends while this test runs.
    begin = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S}"
    with socket.create_connection(("127.0.0.1", port)) as sender:
        sender.sendall(b"41\n")
        query = streams.engine.start(f"""
            SELECT count(*) AS n, complete FROM s [TUMBLE 10 MINUTES ORIGIN '{begin}' EMIT EVERY 1 SECOND]
        """)
        try:
            row = next(query.results())
        finally:
            query.stop()
    assert tuple(row) == (1, False)
