"""Conversions between types as generated source."""

from __future__ import annotations

from millstream.codegen.core.value_emitter import Value, ValueEmitter
from millstream.ir.typed_nodes import Cast
from millstream.ir.value_kinds import LIMITS, WORD, kind_of, zero
from millstream.program.failures import CONVERSION, OVERFLOW
from millstream.types import BIGINT, Kind, Type


class CastEmitter(ValueEmitter):
    """Emitter of conversions; values that are no numbers at run time are converted by Python."""

    def cast(self, expr: Cast) -> Value:
        given, wanted = expr.argument.type, expr.type
        if expr.gently or WORD in (kind_of(given), kind_of(wanted)):
            if kind_of(given) == kind_of(wanted) == WORD and given == wanted:
                return self.value(expr.argument)
            return self.outside("try_cast" if expr.gently else "cast", (expr.argument,), wanted)
        if given.kind is Kind.NULL:
            return Value(zero(kind_of(wanted)), "True")
        value = self.kept(self.value(expr.argument))
        converted = self._converted(value, given, wanted)
        return self.outside("cast", (expr.argument,), wanted) if converted is None else converted

    def _converted(self, value: Value, given: Type, wanted: Type) -> Value | None:
        """Convert between types that are numbers at run time; None if Python has to convert."""
        code, null = value
        match kind_of(given), kind_of(wanted):
            case ("truth", "integer") if wanted.is_integral:
                return Value(f"int({code})", null)
            case ("truth", "double"):
                return Value(f"float({code})", null)
            case ("integer" | "double", "truth"):
                return Value(f"({code} != 0)", null)
            case ("double", "double"):
                return Value(self.single(code, wanted), null)
            case ("double", "integer") if wanted.is_integral:
                over = self._writer.name("o")
                low, high = LIMITS[wanted.kind]
                lines = [f"{{v}}, {over} = whole({code})"]
                return self.checked(
                    null, wanted, lines, f"{over} or {{v}} < {low} or {{v}} > {high}", OVERFLOW
                )
            case ("integer", "double") if given.is_integral:
                return Value(self.single(f"float({code})", wanted), null)
            case ("integer", "double") if given.kind is Kind.DECIMAL and given.precision <= 15:
                return Value(self.single(f"({code} / {float(10**given.scale)!r})", wanted), null)
            case ("integer", "integer"):
                return self._converted_integer(value, given, wanted)
        return None

    def _converted_integer(self, value: Value, given: Type, wanted: Type) -> Value | None:
        code, null = value
        if given.is_integral and wanted.is_integral:
            if LIMITS[given.kind][1] <= LIMITS[wanted.kind][1]:
                return value
            low, high = LIMITS[wanted.kind]
            return self.checked(
                null, wanted, [f"{{v}} = {code}"], f"{{v}} < {low} or {{v}} > {high}", OVERFLOW
            )
        if wanted.kind is Kind.DECIMAL and (given.is_integral or given.kind is Kind.DECIMAL):
            shift = wanted.scale - (given.scale if given.kind is Kind.DECIMAL else 0)
            if shift >= 0:
                over = self._writer.name("o")
                lines = [f"{{v}}, {over} = times({code}, {10**shift})"]
                return self.checked(null, wanted, lines, f"{over} or {beyond(wanted)}", OVERFLOW)
            lines = [f"{{v}} = rounded({code}, {10**-shift})"]
            return self.checked(null, wanted, lines, beyond(wanted), OVERFLOW)
        if given.kind is Kind.DECIMAL and wanted.is_integral:
            low, high = LIMITS[wanted.kind]
            lines = [f"{{v}} = divided({code}, {10**given.scale})"]
            return self.checked(null, wanted, lines, f"{{v}} < {low} or {{v}} > {high}", OVERFLOW)
        if given.kind is Kind.DATE and wanted.is_time:
            return Value(f"({code} * 86400000000)", null)
        if given.is_time and wanted.kind is Kind.DATE:
            return Value(f"({code} // 86400000000)", null)
        if (given.is_time and wanted.is_time) or given.is_interval:
            return value
        if given.kind is Kind.TIMESTAMP and wanted == BIGINT:
            return Value(f"({code} // 1000000)", null)
        if given.is_integral and wanted.kind is Kind.TIMESTAMP:
            over = self._writer.name("o")
            return self.checked(null, wanted, [f"{{v}}, {over} = times({code}, 1000000)"], over, CONVERSION)
        return None


def beyond(type_: Type) -> str:
    """Return a condition that a value does not fit a decimal type."""
    limit = 10**type_.precision
    return f"{{v}} >= {limit} or {{v}} <= -{limit}"
