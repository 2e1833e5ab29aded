"""Aggregates from their text, in a catalog with a little of everything."""

from __future__ import annotations

from millstream.analysis.definitions.create_aggregate import analyse_aggregate
from millstream.catalog import Catalog
from millstream.catalog.entries import Aggregate, Registered, ScalarFunction, Stream, Table
from millstream.syntax import nodes, parse_script
from millstream.types import DOUBLE, INT, TIMESTAMP, Field


def a_catalog() -> Catalog:
    catalog = Catalog()
    bid = (Field("auction_id", INT), Field("price", DOUBLE), Field("bid_time", TIMESTAMP))
    catalog.add(Stream("bid", bid, Registered()))
    catalog.add(Table("limits", (Field("item", INT), Field("most", DOUBLE)), Registered()))
    catalog.add(Table("opaque", None, Registered()))
    catalog.add(ScalarFunction("twice", (Field("x", DOUBLE),), DOUBLE, body="x + x"))
    return catalog


def define(text: str, catalog: Catalog | None = None) -> Aggregate:
    """Analyse all aggregates of a script; the last one is given back."""
    catalog = catalog or a_catalog()
    entry = None
    for statement in parse_script(text):
        if isinstance(statement.tree, nodes.CreateAggregate):
            entry = analyse_aggregate(statement.tree, catalog, statement.source)
            catalog.add(entry)
    assert entry is not None
    return entry


MYAVG = """
CREATE AGGREGATE myavg(Next INT) : DOUBLE {
    TABLE state(tsum INT, cnt INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 1); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1; }
    TERMINATE  : { INSERT INTO RETURN SELECT tsum / cnt FROM state; }
};"""

DECAY = """
CREATE AGGREGATE decay_online_avg(Next DOUBLE) : DOUBLE {
    TABLE state(v DOUBLE);
    INITIALIZE : { INSERT INTO state VALUES (Next); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET v = 0.9 * v + 0.1 * Next; INSERT INTO RETURN SELECT v FROM state; }
    TERMINATE  : { }
};"""

WINDOW_MYAVG = """
CREATE WINDOW AGGREGATE myavg(Next INT) : DOUBLE {
    TABLE state(tsum INT, cnt INT);
    TABLE inwindow(wnext INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 1); INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { UPDATE state SET tsum = tsum + Next, cnt = cnt + 1;
                   INSERT INTO RETURN SELECT tsum / cnt FROM state; }
    EXPIRE     : { UPDATE state SET tsum = tsum - oldest().wnext, cnt = cnt - 1; }
};"""

NAIVE_MYAVG = """
CREATE WINDOW AGGREGATE myavg(Next INT) : DOUBLE {
    TABLE inwindow(wnext INT);
    INITIALIZE : { INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { INSERT INTO RETURN SELECT myavg(wnext) FROM inwindow; }
};"""

MYMAX = """
CREATE WINDOW AGGREGATE mymax(Next DOUBLE) : DOUBLE ALGEBRAIC {
    TABLE inwindow(wnext DOUBLE);
    INITIALIZE : { INSERT INTO RETURN VALUES (Next); }
    ITERATE    : { DELETE FROM inwindow WHERE wnext < Next;
                   INSERT INTO RETURN SELECT oldest().wnext; }
    EXPIRE     : { INSERT INTO RETURN SELECT oldest(2).wnext; }
};"""

TUMBLE_AVG = """
AGGREGATE tumble_avg(Next INT) : REAL {
    TABLE state(tsum INT, cnt INT);
    INITIALIZE : { INSERT INTO state VALUES (Next, 1); }
    ITERATE : {
        UPDATE state SET tsum = tsum + Next, cnt = cnt + 1;
        INSERT INTO RETURN SELECT tsum / cnt FROM state WHERE cnt % 200 = 0;
        UPDATE state SET tsum = 0, cnt = 0 WHERE cnt % 200 = 0
    }
    TERMINATE : { }
}"""

BIDDER_WCOUNT = """
AGGREGATE bidder_wcount(bidder_id, bid_time, num_min) : (bcount) {
    TABLE bidders(b_id, btime);
    INITIALIZE : { INSERT INTO bidders VALUES (bidder_id, bid_time); }
    ITERATE : {
        INSERT INTO bidders VALUES (bidder_id, bid_time) WHERE bidder_id NOT IN (SELECT b_id FROM bidders);
        UPDATE bidders SET btime = bid_time WHERE bidder_id = b_id;
        DELETE FROM bidders WHERE bid_time > (btime + num_min minutes);
        INSERT INTO RETURN SELECT count(b_id) FROM bidders
    }
    TERMINATE : { }
}"""

FIND_PATTERN = """
AGGREGATE find_pattern(PageNoIn INT, ClickTimeIn CHAR(16), PageTypeIn CHAR(1))
        : (PageNo INT, ClickTime CHAR(16)) {
    TABLE CurrentState(curState INT);
    TABLE Memo(PageNo INT, ClickTime CHAR(16), State INT);
    INITIALIZE : {
        INSERT INTO CurrentState VALUES (0);
        INSERT INTO Memo VALUES ((0, '', 1), (0, '', 2), (0, '', 3));
        UPDATE Memo SET PageNo = PageNoIn, ClickTime = ClickTimeIn WHERE PageTypeIn = 'a' AND State = 1;
        UPDATE CurrentState SET curState = 1 WHERE sqlcode = 0 }
    ITERATE : {
        UPDATE CurrentState SET curState = 0
         WHERE (curState = 0 AND PageTypeIn <> 'a') OR (curState = 1 AND PageTypeIn <> 'd');
        UPDATE CurrentState SET curState = curState + 1
         WHERE sqlcode > 0 AND ((curState = 0 AND PageTypeIn = 'a') OR (curState = 2 AND PageTypeIn = 'p'));
        UPDATE Memo SET PageNo = PageNoIn, ClickTime = ClickTimeIn
         WHERE Memo.State = (SELECT curState FROM CurrentState) AND sqlcode = 0;
        INSERT INTO RETURN SELECT Y.PageNo, Z.ClickTime
          FROM CurrentState AS C, Memo AS X, Memo AS Y, Memo AS Z
         WHERE C.curState = 3 AND Y.State = 2 AND Z.State = 3;
        UPDATE CurrentState SET curState = 0 WHERE sqlcode = 0 }
}"""

THEFT = """
CREATE WINDOW AGGREGATE theft(tag STRING, kind STRING) : STRING {
    TABLE inwindow(wtag STRING, wkind STRING);
    INITIALIZE : { }
    ITERATE : { DELETE FROM inwindow WHERE wkind = 'item' AND kind = 'ap'; }
    EXPIRE : { INSERT INTO RETURN SELECT oldest().wtag
                WHERE oldest().wkind = 'item' AND NOT EXISTS (SELECT * FROM inwindow WHERE wkind = 'ap'); }
}"""
