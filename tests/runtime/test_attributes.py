"""Windows on attributes that are not the timestamp, and promises about them, end to end."""

import socket
import time
from pathlib import Path

import pytest

from millstream.errors import MillstreamError
from millstream.testing import Streams, table

TRIPS = """
    car | km | t
    1   | 12 | 1
    2   | 3  | 2
    1   |    | 3
    2   | 15 | 4
    1   | 8  | 5
    1   | 21 | 6
"""


def add_trips(streams: Streams) -> Streams:
    streams.add(
        "CREATE STREAM Trip (car INT, km INT, t INT) ORDER BY t",
        TRIPS,
        clauses="SLACK 5 ON km LATE INTO TripLate",
    )
    return streams


@pytest.fixture
def trips(local: Streams) -> Streams:
    return add_trips(local)


@pytest.fixture
def trips_on_spark(streams: Streams) -> Streams:
    return add_trips(streams)


def test_windows_on_an_attribute_with_a_promise(trips_on_spark: Streams) -> None:
    # When 8 comes, 15 - 5 = 10 has been promised about km; when 3 comes, only 7.
    assert trips_on_spark.run("""
        SELECT window_end, count(*) AS n, first(t) AS first, last(t) AS last
        FROM Trip [RANGE 10 SLIDE 10 WATTR km]
    """) == table("""
        window_end | n | first | last
        20         | 2 | 1     | 4
        30         | 1 | 6     | 6
    """)
    late = trips_on_spark.run("SELECT car, km, t FROM TripLate")
    assert late == table("car | km | t \n 2 | 3 | 2 \n 1 | 8 | 5")


def test_a_broken_promise_about_an_attribute_counts_for_every_query(trips_on_spark: Streams) -> None:
    query = trips_on_spark.engine.start("SELECT count(*) AS n FROM Trip [TUMBLE 10]")
    assert query.collect().to_pydict() == {"n": [4]}
    assert query.progress.late == {"Trip": 2}
    assert query.progress.newest == "6"
    assert trips_on_spark.run("SELECT t FROM Trip WHERE km > 12") == table("t \n 4 \n 6")


def test_queries_on_different_attributes_share_a_stream(trips_on_spark: Streams) -> None:
    by_time, by_km, beside = trips_on_spark.engine.execute("""
        SELECT window_end, count(*) AS n FROM Trip [TUMBLE 3];
        SELECT window_end, count(*) AS n FROM Trip [TUMBLE 10 WATTR km] WHERE car = 1;
        SELECT window_end, count(*) AS n FROM Trip [RANGE 10 RATTR km SLIDE 2 ROWS SATTR row_num];
    """)
    assert by_time.collect().to_pydict() == {"window_end": [3, 6, 9], "n": [1, 2, 1]}
    assert by_km.collect().to_pydict() == {"window_end": [20, 30], "n": [1, 1]}
    # The second tuple that is not late has no km; the fourth ends a window.
    assert beside.collect().to_pydict() == {"window_end": [21], "n": [3]}


def test_a_promise_goes_with_its_attribute_through_derived_streams_and_unions(trips: Streams) -> None:
    trips.add(
        "CREATE STREAM Ride (km INT, t INT) ORDER BY t", "km | t \n 4 | 1 \n 22 | 2", clauses="SLACK 1 ON km"
    )
    trips.engine.execute("CREATE STREAM Way AS SELECT km AS far, t FROM Trip WHERE car = 1")
    assert trips.run("SELECT window_end, count(*) AS n FROM Way [TUMBLE 10 WATTR far]") == table("""
        window_end | n
        20         | 1
        30         | 1
    """)
    assert trips.run("""
        SELECT window_end, count(*) AS n
        FROM (SELECT far, t FROM Way UNION ALL SELECT km, t FROM Ride) [TUMBLE 10 WATTR far]
    """) == table("""
        window_end | n
        10         | 1
        20         | 1
        30         | 2
    """)


def test_a_window_on_an_attribute_joined_with_a_table(trips: Streams) -> None:
    trips.add("CREATE TABLE cars (car INT, make STRING)", "car | make \n 1 | a \n 2 | b")
    assert trips.run("""
        SELECT make, window_end, count(*) AS n
        FROM Trip [TUMBLE 10 WATTR km] JOIN cars ON Trip.car = cars.car GROUP BY make
    """) == table("""
        make | window_end | n
        a    | 20         | 1
        b    | 20         | 1
        a    | 30         | 1
    """)


def test_a_window_on_an_attribute_of_results_closes_at_the_end(trips: Streams) -> None:
    trips.engine.execute("""
        CREATE STREAM Sofar AS
          SELECT km, t, count(*) OVER (PARTITION BY car ROWS UNBOUNDED PRECEDING) AS n FROM Trip;
        CREATE STREAM Each AS
          SELECT car, window_end AS e, max(km) AS far FROM Trip [TUMBLE 3] GROUP BY car
    """)
    query = "SELECT window_end, first(t) AS f, last(t) AS l, sum(n) AS n FROM Sofar [TUMBLE 10 WATTR km]"
    assert trips.run(query) == table("""
        window_end | f | l | n
        20         | 1 | 4 | 2
        30         | 6 | 6 | 3
    """)
    query = "SELECT window_end, first(e) AS f, last(e) AS l FROM Each [TUMBLE 20 WATTR far]"
    assert trips.run(query) == table("window_end | f | l \n 20 | 3 | 6 \n 40 | 9 | 9")


def test_nan_and_infinite_values_are_in_no_window_and_promise_nothing(streams: Streams) -> None:
    streams.add(
        "CREATE STREAM s (a DOUBLE, t INT) ORDER BY t",
        "a | t \n 1.5 | 1 \n NaN | 2 \n Infinity | 3 \n 2.5 | 4",
        clauses="SLACK 0.5 ON a",
    )
    query = streams.engine.start("SELECT window_end, count(*) AS n FROM s [TUMBLE 1.0 WATTR a]")
    assert query.collect().to_pydict() == {"window_end": [2.0, 3.0], "n": [1, 1]}
    assert query.progress.late == {}


def test_heartbeats_on_an_attribute_close_its_windows(streams: Streams) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    streams.engine.execute(f"""
        CREATE STREAM Call (due TIMESTAMP, current_time TIMESTAMP) ORDER BY current_time
        SOURCE 'port{port}' HEARTBEAT INTERVAL 1 SECOND ON due
    """)
    query = streams.engine.start("SELECT count(*) AS n FROM Call [TUMBLE 1 SECOND WATTR due]")
    try:
        with socket.create_connection(("127.0.0.1", port)) as sender:
            sender.sendall(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(time.time() + 60))}\n".encode())
            sender.sendall(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime())}\n".encode())
            assert next(iter(query.results()))["n"] == 1
    finally:
        query.close()


def test_results_of_another_window_promise_nothing_about_their_columns(
    streams: Streams, tmp_path: Path
) -> None:
    streams.engine.execute(f"""
        CREATE STREAM s (km INT, t INT) ORDER BY t
          USING csv OPTIONS (path '{tmp_path}', follow 'true') SLACK 5 ON km;
        CREATE STREAM d AS SELECT km, count(*) OVER (ROWS 9 PRECEDING) AS n FROM s
    """)
    with pytest.raises(MillstreamError, match="nothing promises progress on 'km'"):
        streams.engine.start("SELECT count(*) FROM d [TUMBLE 10 WATTR km]")


def test_the_end_of_a_window_is_no_timestamp_of_an_early_report(local: Streams) -> None:
    """Early reports come at 5 and 15, before the ends of their windows at 10 and 20."""
    local.add("CREATE STREAM s (t INT) ORDER BY t", "t \n 1 \n 3 \n 11 \n 12 \n 25")
    local.engine.execute("""
        CREATE STREAM early AS SELECT window_end AS e, count(*) AS n FROM s [TUMBLE 10 EMIT EVERY 5]
    """)
    assert local.run("SELECT e, n FROM early") == table(
        "e | n \n 10 | 2 \n 10 | 2 \n 20 | 2 \n 20 | 2 \n 30 | 1"
    )
    assert local.run("SELECT window_end AS w, sum(n) AS total FROM early [TUMBLE 10 WATTR e]") == table("""
        w  | total
        20 | 4
        30 | 4
        40 | 1
    """)
