"""Evaluation of the queries in statements about tables, by Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from millstream.analysis.definitions.statement_analyzer import AnalysedStatement
from millstream.analysis.queries.resolved_query import Query
from millstream.errors import ExecutionError
from millstream.runtime.queries.query_request import QueryRequest
from millstream.runtime.queries.query_starter import MakeLowerer, lower_query
from millstream.runtime.view_registry import ViewRegistry
from millstream.types import Field

if TYPE_CHECKING:
    from millstream.stage.program_discovery import Compiling


@dataclass(frozen=True)
class TableEvaluation:
    """Evaluates queries over tables and views as they are now; bounded views are read after their end."""

    lowerer: MakeLowerer
    views: ViewRegistry
    compiling: Compiling

    def __call__(
        self, query: Query, statement: AnalysedStatement, targets: tuple[Field, ...] | None
    ) -> tuple[pa.Table, tuple[Field, ...]]:
        from millstream.spark.errors.error_chain import FAILURES
        from millstream.spark.session.spark_types import fields_of, to_spark_type
        from millstream.spark.sources.hidden_columns import shown

        request = QueryRequest(query, statement.source, statement.span, "table")
        for view in self.views.read_by(request.plan):
            if view.is_bounded:
                view.wait()
        try:
            with self.views.entering:
                frame = shown(lower_query(request, self.lowerer(request), self.compiling))
            if targets is None:
                return frame.toArrow(), fields_of(frame.schema)
            if len(targets) != len(frame.columns):
                raise ExecutionError(
                    f"the query has {len(frame.columns)} columns, and the table takes {len(targets)}"
                )
            # Two columns of the query may have the same name.
            numbered = frame.toDF(*map(str, range(len(targets))))
            columns = [
                numbered[str(number)].cast(to_spark_type(target.type))
                for number, target in enumerate(targets)
            ]
            return numbered.select(*columns).toArrow(), targets
        except FAILURES as error:
            raise request.explain(error) from None
