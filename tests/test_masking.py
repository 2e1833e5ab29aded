"""Secrets are masked wherever text is shown."""

import pytest

from millstream.analysis.definitions.statement_analyzer import DescribeOne, ExplainQuery, ShowList, analyse
from millstream.catalog import Catalog
from millstream.errors import AnalysisError, MillstreamError
from millstream.masking import masked
from millstream.runtime.explain import explanation
from millstream.runtime.show import answer
from millstream.syntax import parse_script


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3a://KEY:abc@bucket/x", "s3a://*******@bucket/x"),
        ("ftp://me@host/x", "ftp://**@host/x"),
        ("jdbc:postgresql://h/db?user=me&password=abc&ssl=true", "jdbc:postgresql://h/db?user=me&password=***&ssl=true"),
        ("jdbc:sqlserver://h;user=me;PASSWORD=abc;x=y", "jdbc:sqlserver://h;user=me;PASSWORD=***;x=y"),
        ("wasbs://c@account/x", "wasbs://*@account/x"),
        ("OPTIONS (password 'abc', x 'y')", "OPTIONS (password '***', x 'y')"),
        ('OPTIONS ("auth-token" = "abc")', 'OPTIONS ("auth-token" = "***")'),
        ("OPTIONS (fs.s3a.secret.key 'abc')", "OPTIONS (fs.s3a.secret.key '***')"),
        ("OPTIONS (`fs.azure.account.key.x` 'abc')", "OPTIONS (`fs.azure.account.key.x` '***')"),
        ('kafka.sasl.jaas.config \'Login required user="me" password="abc";\'',
         'kafka.sasl.jaas.config \'Login required user="me" password="***";\''),
        ("SET spark.hadoop.fs.s3a.access.key = 'abc'", "SET spark.hadoop.fs.s3a.access.key = '***'"),
        # No secrets.
        ("unknown column 'password'", "unknown column 'password'"),
        ("'token' is taken by a stream, 'x' is not", "'token' is taken by a stream, 'x' is not"),
        ("SELECT password, token FROM t WHERE a@b = 3", "SELECT password, token FROM t WHERE a@b = 3"),
        ("csv 'a/b@c.csv'", "csv 'a/b@c.csv'"),
        ("tokens == 3 and pwd = x", "tokens == 3 and pwd = x"),
    ],
)  # fmt: skip
def test_masked(text: str, shown: str) -> None:
    assert masked(text) == shown


SCRIPT = """
CREATE STREAM s (a INT, t TIMESTAMP) ORDER BY t USING csv OPTIONS (path 's3a://KEY:SESAME@bucket/x');
CREATE TABLE r (a INT) USING jdbc OPTIONS (url 'jdbc:h2:x;password=SESAME', password 'SESAME');
CREATE SINK w USING parquet OPTIONS (path 's3a://KEY:SESAME@bucket/y');
SHOW STREAMS; SHOW TABLES; SHOW SINKS; DESCRIBE s; DESCRIBE r; DESCRIBE w;
EXPLAIN SELECT a FROM s;
EXPLAIN SELECT s.a FROM s JOIN r ON s.a = r.a;
"""


def test_show_describe_and_explain() -> None:
    catalog = Catalog()
    texts = []
    for statement in parse_script(SCRIPT):
        meaning = analyse(statement, catalog).meaning
        if isinstance(meaning, ExplainQuery):
            texts.append(explanation(meaning, catalog))
        elif isinstance(meaning, ShowList | DescribeOne):
            texts.append(str(answer(meaning, catalog)))
    assert len(texts) == 8
    assert "s3a://**********@bucket/x" in texts[0]
    assert not any("SESAME" in text for text in texts)


def test_the_source_line_of_an_error_and_its_marks() -> None:
    with pytest.raises(AnalysisError) as raised:
        analyse(
            parse_script("CREATE SINK w USING csv OPTIONS (password 'SESAME', password 'x')")[0], Catalog()
        )
    assert str(raised.value).splitlines() == [
        "<script>:1:53: option 'password' is given twice",
        "  1 | CREATE SINK w USING csv OPTIONS (password '******', password '*')",
        "    |                                                     ^^^^^^^^^^^^",
    ]


def test_messages_and_hints() -> None:
    error = MillstreamError("cannot open s3a://KEY:SESAME@x", hint="try s3a://KEY:SESAME@y")
    assert (error.message, error.hint) == ("cannot open s3a://**********@x", "try s3a://**********@y")
    assert "SESAME" not in f"{error} {error!r}"
