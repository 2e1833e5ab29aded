"""Arrays in programs as pointers to their first element.

An array in compiled code is seven numbers. For each access Numba emits some thirty instructions, and where a
program stops it releases all arrays one by one: most of the compile time of a program went there, and into
optimizing it away again. A pointer is one number and an access is three instructions. There are no negative
indices and no reference counts: the caller of a program keeps the arrays as long as it runs, and makes larger
ones when it requests more room.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.compiler import Compiler
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from millstream.jit import njit
from millstream.program.failures import StoppedError
from millstream.program.jit_registry import COMPILED, PLAIN, Function, for_programs

# Numba says nothing of their types.
_POINTER: Any = types.CPointer
_MADE: Any = make_array
_INSIDE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}


@intrinsic
def pointer(context: Any, array: Any) -> Any:  # pragma: no cover
    """Return a pointer to the first element of an array."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        return _MADE(signature.args[0])(context, builder, arguments[0]).data

    return _POINTER(array.dtype)(array), written


@intrinsic
def address(context: Any, array: Any) -> Any:  # pragma: no cover
    """Return the address of the first element, which is read anew on each access."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        data = _MADE(signature.args[0])(context, builder, arguments[0]).data
        return builder.ptrtoint(data, ir.IntType(64))

    return types.int64(array), written


class _Apart(Compiler):
    """A compiler for functions whose pointers never alias, except to memory that is never written."""

    def define_pipelines(self) -> Any:
        self.state.flags.noalias = True
        return super().define_pipelines()  # type: ignore[no-untyped-call]


def apart(function: Function) -> Function:
    """Declare that the tables, outputs and tuples of a program are arrays of their own."""
    compiled: Function = njit(pipeline_class=_Apart, **_INSIDE)(function)
    return compiled


def _pointer_to(dtype: Any) -> Any:
    @intrinsic
    def at(context: Any, address: Any) -> Any:  # pragma: no cover
        def written(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
            return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

        return _POINTER(dtype)(types.int64), written

    return at


@intrinsic
def _answer(context: Any, function: Any, place: Any) -> Any:  # pragma: no cover
    """Call a function by its address, with a number."""

    def written(context: Any, builder: Any, signature: Any, arguments: Any) -> ir.Value:
        number = ir.IntType(64)
        function = builder.inttoptr(arguments[0], ir.FunctionType(number, [number]).as_pointer())
        return builder.call(function, [arguments[1]])

    return types.int64(types.int64, types.int64), written


_ANSWER: Any = _answer


@for_programs
def more_room(grow, place):  # type: ignore[no-untyped-def] # pragma: no cover
    """Request larger arrays in place of the one at a place and those that belong to it."""
    if _ANSWER(grow, place) == 0:
        raise StoppedError


def _itself(array: Any) -> Any:
    return array


for _name, _function in (("pointer", pointer), ("address", address), ("apart", apart)):
    COMPILED[_name], PLAIN[_name] = _function, _itself
for _dtype in (types.uint8, types.int32, types.int64, types.float64):
    COMPILED[f"{_dtype}_at"], PLAIN[f"{_dtype}_at"] = _pointer_to(_dtype), _itself
PLAIN["more_room"] = lambda grow, place: grow(place)
