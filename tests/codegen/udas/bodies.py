"""Bodies of aggregates at random: tables of several rows, statements that read what others wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.chance import BOOLEANS, Chance, drawn, shuffled

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
        """Return the tables that can be read."""
        return [*OWN, "inwindow"] if self.window else [*OWN]


def integer(chance: Chance, names: Names) -> str:
    plain = [*names.of("INT"), str(chance.randint(-3, 3)), "NULL", "sqlcode"]
    kinds = (
        ["plain", "plain", "sum", "case", "coalesce", "extreme", "query"] if names.depth > 0 else ["plain"]
    )
    inner = names.deeper()
    match chance.choice(kinds):
        case "sum":
            operator = chance.choice("+-*")
            return f"({integer(chance, inner)} {operator} {integer(chance, inner)})"
        case "case":
            test, yes, no = condition(chance, inner), integer(chance, inner), integer(chance, inner)
            return f"CASE WHEN {test} THEN {yes} ELSE {no} END"
        case "coalesce":
            return f"coalesce({integer(chance, inner)}, {integer(chance, inner)})"
        case "extreme":
            name = chance.choice(["least", "greatest"])
            return f"{name}({integer(chance, inner)}, {integer(chance, inner)})"
        case "query":
            return scalar_query(chance, inner)
    return chance.choice(plain)


def double(chance: Chance, names: Names) -> str:
    value = chance.choice(["1.5e0", "-0.0e0", "2e0", *names.of("DOUBLE")])
    if names.depth > 0 and chance.choice(BOOLEANS):
        return f"({value} {chance.choice('+-*')} {double(chance, names.deeper())})"
    return value


def text(chance: Chance, names: Names) -> str:
    return chance.choice(["'p'", "'q'", "NULL", *names.of("STRING")])


def value(chance: Chance, type_: str, names: Names) -> str:
    return {"INT": integer, "DOUBLE": double, "STRING": text}[type_](chance, names)


def condition(chance: Chance, names: Names) -> str:
    kinds = ["compare", "compare", "compare", "null"]
    if names.depth > 0:
        kinds += ["and", "or", "not", "in", "exists"]
    inner = names.deeper()
    match chance.choice(kinds):
        case "and":
            return f"({condition(chance, inner)} AND {condition(chance, inner)})"
        case "or":
            return f"({condition(chance, inner)} OR {condition(chance, inner)})"
        case "not":
            return f"NOT ({condition(chance, inner)})"
        case "in":
            negated = chance.choice(["", "NOT "])
            table = chance.choice(names.tables)
            columns = [(c, t) for c, t in TABLES[table].items()]
            column, type_ = chance.choice(columns)
            where = ""
            if chance.choice(BOOLEANS):
                columns_ = tuple((f"{table}1.{c}", t) for c, t in columns)
                own = Names(columns_, names.parameters, 0, names.window)
                where = f" WHERE {condition(chance, own)}"
            query = f"SELECT {table}1.{column} FROM {table} AS {table}1{where}"
            return f"{value(chance, type_, inner)} {negated}IN ({query})"
        case "exists":
            table = chance.choice(names.tables)
            own = inner.deeper(*((f"{table}2.{c}", t) for c, t in TABLES[table].items()))
            column = next(iter(TABLES[table]))
            return (
                f"EXISTS (SELECT {table}2.{column} FROM {table} AS {table}2 WHERE {condition(chance, own)})"
            )
        case "null":
            type_ = chance.choice(["INT", "STRING", "DOUBLE"])
            return f"{value(chance, type_, inner)} IS {chance.choice(['', 'NOT '])}NULL"
    type_ = chance.choice(["INT", "INT", "DOUBLE", "STRING"])
    operator = chance.choice(["=", "=", "<>", "<", "<=", ">", ">="])
    return f"{value(chance, type_, inner)} {operator} {value(chance, type_, inner)}"


def scalar_query(chance: Chance, names: Names) -> str:
    table = chance.choice(names.tables)
    columns = [c for c, t in TABLES[table].items() if t == "INT"]
    column = chance.choice(columns)
    function = chance.choice(["count", "min", "max", "sum", "count(*)", "count(DISTINCT"])
    call = (
        function
        if function.endswith("*)")
        else f"{function}{' ' if '(' in function else '('}{table}3.{column})"
    )
    where = ""
    if chance.choice(BOOLEANS):
        own = names.deeper(*((f"{table}3.{c}", t) for c, t in TABLES[table].items()))
        where = f" WHERE {condition(chance, own)}"
    cast = f"CAST({call} AS INT)"
    return f"(SELECT {cast} FROM {table} AS {table}3{where})"


def rows_query(chance: Chance, types: Sequence[str], names: Names, most: int | None = None) -> str:
    """A SELECT of some rows with columns of these types."""
    several = [["t"], ["u"], ["t", "u"], ["t", "t"]]
    tables = chance.choice([*several, ["inwindow"], ["inwindow", "t"]] if names.window else several)
    aliases = [f"{table}{i + 5}" for i, table in enumerate(tables)]
    columns = [
        (f"{alias}.{c}", k)
        for alias, name in zip(aliases, tables, strict=True)
        for c, k in TABLES[name].items()
    ]
    inner = names.deeper(*columns)
    outputs = ", ".join(f"{value(chance, t, inner)} AS o{i}" for i, t in enumerate(types))
    where = f" WHERE {condition(chance, inner)}" if chance.choice(BOOLEANS) else ""
    sources = ", ".join(f"{table} AS {alias}" for table, alias in zip(tables, aliases, strict=True))
    tail = ""
    if chance.choice(BOOLEANS):
        keys = ", ".join(f"{c}{chance.choice(['', ' DESC'])}" for c, _ in columns)
        tail = f" ORDER BY {keys}"
    if most is not None or chance.choice(BOOLEANS):
        tail += f" LIMIT {chance.randint(0, most or 3)}"
    distinct = "DISTINCT " if not tail and chance.choice(BOOLEANS) else ""
    return f"SELECT {distinct}{outputs} FROM {sources}{where}{tail}"


def statement(chance: Chance, parameters: bool = True, window: bool = False, given: str = "") -> str:
    names = Names((), parameters, window=window)
    kind = chance.choice(["insert", "insert where", "select", "update", "delete", "return", "return select"])
    changed = names.tables if kind == "delete" else list(OWN)
    table = chance.choice([table for table in changed if table != given])
    columns = TABLES[table]
    own = Names(tuple(columns.items()), parameters, window=window)
    match kind:
        case "insert":
            return (
                f"INSERT INTO {table} VALUES ({', '.join(value(chance, t, names) for t in columns.values())})"
            )
        case "insert where":
            values = ", ".join(value(chance, t, names) for t in columns.values())
            return f"INSERT INTO {table} VALUES ({values}) WHERE {condition(chance, names)}"
        case "select":
            return f"INSERT INTO {table} {rows_query(chance, list(columns.values()), names, 4)}"
        case "update":
            chosen = shuffled(chance, list(columns))[: chance.randint(1, len(columns))]
            sets = ", ".join(f"{c} = {value(chance, columns[c], own)}" for c in chosen)
            return f"UPDATE {table} SET {sets} WHERE {condition(chance, own)}"
        case "delete":
            return f"DELETE FROM {table} WHERE {condition(chance, own)}"
        case "return":
            return (
                f"INSERT INTO RETURN VALUES ({', '.join(value(chance, t, names) for t in RESULTS.values())})"
            )
    return f"INSERT INTO RETURN {rows_query(chance, list(RESULTS.values()), names)}"


def block(chance: Chance, parameters: bool = True, window: bool = False, given: str = "") -> str:
    statements = [statement(chance, parameters, window, given) for _ in range(chance.randint(1, 4))]
    return " ".join(f"{one};" for one in statements)


def aggregate_text(
    chance: Chance, name: str = "agg", *, window: bool = False, algebraic: str = "", given: str = ""
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
    INITIALIZE : {{ {block(chance, window=window, given=given)} }}
    ITERATE    : {{ {block(chance, window=window, given=given)} }}
    {last} : {{ {block(chance, parameters=False, window=window, given=given)} }}
}};"""


def summing_text(chance: Chance, name: str = "agg", algebraic: str = "") -> str:
    """An aggregate whose state is one row of sums, first and last values: mostly it has an inverse."""
    added = ["x", "1", "x * 2", "CASE WHEN x > 0 THEN 1 ELSE 0 END", "coalesce(x, 7)", "-x"]
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
    for i in range(chance.randint(1, 3)):
        change, initial = chance.choice(kinds[:5] if chance.choice(BOOLEANS) else kinds)
        f, type_ = chance.choice(added), chance.choice(["INT", "BIGINT"])
        columns.append(f"c{i} {type_}")
        first.append(initial.format(f=f))
        sets += [change.format(c=f"c{i}", f=f)] if change else []
    total = " + ".join(f"coalesce({column.split()[0]}, 100)" for column in columns)
    update = f"UPDATE state SET {', '.join(sets)};" if sets else ""
    results = ", ".join(f"{n} {t}" for n, t in RESULTS.items())
    parameters = ", ".join(f"{n} {t}" for n, t in PARAMETERS.items())
    speaks = chance.choice(["", " INSERT INTO RETURN VALUES (x, y, z);"])
    return f"""CREATE AGGREGATE {name}({parameters}) : ({results}){algebraic} {{
    TABLE state({", ".join(columns)});
    INITIALIZE : {{ INSERT INTO state VALUES ({", ".join(first)});{speaks} }}
    ITERATE    : {{ {update}{speaks} }}
    TERMINATE  : {{ INSERT INTO RETURN SELECT CAST({total} AS INT), 0.5e0, 'end' FROM state; }}
}};"""


aggregate = drawn(aggregate_text)
summing = drawn(summing_text)
arguments = st.tuples(
    st.one_of(st.none(), st.integers(-3, 3)),
    st.one_of(st.none(), st.sampled_from([0.0, -0.0, 1.5, 2.0, float("nan"), float("inf"), -1.0])),
    st.one_of(st.none(), st.sampled_from(["p", "q", "r"])),
)
