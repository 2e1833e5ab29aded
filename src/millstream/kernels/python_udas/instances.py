"""Instances of a Python UDA: the state of one group or partition, and its changes by tuples that come and go.

Returned values are as the user's code returned them; the caller converts them to their type.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from millstream.codegen.udas.uda_compiler import BASE, RUNNING
from millstream.ir.python_aggregate import ANEW, COMPUTED, DELTA, EXPIRE, STATES, instance_of
from millstream.kernels.python_udas.context import Context, Tables, Tuple, Window, as_rows
from millstream.program.python_program import PythonProgram

_NEVER_CHANGE = (int, float, str, bytes, bool, type(None), Decimal, complex)


class Instance(ABC):
    """State of one group. The caller keeps its window, if it has one."""

    @abstractmethod
    def enter(self, values: Tuple, window: Window) -> Sequence[Any]:
        """Take a tuple, which is in the window already; return the values returned at once."""

    def leave(self, values: Tuple, window: Window) -> Sequence[Any]:
        """Remove the oldest tuple, which is in the window still; return the values returned at once."""
        return ()

    @abstractmethod
    def result(self, window: Window) -> Sequence[Any]:
        """Return the values for all tuples so far."""

    @abstractmethod
    def saved(self) -> Any:
        """Return the state to persist, besides the window."""

    @abstractmethod
    def restore(self, saved: Any, window: Window) -> None:
        """Restore a persisted state."""

    def cached(self) -> Any:
        """Return the state to keep in memory between two micro-batches: more, if that saves time."""
        return self.saved()

    def recall(self, cached: Any, window: Window) -> None:
        self.restore(cached, window)


class Methods:
    """Methods of the user, and the form of their results."""

    def __init__(self, program: PythonProgram, subject: Any) -> None:
        self.subject = subject
        self.form = program.form
        made = instance_of(subject)
        # A plain function is the method compute.
        self.compute: Callable[..., Any] = getattr(made, "compute", made)
        self.init: Callable[[], Any] = getattr(made, "init", _nothing)
        self.add: Callable[..., Any] = getattr(made, "add", _nothing)
        self.remove: Callable[..., Any] = getattr(made, "remove", _nothing)
        self.merge: Callable[[Any, Any], Any] = getattr(made, "merge", _nothing)
        self.result: Callable[[Any], Any] = getattr(made, "result", _itself)
        self.terminates = hasattr(made, "terminate")
        self.rows = as_rows(program.parameters)

    def of_content(self, content: Sequence[Tuple], *, is_table: bool = False) -> Sequence[Any]:
        """Return the values for a window that is given as a whole: by its last tuple, and after it.

        For a group of a table, values returned by the other tuples count too.
        """
        if not content:
            return ()
        if self.form == COMPUTED:
            return [self.compute(*(list(column) for column in zip(*content, strict=True)))]
        if self.form != STATES:
            state = self.init()
            for values in content:
                state = self.add(state, *values)
            return [self.result(state)]
        instance, window = FourStateInstance(self), Window()
        returned: list[Any] = []
        for number, values in enumerate(content):
            window.insert(number, number, values)
            returned = [*(returned if is_table else ()), *instance.enter(values, window)]
        return [*returned, *instance.result(window)]


def instances(program: PythonProgram, methods: Methods) -> Callable[[], Instance]:
    """Return a function that creates the instances of a program."""
    if program.mode in (BASE, RUNNING):
        return lambda: FourStateInstance(methods) if program.form == STATES else DeltaInstance(methods)
    if program.way == ANEW:
        return lambda: RecomputedInstance(methods)
    kinds: dict[str, Callable[[Methods], Instance]] = {DELTA: DeltaInstance, EXPIRE: FourStateInstance}
    return lambda: kinds.get(program.way, TwoStacksInstance)(methods)


class DeltaInstance(Instance):
    """A state to which tuples are added, and from which they are removed again."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods
        self._state = methods.init()

    def enter(self, values: Tuple, window: Window) -> Sequence[Any]:
        self._state = self._methods.add(self._state, *values)
        return ()

    def leave(self, values: Tuple, window: Window) -> Sequence[Any]:
        self._state = self._methods.remove(self._state, *values)
        return ()

    def result(self, window: Window) -> Sequence[Any]:
        return (self._methods.result(self._state),)

    def saved(self) -> Any:
        return self._state

    def restore(self, saved: Any, window: Window) -> None:
        self._state = saved


class TwoStacksInstance(Instance):
    """States that can be merged but not subtracted: two stacks, as for built-in aggregates.

    The back is the state of the tuples that came last. The front has a state for each tuple before those: of
    it and all later ones of the front, the oldest on top.
    """

    def __init__(self, methods: Methods) -> None:
        self._methods = methods
        self._front: list[Any] = []
        self._back = methods.init()

    def enter(self, values: Tuple, window: Window) -> Sequence[Any]:
        self._back = self._methods.add(self._back, *values)
        return ()

    def leave(self, values: Tuple, window: Window) -> Sequence[Any]:
        if not self._front:
            self._turn(list(window.tuples()))
            self._back = self._methods.init()
        self._front.pop()
        return ()

    def _turn(self, tuples: Sequence[Tuple]) -> None:
        methods = self._methods
        for values in reversed(tuples):
            state = methods.add(methods.init(), *values)
            self._front.append(methods.merge(state, self._front[-1]) if self._front else state)

    def result(self, window: Window) -> Sequence[Any]:
        if not self._front:
            whole = self._back
        elif len(self._front) == len(window):
            whole = self._front[-1]
        else:
            # merge may change what it is given first, and the front is needed again.
            whole = self._methods.merge(_copied(self._front[-1]), self._back)
        return (self._methods.result(whole),)

    def saved(self) -> Any:
        # How many tuples are in the front is enough: with those of the window it is made again, in the
        # same order, so that results are the same to the last bit.
        return len(self._front)

    def restore(self, saved: Any, window: Window) -> None:
        tuples = list(window.tuples())
        self._turn(tuples[:saved])
        for values in tuples[saved:]:
            self._back = self._methods.add(self._back, *values)

    def cached(self) -> Any:
        return self._front, self._back

    def recall(self, cached: Any, window: Window) -> None:
        self._front, self._back = cached


class FourStateInstance(Instance):
    """Methods INITIALIZE, ITERATE, TERMINATE and EXPIRE of an object for each instance."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods
        self._object = _fresh(methods.subject)
        self._tables = Tables()
        self._begun = False

    def enter(self, values: Tuple, window: Window) -> Sequence[Any]:
        context = Context(window, self._tables, self._methods.rows)
        if self._begun:
            self._object.iterate(context, *values)
        else:
            self._begun = True
            self._object.initialize(context, *values)
        return context.returned

    def leave(self, values: Tuple, window: Window) -> Sequence[Any]:
        context = Context(window, self._tables, self._methods.rows)
        self._object.expire(context)
        return context.returned

    def result(self, window: Window) -> Sequence[Any]:
        if not self._methods.terminates:
            return ()
        context = Context(window, self._tables, self._methods.rows)
        self._object.terminate(context)
        return context.returned

    def saved(self) -> Any:
        return self._object.__getstate__(), self._tables.content

    def restore(self, saved: Any, window: Window) -> None:
        state, tables = saved
        self._begun = True
        self._tables = Tables(tables)
        if hasattr(self._object, "__setstate__"):
            self._object.__setstate__(state)
            return
        for part in state if isinstance(state, tuple) else (state,):
            for name, value in (part or {}).items():
                setattr(self._object, name, value)


class RecomputedInstance(Instance):
    """An instance without state that computes its result from the whole window each time."""

    def __init__(self, methods: Methods) -> None:
        self._methods = methods

    def enter(self, values: Tuple, window: Window) -> Sequence[Any]:
        return ()

    def result(self, window: Window) -> Sequence[Any]:
        return self._methods.of_content(list(window.tuples()))

    def saved(self) -> Any:
        return None

    def restore(self, saved: Any, window: Window) -> None:
        pass


def _fresh(subject: Any) -> Any:
    """Return an object of its own for each instance."""
    made = instance_of(subject)
    return copy.deepcopy(made) if made is subject else made


def _copied(state: Any) -> Any:
    return state if isinstance(state, _NEVER_CHANGE) else copy.deepcopy(state)


def _nothing(*arguments: Any) -> Any:
    raise AssertionError("an absent method is not called")


def _itself(state: Any) -> Any:
    return state
