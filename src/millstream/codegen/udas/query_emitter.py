"""Queries of a body as generated source: loops that pass each row to a consumer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace

from millstream.codegen.core.value_emitter import Value, truth
from millstream.codegen.udas.access_paths import ByHash, access
from millstream.codegen.udas.accumulator_emitters import EveryRow
from millstream.codegen.udas.join_loops import Consume, JoinLoops
from millstream.codegen.udas.local_table_emitter import if_there
from millstream.codegen.udas.multi_row_table import MultiRowTable
from millstream.ir import typed_nodes
from millstream.ir.typed_nodes import Expr
from millstream.ir.value_kinds import DOUBLE, INTEGER, TRUTH, kind_of, zero
from millstream.program.failures import ROWS
from millstream.types import BIGINT, Type


class QueryEmitter(JoinLoops):
    """Emitter of queries."""

    # ------------------------------------------------------------ rows

    def rows(
        self, query: typed_nodes.Query, consume: Consume, *, stop: str = "", any_order: bool = False
    ) -> None:
        self._part(query, consume, stop=stop, any_order=any_order)
        for part in query.united:
            with self._writer.deeper(f"if not {stop}:") if stop else nullcontext():
                self._part(part, consume, stop=stop, any_order=any_order)

    def _part(self, query: typed_nodes.Query, consume: Consume, *, stop: str, any_order: bool) -> None:
        if query.distinct or query.order or query.limit is not None:
            self._arranged(query, consume)
        else:
            self._unarranged(query, consume, stop=stop, any_order=any_order)

    def _unarranged(
        self, query: typed_nodes.Query, consume: Consume, *, stop: str = "", any_order: bool = False
    ) -> None:
        """Write a query without DISTINCT, ORDER BY and LIMIT."""
        if not query.is_grouped:
            self.loops(query, lambda: consume(self._values(query.outputs)), stop=stop, any_order=any_order)
        elif not query.keys and not any(a.distinct for a in query.aggregates):
            self._aggregated(query, consume)
        else:
            self._grouped(query, consume)

    # ------------------------------------------------------------ aggregates of everything

    def _aggregated(self, query: typed_nodes.Query, consume: Consume) -> None:
        if any(aggregate.every for aggregate in query.aggregates):
            self._of_every_row(query, consume)
            return
        values = self._maintained(query)
        if values is None:
            accumulators = [self._body.accumulator(a) for a in query.aggregates]
            for accumulator in accumulators:
                accumulator.begin()

            def each() -> None:
                for accumulator in accumulators:
                    accumulator.add()

            any_order = all(accumulator.takes_any_order for accumulator in accumulators)
            self.loops(query, each, any_order=any_order)
            values = [accumulator.result() for accumulator in accumulators]
        self._after_grouping(query, values, consume)

    def _of_every_row(self, query: typed_nodes.Query, consume: Consume) -> None:
        """Write the rows of the one aggregate of the user's that a query calls."""

        def returned(values: list[Value]) -> None:
            self._after_grouping(query, [values[a.column] for a in query.aggregates], consume)

        rows = EveryRow(query.aggregates[0], self._body, returned)
        rows.begin()
        self.loops(query, rows.add)
        rows.result()

    def _after_grouping(self, query: typed_nodes.Query, values: list[Value], consume: Consume) -> None:
        before, self._body.group = self._body.group, values
        if query.having is not None:
            with self._writer.deeper(f"if {self._expressions.truth(query.having)}:"):
                consume(self._values(query.outputs))
        else:
            consume(self._values(query.outputs))
        self._body.group = before

    def _maintained(self, query: typed_nodes.Query) -> list[Value] | None:
        """Return aggregates of a whole table that are maintained with it."""
        if len(query.scans) != 1 or query.where or query.scans[0].table is None or query.scans[0].left:
            return None
        scan = query.scans[0]
        table = self._body.table_of(scan)
        if not isinstance(table, MultiRowTable):
            return None
        for aggregate in query.aggregates:
            if aggregate.filter is not None or aggregate.distinct or aggregate.user is not None:
                return None
            if aggregate.name not in ("count", "min", "max"):
                return None
            for argument in aggregate.arguments:
                if not isinstance(argument, typed_nodes.Column) or argument.scan != scan.number:
                    return None
                if aggregate.name != "count" and kind_of(argument.type) not in (INTEGER, DOUBLE):
                    return None
            if len(aggregate.arguments) > 1:
                return None
        values = []
        for aggregate in query.aggregates:
            column = next((a.index for a in aggregate.arguments if isinstance(a, typed_nodes.Column)), None)
            if aggregate.name == "count":
                values.append(Value(table.count if column is None else table.known(column)))
            else:
                assert column is not None
                row = table.end(column, ascending=aggregate.name == "min")
                # Rows without a value are not in the order.
                known = Value(table.column(row, column).code)
                values.append(self._expressions.kept(if_there(row, known, aggregate.type)))
        return [self._expressions.kept(value) for value in values]

    # ------------------------------------------------------------ rows put aside

    def gathered(
        self, types: Sequence[Type]
    ) -> tuple[list[tuple[str, str]], str, Callable[[Sequence[Value]], None]]:
        """Declare arrays for rows: their names, that of their number, and a function that adds a row."""
        arrays = [(self._writer.name("g"), self._writer.name("b")) for _ in types]
        count = self._writer.name("c")
        self._writer.line(f"{count} = 0")
        for (values, nulls), type_ in zip(arrays, types, strict=True):
            made = "zero_doubles" if kind_of(type_) == DOUBLE else "zero_integers"
            self._writer.lines(f"{values} = {made}(16)", f"{nulls} = zero_bytes(16)")

        def add(row: Sequence[Value]) -> None:
            first = arrays[0][0] if arrays else ""
            if first:
                with self._writer.deeper(f"if {count} == len({first}):"):
                    for pair in arrays:
                        for name in pair:
                            self._writer.line(f"{name} = grown({name})")
            for (values, nulls), value, type_ in zip(arrays, row, types, strict=True):
                code = f"int({value.code})" if kind_of(type_) == TRUTH else value.code
                self._writer.line(f"{values}[{count}] = {code}")
                self._writer.line(f"{nulls}[{count}] = {truth(value.null)}")
            self._writer.line(f"{count} += 1")

        return arrays, count, add

    def gathered_value(self, arrays: tuple[str, str], row: str, type_: Type) -> Value:
        values, nulls = arrays
        code = f"{values}[{row}]"
        return Value(f"({code} != 0)" if kind_of(type_) == TRUTH else code, f"({nulls}[{row}] != 0)")

    def _keys(self, columns: Sequence[tuple[tuple[str, str], Type, bool, bool]], count: str) -> str:
        """Encode columns as integers in their order, two arrays for each: NULLs and values."""
        keys = self._writer.name("k")
        self._writer.line(f"{keys} = no_keys({2 * len(columns)}, {count})")
        row = self._writer.name("j")
        with self._writer.deeper(f"for {row} in range({count}):"):
            for i, ((values, nulls), type_, descending, nulls_first) in enumerate(columns):
                code = self._in_order(f"{values}[{row}]", type_)
                # The bytes of NULLs are unsigned in compiled code, where minus one of them would be 255.
                with self._writer.deeper(f"if {nulls}[{row}] != 0:"):
                    self._writer.line(f"{keys}[{2 * i}, {row}] = {-1 if nulls_first else 1}")
                with self._writer.deeper("else:"):
                    self._writer.line(f"{keys}[{2 * i + 1}, {row}] = {f'~({code})' if descending else code}")
        return keys

    def _grouped(self, query: typed_nodes.Query, consume: Consume) -> None:
        """Write GROUP BY, and aggregates of DISTINCT values."""
        types = [key.type for key in query.keys]
        arguments = [argument for a in query.aggregates for argument in a.arguments]
        filters = [a.filter for a in query.aggregates if a.filter is not None]
        exprs = [*query.keys, *arguments, *filters]
        all_types = [expr.type for expr in exprs] or [BIGINT]
        arrays, count, add = self.gathered(all_types)
        given: list[Expr] = list(exprs) or [typed_nodes.Constant(0, BIGINT)]
        self.loops(query, lambda: add(self._values(given)))
        groups, firsts = self._writer.name("q"), self._writer.name("f")
        if query.keys:
            keys = self._keys([(arrays[i], t, False, True) for i, t in enumerate(types)], count)
            self._writer.line(f"{groups}, {firsts} = grouped_rows({keys}, {count})")
            number = f"len({firsts})"
        else:
            self._writer.line(f"{groups} = zero_integers({count})")
            number = "1"
        place = len(query.keys)
        filter_place = place + len(arguments)
        results = []
        for aggregate in query.aggregates:
            own = arrays[place : place + len(aggregate.arguments)]
            own_types = [a.type for a in aggregate.arguments]
            place += len(aggregate.arguments)
            chosen = None
            if aggregate.filter is not None:
                chosen = arrays[filter_place]
                filter_place += 1
            results.append(
                self._body.group_accumulator(
                    aggregate, own, own_types, chosen, (groups, number, count), self._keys
                )
            )
        group = self._writer.name("j")
        with self._writer.deeper(f"for {group} in range({number}):"):
            values = [
                self._expressions.kept(self.gathered_value(arrays[i], f"{firsts}[{group}]", t))
                for i, t in enumerate(types)
            ]
            values += [self._expressions.kept(result(group)) for result in results]
            self._after_grouping(query, values, consume)

    def _arranged(self, query: typed_nodes.Query, consume: Consume) -> None:
        """Write DISTINCT, ORDER BY and LIMIT: rows are collected, unless only the first is needed."""
        if query.order and not query.distinct and _is_one(query.limit):
            self._foremost(query, consume)
            return
        types = [output.type for output in query.outputs]
        sorting = [key.expr for key in query.order]
        inner = replace(
            query,
            outputs=(*query.outputs, *sorting),
            distinct=False,
            order=(),
            limit=None,
            united=(),
        )
        all_types = [*types, *(expr.type for expr in sorting)]
        arrays, count, add = self.gathered(all_types)
        self._unarranged(inner, add)
        order = self._writer.name("z")
        if query.distinct:
            keys = self._keys([(arrays[i], t, False, True) for i, t in enumerate(types)], count)
            groups = self._writer.name("q")
            self._writer.line(f"{groups}, {order} = grouped_rows({keys}, {count})")
        else:
            self._writer.line(f"{order} = all_rows({count})")
        if query.order:
            columns = [
                (arrays[len(types) + i], key.expr.type, key.descending, key.nulls_first)
                for i, key in enumerate(query.order)
            ]
            keys = self._keys(columns, count)
            self._writer.line(f"{order} = sorted_rows({keys}, {order})")
        limit = f"len({order})"
        if query.limit is not None:
            value = self._expressions.kept(self._expressions.value(query.limit))
            limit = f"min({limit}, max({value.code}, 0))"
        at, row = self._writer.name("j"), self._writer.name("x")
        with self._writer.deeper(f"for {at} in range({limit}):"):
            self._writer.line(f"{row} = {order}[{at}]")
            consume(
                [
                    self._expressions.kept(self.gathered_value(a, row, t))
                    for a, t in zip(arrays, types, strict=False)
                ]
            )

    def _foremost(self, query: typed_nodes.Query, consume: Consume) -> None:
        """Keep the first row of an order, and of equal rows the first."""
        writer = self._writer
        sorting = [key.expr for key in query.order]
        inner = replace(query, outputs=(*query.outputs, *sorting), order=(), limit=None, united=())
        best = [Value(writer.name("v"), writer.name("n")) for _ in query.outputs]
        ranks = [(writer.name("x"), writer.name("k")) for _ in query.order]
        seen, nullable = writer.name("m"), [False] * len(best)
        writer.line(f"{seen} = False")
        for value, output in zip(best, query.outputs, strict=True):
            writer.lines(f"{value.code} = {zero(kind_of(output.type))}", f"{value.null} = True")
        for pair in ranks:
            writer.lines(*(f"{name} = 0" for name in pair))

        def take(row: list[Value]) -> None:
            places = [
                self._rank(key, value) for key, value in zip(query.order, row[len(best) :], strict=True)
            ]
            pairs = [pair for both in zip(places, ranks, strict=True) for pair in zip(*both, strict=True)]
            earlier = ""
            for own, other in reversed(pairs):
                equally = f" or ({own} == {other} and {earlier})" if earlier else ""
                earlier = f"({own} < {other}{equally})"
            with writer.deeper(f"if not {seen} or {earlier}:"):
                writer.line(f"{seen} = True")
                for i, (name, value) in enumerate(zip(best, row, strict=False)):
                    writer.lines(f"{name.code} = {value.code}", f"{name.null} = {value.null or 'False'}")
                    nullable[i] |= value.null not in ("", "False")
                for own, other in pairs:
                    writer.line(f"{other} = {own}")

        self._unarranged(inner, take)
        with writer.deeper(f"if {seen}:"):
            consume([v if is_null else Value(v.code) for v, is_null in zip(best, nullable, strict=True)])

    def _rank(self, key: typed_nodes.Sorting, value: Value) -> tuple[str, str]:
        """Encode a key as two integers in its order: whether it is NULL, and the value."""
        null = f"{'-' if key.nulls_first else ''}int({value.null})" if value.null else "0"
        code = self._in_order(value.code, key.expr.type)
        code = f"~({code})" if key.descending else code
        code = f"(0 if {value.null} else {code})" if value.null else code
        kept = self._expressions.kept
        return kept(Value(null)).code, kept(Value(code)).code

    def _in_order(self, code: str, type_: Type) -> str:
        """Return an integer in the order of values of a type."""
        match kind_of(type_):
            case "double":
                return f"order_of_double({code})"
            case "word":
                return f"{self._body.labels(type_)}[{code}]"
            case "truth":
                return f"int({code})"
        return code

    # ------------------------------------------------------------ in expressions

    def scalar(self, query: typed_nodes.Query) -> Value:
        type_ = query.outputs[0].type
        if _is_one_row(query):
            found: list[Value] = []
            self.rows(query, lambda values: found.append(self._expressions.kept(values[0])))
            return found[0]
        name, null, seen = (self._writer.name(prefix) for prefix in ("v", "n", "m"))
        self._writer.lines(f"{name} = {zero(kind_of(type_))}", f"{null} = True")
        may_be_many = query.united or not all(map(self._is_of_one_row, query.scans))
        if may_be_many:
            self._writer.line(f"{seen} = False")

        def take(values: list[Value]) -> None:
            if may_be_many:
                with self._writer.deeper(f"if {seen}:"):
                    self._body.fail(ROWS)
                self._writer.line(f"{seen} = True")
            self._writer.lines(f"{name} = {values[0].code}", f"{null} = {values[0].null or 'False'}")

        self.rows(query, take)
        return Value(name, null)

    def exists(self, query: typed_nodes.Query) -> str:
        name = self._writer.name("m")
        self._writer.line(f"{name} = False")
        self.rows(query, lambda values: self._writer.line(f"{name} = True"), stop=name, any_order=True)
        return name

    def among(self, values: tuple[Value, ...], node: typed_nodes.InQuery) -> tuple[str, str]:
        found = self._among_by_hash(values, node)
        if found is not None:
            return found
        hit, unknown = self._writer.name("m"), self._writer.name("n")
        self._writer.lines(f"{hit} = False", f"{unknown} = False")

        def compare(row: list[Value]) -> None:
            equal, differ = [], []
            for own, other, expr in zip(values, row, node.values, strict=True):
                equal.append(self._expressions.test("=", own, other, expr.type))
                differ.append(self._expressions.test("<>", own, other, expr.type))
            with self._writer.deeper(f"if {' and '.join(equal)}:"):
                self._writer.line(f"{hit} = True")
            with self._writer.deeper(f"elif not ({' or '.join(differ)}):"):
                self._writer.line(f"{unknown} = True")

        self.rows(node.query, compare, stop=hit, any_order=True)
        return hit, f"(not {hit} and not {unknown})"

    def _among_by_hash(self, values: tuple[Value, ...], node: typed_nodes.InQuery) -> tuple[str, str] | None:
        """Return a value looked for in a column of a whole table."""
        query = node.query
        if len(values) != 1 or len(query.scans) != 1 or query.where or query.is_grouped or query.united:
            return None
        if query.distinct or query.order or query.limit is not None or query.scans[0].table is None:
            return None
        scan = query.scans[0]
        table = self._body.table_of(scan)
        output = query.outputs[0]
        way = access(
            scan,
            [typed_nodes.Call("=", (output, typed_nodes.Constant(None, output.type)), BIGINT)],
            frozenset(),
            any_order=True,
        )
        if not isinstance(table, MultiRowTable) or not isinstance(way, ByHash):
            return None
        column = way.columns[0]
        hit = self._writer.name("m")
        self._writer.line(f"{hit} = False")
        value = values[0]

        def compare(row: str) -> None:
            own = table.column(row, column)
            test = self._expressions.plain_test("=", own.code, value.code, node.values[0].type)
            with nullcontext() if table.tells_apart((column,)) else self._writer.deeper(f"if {test}:"):
                self._writer.line(f"{hit} = True")

        table.probe((column,), values, compare, hit)
        null = f"({value.null} and {table.count} > 0) or " if value.null else ""
        return hit, f"(not ({null}{hit} or {table.known(column)} < {table.count}))"


def _is_one(limit: Expr | None) -> bool:
    return isinstance(limit, typed_nodes.Constant) and limit.value == 1


def _is_one_row(query: typed_nodes.Query) -> bool:
    """Tell whether a query has exactly one row, whatever there is, and gives it outside of all loops."""
    if query.united or query.limit is not None or query.distinct or query.order or query.having is not None:
        return False
    if query.is_grouped:
        return not query.keys and not any(a.distinct for a in query.aggregates)
    return not query.scans and not query.where
