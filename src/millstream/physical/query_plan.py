"""The physical plan of a query: made once, with programs that are generated once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from millstream.catalog import Catalog
from millstream.catalog.entries import ScalarFunction, Stream
from millstream.physical.nodes import Output, stages_of
from millstream.physical.planner import Planner
from millstream.physical.programs import Programs
from millstream.physical.unknown_types import Known, UnknownTypes
from millstream.plan.nodes import Node
from millstream.program.program import Program
from millstream.stage.program_discovery import programs


@dataclass
class QueryPlan:
    """A physical plan, and what is not known of it without Spark.

    It is made again when Spark has told types that the analysis does not know; its programs are kept.
    """

    logical: Node
    streams: Callable[[str], Stream | None]
    generated: Programs = field(default_factory=Programs)
    python_functions: frozenset[str] = frozenset()
    zone: str = "UTC"
    unknown: UnknownTypes = field(init=False)
    physical: Output = field(init=False)

    def __post_init__(self) -> None:
        self.bind({})

    def bind(self, known: Known) -> None:
        """Make the plan with types that Spark has told, by the texts of expressions."""
        self.unknown = UnknownTypes(known)
        planner = Planner(self.streams, self.generated, self.python_functions, self.zone, self.unknown)
        self.physical = planner.plan(self.logical)

    @property
    def programs(self) -> list[Program]:
        """The different programs of users' aggregates and patterns."""
        return programs([stage.kernels for stage in stages_of(self.physical)])


def stream_named(catalog: Catalog, name: str) -> Stream | None:
    """Return a stream of the catalog."""
    entry = catalog.relation(name)
    return entry if isinstance(entry, Stream) else None


def python_functions_of(catalog: Catalog) -> frozenset[str]:
    """Return the functions of the catalog that Spark calls in Python."""
    functions: Iterable[object] = catalog.entries(ScalarFunction)
    return frozenset(f.name.lower() for f in functions if isinstance(f, ScalarFunction) and f.python)


def plan_without_spark(logical: Node, catalog: Catalog) -> QueryPlan:
    """Return the plan of a query for EXPLAIN; types that only Spark knows stay unknown."""
    return QueryPlan(
        logical, lambda name: stream_named(catalog, name), python_functions=python_functions_of(catalog)
    )
