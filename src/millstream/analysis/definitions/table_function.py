"""CREATE FUNCTION f(...) : TABLE (...): a function that stands in FROM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from millstream.analysis.definitions.create_aggregate import python_name
from millstream.analysis.definitions.create_stream import columns
from millstream.analysis.error_collector import error_at
from millstream.analysis.queries.lateral.lateral_items import LateralItems, TableFunctionQuery
from millstream.analysis.queries.query_analyzer import QueryAnalyser
from millstream.catalog.entries import ScalarFunction
from millstream.syntax import nodes
from millstream.types import Field, array, struct

if TYPE_CHECKING:
    from millstream.catalog import Catalog
    from millstream.errors import Source


def table_function(
    node: nodes.CreateFunction,
    parameters: tuple[Field, ...],
    catalog: Catalog,
    source: Source,
) -> ScalarFunction:
    """Return a table function, whose query has been checked with its parameters."""
    made = columns(node.args["columns"])
    for column, declared in zip(made, node.args["columns"], strict=True):
        if not column.type.is_known:
            raise error_at(declared, f"column '{column.name}' needs a type")
    returns = array(struct(*made))
    code = node.args.get("python")
    if code is not None:
        return ScalarFunction(node.name, parameters, returns, python=python_name(code, catalog), columns=made)
    query = node.args["query"]
    definition = TableFunctionQuery(query, source)
    function = ScalarFunction(node.name, parameters, returns, columns=made, definition=definition)
    LateralItems.check_function(function, QueryAnalyser(catalog, source))
    return function
