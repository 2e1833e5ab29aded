"""Scripts without Spark: a query with one window becomes the stage that Spark would host, and its rows.

What the engine leaves to Catalyst is little here: arguments are columns as they
are, and conditions are evaluated by the oracle.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import pyarrow as pa

from millstream.analysis.definitions.statement_analyzer import RunQuery, analyse
from millstream.analysis.queries.call_nodes import AggregateCall, OverCall
from millstream.analysis.queries.resolved_expression import ColumnRef, Expr
from millstream.catalog import Catalog
from millstream.catalog.builtin_aggregates import Arguments, builtin_aggregate, function_of
from millstream.catalog.entries import PunctuationPromise, Stream
from millstream.codegen.udas.uda_compiler import CONTENT
from millstream.ir.typed_nodes import Body
from millstream.kernels.column_names import ENDS, PARTITIONS, STARTS, WHOLE
from millstream.kernels.core.arrow_types import arrow_type
from millstream.kernels.kernel_specs import KernelSpec, ReorderSpec
from millstream.kernels.specs import (
    AggregateSpec,
    OverSpec,
    OverUdaSpec,
    UdaSpec,
    WindowSpec,
)
from millstream.physical.node import arrow_of, schema_of
from millstream.physical.operators.over import OverPlanner
from millstream.physical.operators.udas import content_spec
from millstream.physical.operators.window_assigners import AssignerPlanner
from millstream.physical.programs import Programs
from millstream.physical.promise_units import promises_of
from millstream.plan import nodes
from millstream.plan.aggregate_strategies import constants
from millstream.plan.builder import build
from millstream.plan.optimize import optimize
from millstream.stage.pipeline import KEEP, PROMISE, SUBSTREAM, TIME, Input, Pipeline
from millstream.syntax import parse_script
from millstream.types import DOUBLE, TIMESTAMP, Type
from millstream.windows.window_properties import is_contextual, partitioning
from millstream.windows.window_spec import PredicateWindow
from oracle import Arrivals, Heartbeat, Row
from oracle.values.expressions import holds
from oracle.values.points import to_point
from tests.engine.simulation import Arrival, Beat, Simulation

RowValues = Sequence[Any]
Value = Callable[[RowValues], Any]


def planned(script: str) -> nodes.Node:
    """The optimized plan of the query that a script ends with."""
    catalog = Catalog()
    query = None
    for statement in parse_script(script):
        meaning = analyse(statement, catalog).meaning
        query = meaning.query if isinstance(meaning, RunQuery) else query
    assert query is not None, "the script asks for nothing"
    return optimize(build(query))


@dataclass(frozen=True)
class Stage:
    """The stage of a query, its packed columns, and its required output columns."""

    pipeline: Pipeline
    stream: Stream
    shipped: dict[str, Value]
    columns: tuple[str, ...]
    parallel: bool
    apart: tuple[tuple[AggregateCall, UdaSpec, str], ...] = ()
    listed: tuple[tuple[AggregateCall, str], ...] = ()

    @property
    def sorts(self) -> bool:
        """Return whether tuples are put in order before anything is done with them."""
        return ReorderSpec() in self.pipeline.kernels

    def run(self, given: Arrivals, chance: random.Random, *, ended: bool = True) -> list[tuple[Any, ...]]:
        """Timestamp and columns of every result; batches, tasks, shards and failures are left to chance."""
        arrivals = self._arrivals(given, chance)
        # A heartbeat is the last thing in its batch.
        cuts = [number + 1 for number, one in enumerate(arrivals) if isinstance(one, Beat)]
        cuts += [chance.randint(0, len(arrivals)) for _ in range(chance.randint(0, 3))]
        shards = chance.randint(1, 3) if self.parallel else 1
        pipeline = replace(
            self.pipeline, inputs=(replace(self.pipeline.inputs[0], partitions=len(given.partitions)),)
        )
        fields = [*pipeline.inputs[0].columns, pa.field(TIME, pipeline.time_type), pa.field(KEEP, pa.bool_())]
        fields += [pa.field(SUBSTREAM, pa.string()), pa.field(PROMISE, pa.bool_())]
        simulation = Simulation(pipeline, [pa.schema(fields)], shards, chance, forgetful=True)
        rows = simulation.run(arrivals, cuts, ended=ended).to_pylist()
        return [tuple(row[name] for name in (TIME, *self.columns)) for row in self._put_together(rows)]

    def _put_together(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the results of user-defined aggregates, as Spark computes them from the kernels' output."""
        for call, spec, name in self.apart:
            rows = [{**row, name: _result(call, [row[column] for column in spec.results])} for row in rows]
        for call, name in self.listed:
            rows = [{**row, name: _result(call, [*one.values()])} for row in rows for one in row[name]]
        return rows

    def _arrivals(self, given: Arrivals, chance: random.Random) -> list[Arrival]:
        """The rows of all source partitions, in some order of arrival."""
        waiting = [list(partition) for partition in given.partitions]
        names = [field.name for field in self.stream.schema]
        punctuated = any(isinstance(promise, PunctuationPromise) for promise in self.stream.promises)
        found: list[Arrival] = []
        while any(waiting):
            number = chance.choice([n for n, partition in enumerate(waiting) if partition])
            arrival = waiting[number].pop(0)
            if isinstance(arrival, Heartbeat):
                moment = to_point(arrival.time, TIMESTAMP)
                assert isinstance(moment, int)
                found.append(Beat(0, moment))
                continue
            assert isinstance(arrival, Row)
            values = [arrival.values[name] for name in names]
            promise = punctuated and bool(arrival.values["p"])
            row = {name: None if promise else value(values) for name, value in self.shipped.items()}
            about = {TIME: arrival.values["t"], KEEP: not promise, PROMISE: promise}
            found.append((0, number, {**row, **about, SUBSTREAM: str(arrival.values["k"])}))
        return found


def staged(plan: nodes.Node) -> Stage:
    """The stage of a plan that is a projection of one aggregate over one stream."""
    wanted = plan.outputs if isinstance(plan, nodes.Project) else ()
    names = [output.expr.column for output in wanted]
    assert all(names), "nothing is computed above the window"
    node = next(n for n in plan.walk() if isinstance(n, nodes.WindowAggregate | nodes.OverAggregate))
    scan = next(n for n in node.walk() if isinstance(n, nodes.StreamScan))
    making = _Making(scan)
    found = making.window(node) if isinstance(node, nodes.WindowAggregate) else making.over(node)
    known = {_key(ref): column for ref, column in found.named.items()}
    columns = tuple(known[_key(ref)] for ref in names if ref is not None)
    return Stage(
        found.pipeline,
        scan.stream,
        making.shipped,
        columns,
        found.parallel,
        tuple(found.apart),
        tuple(found.listed),
    )


def _result(call: AggregateCall, parts: list[Any]) -> Any:
    assert call.user is not None
    return tuple(parts) if call.user.returns_row else parts[0]


def _key(ref: ColumnRef) -> tuple[str, str]:
    return ref.relation.lower(), ref.name.lower()


@dataclass(frozen=True)
class _Made:
    pipeline: Pipeline
    named: dict[ColumnRef, str]
    parallel: bool
    apart: Sequence[tuple[AggregateCall, UdaSpec, str]] = ()
    listed: Sequence[tuple[AggregateCall, str]] = ()


class _Making:
    """Builds the stage over a scan; ``shipped`` collects the columns that it needs."""

    def __init__(self, scan: nodes.StreamScan) -> None:
        self._scan = scan
        self._time_type = TIMESTAMP
        self._over = OverPlanner(Programs(), TIMESTAMP)
        self.shipped: dict[str, Value] = {}
        self._types: dict[str, pa.DataType] = {}

    def window(self, node: nodes.WindowAggregate) -> _Made:
        windowed = next(n for n in node.walk() if isinstance(n, nodes.Windowed))
        window = windowed.window
        keys = [key.expr.column for key in node.group_by]
        keys += [ColumnRef(windowed.alias, name) for name in window.partition_by]
        refs = list(dict.fromkeys(map(self._column, keys)))
        for i, ref in enumerate(refs):
            self._ship(f"g{i}", ref)
        specs = tuple(self._aggregate(call, i) for i, call in enumerate(node.aggregates))
        per = PARTITIONS[partitioning(window, [ref.name for ref in refs])]
        placement = AssignerPlanner(self._time_type).of(window, per)
        if isinstance(window, PredicateWindow):
            for name, condition in ((STARTS, window.start_when), (ENDS, window.end_when)):
                self.shipped[name] = holds(cast(Expr, condition), windowed.input.schema)
                self._types[name] = pa.bool_()
        groups = tuple(f"g{i}" for i in range(len(refs)))
        spec = WindowSpec(
            placement.assigner, arrow_of(placement.edge), groups, specs, arrow_of(placement.wid)
        )
        bounds = {"window_start": spec.edge_type, "window_end": spec.edge_type, "wid": spec.wid_type}
        if window.emit_every:
            bounds["complete"] = pa.bool_()
        added = [
            *(pa.field(*bound) for bound in bounds.items()),
            *(pa.field(s.result, s.type) for s in specs),
        ]
        named = {ref: f"g{i}" for i, ref in enumerate(refs)}
        named |= {ColumnRef(windowed.alias, name): name for name in bounds}
        named |= {call.result: f"r{i}" for i, call in enumerate(node.aggregates)}
        return _Made(
            self._pipeline(
                [*placement.before, spec],
                [*(pa.field(name, self._types[name]) for name in groups), *added],
                key="g0" if refs else None,
                generous=placement.generous,
            ),
            named,
            parallel=bool(refs) and (per != WHOLE or not is_contextual(window)),
            listed=[(call, f"r{i}") for i, call in enumerate(node.aggregates) if call.user is not None],
        )

    def over(self, node: nodes.OverAggregate) -> _Made:
        refs = list(self._scan.schema)
        for i, ref in enumerate(refs):
            self._ship(f"c{i}", ref)
        first = node.calls[0]
        specs = [self._over_spec(call, i) for i, call in enumerate(node.calls)]
        complete = "complete" if first.emit_every else None
        types = {f"r{i}": call.call.type for i, call in enumerate(node.calls)}
        made = self._over.kernels(node.calls, specs, self._over.slide(first, complete), types)
        results = list(schema_of(made.added))
        named = {ref: f"c{i}" for i, ref in enumerate(refs)}
        named |= {call.call.result: f"r{i}" for i, call in enumerate(node.calls)}
        if first.emit_every:
            results.append(pa.field("complete", pa.bool_()))
            named[ColumnRef("", "complete")] = "complete"
        partition = [self._column(expr.column) for expr in first.partition_by]
        passed = [pa.field(f"c{i}", self._types[f"c{i}"]) for i in range(len(refs))]
        key = named[partition[0]] if partition else None
        pipeline = self._pipeline(made.kernels, [*passed, *results], key=key)
        return _Made(pipeline, named, bool(partition), made.apart, made.listed)

    def _over_spec(self, over: OverCall, number: int) -> OverSpec | OverUdaSpec:
        if over.call.user is None:
            return self._over.builtin(over, self._aggregate(over.call, number))
        body, spec = self._over.uda(over, f"a{number}", f"r{number}")
        self._ship_arguments(over.call, body, number)
        return spec

    # ------------------------------------------------------------ packed columns

    def _column(self, ref: ColumnRef | None) -> ColumnRef:
        """A column of the stream, by its name."""
        assert ref is not None, "keys are columns"
        return next(c for c in self._scan.schema if c.name.lower() == ref.name.lower())

    def _ship(self, name: str, ref: ColumnRef, type_: Type | None = None) -> None:
        position = [_key(c) for c in self._scan.schema].index(_key(ref))
        self.shipped[name] = (
            (lambda row: row[position])
            if type_ is None
            else (lambda row: None if row[position] is None else float(row[position]))
        )
        self._types[name] = _arrow(type_ or ref.type)

    def _ship_arguments(self, call: AggregateCall, body: Body, number: int) -> None:
        for i, (argument, parameter) in enumerate(zip(call.arguments, body.parameters, strict=True)):
            assert argument.type == parameter.type, "nothing is converted"
            self._ship(f"a{number}_{i}", self._column(argument.column))

    def _aggregate(self, call: AggregateCall, number: int) -> AggregateSpec:
        if call.user is not None:
            assert call.bodies is not None
            body = call.bodies.base or call.bodies.window
            assert body is not None
            self._ship_arguments(call, body, number)
            program = self._over.programs.program(body, CONTENT)
            return content_spec(call, body, program, f"a{number}", f"r{number}")
        row = builtin_aggregate(call.name)
        assert row is not None
        assert call.constants is not None
        is_double = row.arguments in (Arguments.DOUBLES, Arguments.NUMBER)
        fixed = constants(call)
        arguments = [a.column for a in call.arguments if a.column is not None and a not in fixed]
        names = [f"a{number}_{i}" for i in range(len(arguments))]
        for column, argument in zip(names, arguments, strict=True):
            self._ship(column, self._column(argument), DOUBLE if is_double else None)
        return AggregateSpec(
            function_of(row, len(call.arguments)),
            names[0] if names else None,
            f"r{number}",
            _arrow(call.type),
            others=tuple(names[1:]),
            parameters=call.constants,
            distinct=call.distinct,
            ignore_nulls=call.ignore_nulls,
        )

    def _pipeline(
        self,
        kernels: Sequence[KernelSpec],
        output: Sequence[pa.Field],
        *,
        key: str | None,
        generous: bool = False,
    ) -> Pipeline:
        promises = promises_of(self._scan.stream, self._time_type)
        time = _arrow(TIMESTAMP)
        self.shipped.setdefault("one", lambda row: True)
        self._types.setdefault("one", pa.bool_())
        source = Input(
            self._scan.stream.name,
            pa.schema([pa.field(name, self._types[name]) for name in self.shipped]),
            time,
            replace(promises, generous=promises.generous and generous),
            key=key,
        )
        return Pipeline((source,), tuple(kernels), pa.schema(output), time)


def _arrow(type_: Type) -> pa.DataType:
    return arrow_type(type_)
