"""User-defined scalar functions in Spark: SQL functions, and Python functions as Arrow-optimized UDFs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (Spark's own custom)

from millstream.catalog.entries import ScalarFunction
from millstream.errors import ExecutionError
from millstream.ir.python_aggregate import RowsOf, load
from millstream.spark.session.spark_types import to_spark_type


def register_function(function: ScalarFunction, spark: SparkSession) -> None:
    """Make a function of the catalog callable in expressions."""
    if function.columns and function.python is None:
        return  # it is a part of the queries that call it
    if function.python is not None:
        python = load_python(function.python)
        if function.columns:
            python = RowsOf(function.name, python, tuple(column.name for column in function.columns))
        udf = F.udf(python, to_spark_type(function.returns), useArrow=True)
        # Spark passes arguments of any type to a Python function. An SQL function around it casts them to the
        # declared types.
        inner = f"__ms_python_{function.name}"
        spark.udf.register(inner, udf)
        arguments = ", ".join(f"`{p.name}`" for p in function.parameters)
        body = f"`{inner}`({arguments})"
    else:
        body = function.body or ""
    parameters = ", ".join(f"`{p.name}` {p.type}" for p in function.parameters)
    spark.sql(
        f"CREATE OR REPLACE TEMPORARY FUNCTION `{function.name}`({parameters}) "
        f"RETURNS {function.returns} RETURN {body}"
    )


def load_python(name: str) -> Callable[..., Any]:
    """Return the function that ``package.module:attribute`` names."""
    function = load(name)
    if not callable(function):
        raise ExecutionError(f"'{name}' is not callable")
    return function  # type: ignore[no-any-return]
