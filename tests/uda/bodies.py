"""Bodies of aggregates at random: tables of several rows, statements that read what others wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

OWN = {"t": {"a": "INT", "b": "INT", "s": "STRING"}, "u": {"c": "INT", "d": "DOUBLE"}}
TABLES = {**OWN, "inwindow": {"wx": "INT", "wy": "DOUBLE", "wz": "STRING"}}
PARAMETERS = {"x": "INT", "y": "DOUBLE", "z": "STRING"}
RESULTS = {"r": "INT", "w": "DOUBLE", "q": "STRING"}
"""Of the same types as the parameters, so that results can be aggregated again."""


@dataclass(frozen=True)
class Names:
    """Columns that an expression may use, by type; in a window version also those of the window."""

    columns: tuple[tuple[str, str], ...] = ()
    parameters: bool = True
    depth: int = 2
    window: bool = False

    def of(self, type_: str) -> list[str]:
        found = [name for name, kind in self.columns if kind == type_]
        if self.window:
            oldest = [name for name, kind in TABLES["inwindow"].items() if kind == type_]
            places = ["", "2", *(["x"] if self.parameters else [])]
            found += [f"oldest({place}).{name}" for name in oldest for place in places]
        return found + ([n for n, kind in PARAMETERS.items() if kind == type_] if self.parameters else [])

    def deeper(self, *columns: tuple[str, str]) -> Names:
        return Names((*self.columns, *columns), self.parameters, self.depth - 1, self.window)

    @property
    def tables(self) -> list[str]:
        """Those that can be read."""
        return [*OWN, "inwindow"] if self.window else [*OWN]


@st.composite
def integer(draw: st.DrawFn, names: Names) -> str:
    plain = [*names.of("INT"), str(draw(st.integers(-3, 3))), "NULL", "sqlcode"]
    kinds = (
        ["plain", "plain", "sum", "case", "coalesce", "extreme", "query"] if names.depth > 0 else ["plain"]
    )
    inner = names.deeper()
    match draw(st.sampled_from(kinds)):
        case "sum":
            operator = draw(st.sampled_from("+-*"))
            return f"({draw(integer(inner))} {operator} {draw(integer(inner))})"
        case "case":
            test, yes, no = draw(condition(inner)), draw(integer(inner)), draw(integer(inner))
            return f"CASE WHEN {test} THEN {yes} ELSE {no} END"
        case "coalesce":
            return f"coalesce({draw(integer(inner))}, {draw(integer(inner))})"
        case "extreme":
            name = draw(st.sampled_from(["least", "greatest"]))
            return f"{name}({draw(integer(inner))}, {draw(integer(inner))})"
        case "query":
            return draw(scalar_query(inner))
    return draw(st.sampled_from(plain))


@st.composite
def double(draw: st.DrawFn, names: Names) -> str:
    value = draw(st.sampled_from(["1.5e0", "-0.0e0", "2e0", *names.of("DOUBLE")]))
    if names.depth > 0 and draw(st.booleans()):
        return f"({value} {draw(st.sampled_from('+-*'))} {draw(double(names.deeper()))})"
    return value


@st.composite
def text(draw: st.DrawFn, names: Names) -> str:
    return draw(st.sampled_from(["'p'", "'q'", "NULL", *names.of("STRING")]))


@st.composite
def value(draw: st.DrawFn, type_: str, names: Names) -> str:
    return draw({"INT": integer, "DOUBLE": double, "STRING": text}[type_](names))


@st.composite
def condition(draw: st.DrawFn, names: Names) -> str:
    kinds = ["compare", "compare", "compare", "null"]
    if names.depth > 0:
        kinds += ["and", "or", "not", "in", "exists"]
    inner = names.deeper()
    match draw(st.sampled_from(kinds)):
        case "and":
            return f"({draw(condition(inner))} AND {draw(condition(inner))})"
        case "or":
            return f"({draw(condition(inner))} OR {draw(condition(inner))})"
        case "not":
            return f"NOT ({draw(condition(inner))})"
        case "in":
            negated = draw(st.sampled_from(["", "NOT "]))
            table = draw(st.sampled_from(names.tables))
            columns = [(c, t) for c, t in TABLES[table].items()]
            column, type_ = draw(st.sampled_from(columns))
            where = ""
            if draw(st.booleans()):
                columns_ = tuple((f"{table}1.{c}", t) for c, t in columns)
                own = Names(columns_, names.parameters, 0, names.window)
                where = f" WHERE {draw(condition(own))}"
            query = f"SELECT {table}1.{column} FROM {table} AS {table}1{where}"
            return f"{draw(value(type_, inner))} {negated}IN ({query})"
        case "exists":
            table = draw(st.sampled_from(names.tables))
            own = inner.deeper(*((f"{table}2.{c}", t) for c, t in TABLES[table].items()))
            column = next(iter(TABLES[table]))
            return f"EXISTS (SELECT {table}2.{column} FROM {table} AS {table}2 WHERE {draw(condition(own))})"
        case "null":
            type_ = draw(st.sampled_from(["INT", "STRING", "DOUBLE"]))
            return f"{draw(value(type_, inner))} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    type_ = draw(st.sampled_from(["INT", "INT", "DOUBLE", "STRING"]))
    operator = draw(st.sampled_from(["=", "=", "<>", "<", "<=", ">", ">="]))
    return f"{draw(value(type_, inner))} {operator} {draw(value(type_, inner))}"


@st.composite
def scalar_query(draw: st.DrawFn, names: Names) -> str:
    table = draw(st.sampled_from(names.tables))
    columns = [c for c, t in TABLES[table].items() if t == "INT"]
    column = draw(st.sampled_from(columns))
    function = draw(st.sampled_from(["count", "min", "max", "sum", "count(*)", "count(DISTINCT"]))
    call = (
        function
        if function.endswith("*)")
        else f"{function}{' ' if '(' in function else '('}{table}3.{column})"
    )
    where = ""
    if draw(st.booleans()):
        own = names.deeper(*((f"{table}3.{c}", t) for c, t in TABLES[table].items()))
        where = f" WHERE {draw(condition(own))}"
    cast = f"CAST({call} AS INT)"
    return f"(SELECT {cast} FROM {table} AS {table}3{where})"


@st.composite
def rows_query(draw: st.DrawFn, types: Sequence[str], names: Names, most: int | None = None) -> str:
    """A SELECT of some rows with columns of these types."""
    several = [["t"], ["u"], ["t", "u"], ["t", "t"]]
    tables = draw(st.sampled_from([*several, ["inwindow"], ["inwindow", "t"]] if names.window else several))
    aliases = [f"{table}{i + 5}" for i, table in enumerate(tables)]
    columns = [
        (f"{alias}.{c}", k)
        for alias, name in zip(aliases, tables, strict=True)
        for c, k in TABLES[name].items()
    ]
    inner = names.deeper(*columns)
    outputs = ", ".join(f"{draw(value(t, inner))} AS o{i}" for i, t in enumerate(types))
    where = f" WHERE {draw(condition(inner))}" if draw(st.booleans()) else ""
    sources = ", ".join(f"{table} AS {alias}" for table, alias in zip(tables, aliases, strict=True))
    tail = ""
    if draw(st.booleans()):
        keys = ", ".join(f"{c}{draw(st.sampled_from(['', ' DESC']))}" for c, _ in columns)
        tail = f" ORDER BY {keys}"
    if most is not None or draw(st.booleans()):
        tail += f" LIMIT {draw(st.integers(0, most or 3))}"
    distinct = "DISTINCT " if not tail and draw(st.booleans()) else ""
    return f"SELECT {distinct}{outputs} FROM {sources}{where}{tail}"


@st.composite
def statement(draw: st.DrawFn, parameters: bool = True, window: bool = False, given: str = "") -> str:
    names = Names((), parameters, window=window)
    kind = draw(
        st.sampled_from(["insert", "insert where", "select", "update", "delete", "return", "return select"])
    )
    changed = names.tables if kind == "delete" else list(OWN)
    table = draw(st.sampled_from([table for table in changed if table != given]))
    columns = TABLES[table]
    own = Names(tuple(columns.items()), parameters, window=window)
    match kind:
        case "insert":
            return (
                f"INSERT INTO {table} VALUES ({', '.join(draw(value(t, names)) for t in columns.values())})"
            )
        case "insert where":
            values = ", ".join(draw(value(t, names)) for t in columns.values())
            return f"INSERT INTO {table} VALUES ({values}) WHERE {draw(condition(names))}"
        case "select":
            return f"INSERT INTO {table} {draw(rows_query(list(columns.values()), names, 4))}"
        case "update":
            chosen = draw(st.lists(st.sampled_from(list(columns)), min_size=1, unique=True))
            sets = ", ".join(f"{c} = {draw(value(columns[c], own))}" for c in chosen)
            return f"UPDATE {table} SET {sets} WHERE {draw(condition(own))}"
        case "delete":
            return f"DELETE FROM {table} WHERE {draw(condition(own))}"
        case "return":
            return f"INSERT INTO RETURN VALUES ({', '.join(draw(value(t, names)) for t in RESULTS.values())})"
    return f"INSERT INTO RETURN {draw(rows_query(list(RESULTS.values()), names))}"


@st.composite
def block(draw: st.DrawFn, parameters: bool = True, window: bool = False, given: str = "") -> str:
    statements = draw(st.lists(statement(parameters, window, given), min_size=1, max_size=4))
    return " ".join(f"{one};" for one in statements)


@st.composite
def aggregate(
    draw: st.DrawFn, name: str = "agg", *, window: bool = False, algebraic: str = "", given: str = ""
) -> str:
    """The text of CREATE [WINDOW] AGGREGATE; the table ``given`` is in the catalog and only read."""
    declared = TABLES if window else OWN
    tables = "\n".join(
        f"    TABLE {table}({', '.join(f'{c} {t}' for c, t in columns.items())});"
        for table, columns in declared.items()
        if table != given
    )
    parameters = ", ".join(f"{n} {t}" for n, t in PARAMETERS.items())
    results = ", ".join(f"{n} {t}" for n, t in RESULTS.items())
    last = "EXPIRE    " if window else "TERMINATE "
    return f"""CREATE {"WINDOW " if window else ""}AGGREGATE {name}({parameters}) : ({results}){algebraic} {{
{tables}
    INITIALIZE : {{ {draw(block(window=window, given=given))} }}
    ITERATE    : {{ {draw(block(window=window, given=given))} }}
    {last} : {{ {draw(block(parameters=False, window=window, given=given))} }}
}};"""


@st.composite
def summing(draw: st.DrawFn, name: str = "agg", algebraic: str = "") -> str:
    """An aggregate whose state is one row of sums, first and last values: mostly it has an inverse."""
    added = st.sampled_from(["x", "1", "x * 2", "CASE WHEN x > 0 THEN 1 ELSE 0 END", "coalesce(x, 7)", "-x"])
    kinds = [
        ("{c} = {c} + {f}", "{f}"),
        ("{c} = {f} + {c}", "{f}"),
        ("{c} = {f}", "0"),
        ("", "{f}"),
        # These have no inverse.
        ("{c} = {c} * 2 + {f}", "{f}"),
        ("{c} = {c} + {f}", "0"),
        ("{c} = greatest({c}, {f})", "{f}"),
    ]
    columns, first, sets = [], [], []
    for i in range(draw(st.integers(1, 3))):
        change, initial = draw(st.sampled_from(kinds[:5] if draw(st.booleans()) else kinds))
        f, type_ = draw(added), draw(st.sampled_from(["INT", "BIGINT"]))
        columns.append(f"c{i} {type_}")
        first.append(initial.format(f=f))
        sets += [change.format(c=f"c{i}", f=f)] if change else []
    total = " + ".join(f"coalesce({column.split()[0]}, 100)" for column in columns)
    update = f"UPDATE state SET {', '.join(sets)};" if sets else ""
    results = ", ".join(f"{n} {t}" for n, t in RESULTS.items())
    parameters = ", ".join(f"{n} {t}" for n, t in PARAMETERS.items())
    speaks = draw(st.sampled_from(["", " INSERT INTO RETURN VALUES (x, y, z);"]))
    return f"""CREATE AGGREGATE {name}({parameters}) : ({results}){algebraic} {{
    TABLE state({", ".join(columns)});
    INITIALIZE : {{ INSERT INTO state VALUES ({", ".join(first)});{speaks} }}
    ITERATE    : {{ {update}{speaks} }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT CAST({total} AS INT), 0.5e0, 'end' FROM state; }}
}};"""


arguments = st.tuples(
    st.one_of(st.none(), st.integers(-3, 3)),
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, 2.0, float("nan"), float("inf"), -1.0])),
    st.one_of(st.none(), st.sampled_from(["p", "q", "r"])),
)
