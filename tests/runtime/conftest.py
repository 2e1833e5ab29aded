from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import millstream as ms
from millstream.testing import Streams


@pytest.fixture
def streams(spark: SparkSession, tmp_path: Path) -> Iterator[Streams]:
    with ms.connect(spark) as mill:
        yield Streams(mill, tmp_path)
