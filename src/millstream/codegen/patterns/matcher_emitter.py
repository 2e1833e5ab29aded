"""Generated source of the matcher's loop: the effect of a tuple on the attempts of its partition."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from millstream.codegen.patterns.attempt_emitter import NEW, NO_ATTEMPT, AttemptEmitter
from millstream.codegen.patterns.attempt_state import AttemptRequirements, StateColumn
from millstream.codegen.patterns.condition_cache import ConditionCache
from millstream.codegen.patterns.equivalent_attempts import differences
from millstream.codegen.patterns.match_emitter import MatchEmitter
from millstream.codegen.patterns.pattern_scope import ElementPhase, PatternScope
from millstream.codegen.udas.body_emitter import ProgramContext
from millstream.inference.condition_shape import at_most, measures_in, own_tuple
from millstream.inference.condition_text import ConditionText
from millstream.inference.ops_shift_next import TuplePosition, barren, facts_of
from millstream.ir.pattern import Pattern
from millstream.ir.typed_nodes import Expr
from millstream.ir.value_kinds import TRUTH, kind_of

WAITING, IN_LAST_STAR = -1, -2
"""States of an attempt besides elements: complete and waiting, or inside a star, the last one first."""


class MatcherEmitter:
    """Emitter of the functions of a program.

    The state of an attempt is the number of the element that its next tuple is offered to, or a negative
    number inside a star, or when it is complete and waits.
    """

    def __init__(
        self,
        pattern: Pattern,
        shared: ProgramContext,
        needs: AttemptRequirements,
        name: str,
        *,
        ops: bool,
        counted: bool,
    ) -> None:
        self._pattern, self._shared, self._needs = pattern, shared, needs
        self._barren = barren(facts_of(pattern)) if ops else frozenset()
        self._code = PatternScope(pattern, shared, needs, name, counted=counted)
        self._writer = shared.writer
        self._attempts, self._matches = AttemptEmitter(self._code, shared), MatchEmitter(self._code)
        self._state = self._attempts.state
        self._count = len(pattern.elements)
        self._last = self._count - 1
        self._differences = {
            j: cells for j in range(self._count) if (cells := differences(j, self._code)) is not None
        }
        self._cache = ConditionCache(pattern, self._code, ops=ops)

    # ------------------------------------------------------------ functions

    def functions(self) -> None:
        self._shared.texts.append("")  # errors without a condition
        self._run()
        self._writer.line("")
        self._finish()

    def _run(self) -> None:
        writer = self._writer
        writer.line("def run(count, codes, instants, origins, numbers, span, fail, arrays):")
        writer.lines("    UNPACK", "    out = 0")
        with writer.deeper():
            with writer.deeper("for i in range(span[0], count):"):
                # A tuple starts at most one attempt. The caller makes room for more, and calls again.
                with writer.deeper(f"if {self._attempts.full}:"):
                    writer.lines("span[0] = i", "return out, returned")
                if self._shared.outside:
                    writer.line("fail[2] = i")
                writer.line("k = codes[i]")
                self._read()
                self._cache.reset()
                writer.lines("taken = False", "freed = False", "barred = False", "row = at_head[k]")
                writer.lines(*(f"near{j} = -1" for j in self._differences))
                self._attempts.break_one()
                self._offer()
                self._start()
                self._remember()
            writer.lines("span[0] = count", "return out, returned")

    def _finish(self) -> None:
        """Emit the end of the input: trailing stars are complete, and all other attempts fail."""
        writer = self._writer
        writer.line("def finish(count, codes, span, fail, arrays):")
        writer.lines("    UNPACK", "    out = 0")
        self._attempts.blame("row")
        with writer.deeper():
            with writer.deeper("for i in range(count):"):
                writer.lines("k = codes[i]", "row = at_head[k]")
                with writer.deeper("while row >= 0:"):
                    self._attempts.fail_if_broken()
                    writer.lines(f"state = {self._state.of('row')}", "verdict = 1")
                    with writer.deeper(f"if state == {WAITING}:"):
                        self._matches.emit_aside()
                    if self._pattern.elements[self._last].star:
                        with writer.deeper(f"elif state == {self._inside(self._last)}:"):
                            self._complete(self._last)
                    self._attempts.drop()
                    writer.line("row = at_head[k]")
                    with writer.deeper("if verdict != 1:"), writer.deeper("while row >= 0:"):
                        self._attempts.drop()
                        writer.line("row = at_head[k]")
                writer.line("alive[k] = 0")
            writer.line("return out, returned")

    # ------------------------------------------------------------ the tuple

    def _read(self) -> None:
        """Emit the reading of the tuple's columns; the predecessors of the first tuple are NULL."""
        writer, pattern = self._writer, self._pattern
        for number, index in enumerate(self._needs.columns):
            is_truth = kind_of(pattern.fields[index].type) == TRUTH
            writer.line(f"a{number} = p{number}[i]{' != 0' if is_truth else ''}")
            writer.line(f"z{number} = pn{number}[i] != 0")
        with writer.deeper("if pt_rows[k] == 0:"):
            writer.line("pt_rows[k] = 1")
            for cell in self._history():
                writer.line(f"{cell.null_of('k')} = 1")

    def _history(self) -> Iterator[StateColumn]:
        for index, depth in self._needs.back.items():
            for back in range(1, depth + 1):
                yield self._code.history(index, back)

    # ------------------------------------------------------------ attempts

    def _offer(self) -> None:
        """Emit the loop that offers the tuple to the attempts, oldest first."""
        writer = self._writer
        self._attempts.blame("row")
        with writer.deeper("while row >= 0:"):
            writer.lines("after = at_next[row]", f"state = {self._state.of('row')}")
            writer.lines("offered = state", "verdict = 0", "changed = False")
            stars = [j for j, element in enumerate(self._pattern.elements) if element.star]
            self._cache.find_out({j: f"state == {self._inside(j)}" for j in stars})
            for word, j in zip(_words(), stars, strict=False):
                with writer.deeper(f"{word} state == {self._inside(j)}:"):
                    self._go_on(j)
            self._cache.find_out({j: f"offered == {j}" for j in range(1, self._count)})
            for word, j in zip(_words(), range(1, self._count), strict=False):
                with writer.deeper(f"{word} offered == {j}:"):
                    self._begin(j)
            with writer.deeper("if changed and (verdict == 0 or verdict == 3):"):
                self._attempts.touch()
            with writer.deeper("if verdict == 1:"):
                self._attempts.drop()
            with writer.deeper("elif verdict > 1:"):
                # Younger attempts start inside the match, or inside an older one.
                writer.lines("complete = row if verdict == 3 else -1", "row = at_tail[k]")
                with writer.deeper("while row != complete:"):
                    self._attempts.drop()
                    writer.line("row = at_tail[k]")
                writer.line("after = -1")
            writer.line("row = after")
        # Attempts that waited are matches once all older ones have failed.
        writer.line("row = at_head[k]")
        with writer.deeper(f"while row >= 0 and {self._state.of('row')} == {WAITING}:"):
            self._matches.emit_aside()
            self._attempts.drop()
            writer.line("row = at_head[k]")
        self._attempts.fail_if_broken()

    @contextmanager
    def _taking(self, j: int, phase: ElementPhase, allocate: bool = False) -> Iterator[None]:
        """Emit the conditions of an element; the body is for tuples that hold, which its measures include."""
        code = self._code
        asked = self._cache.of[j]
        rest = asked.rest
        own = code.measures_of(j)
        running = [m for m in own if any(m in measures_in(c) for c in rest)]
        measured = [c for c in rest if measures_in(c) & set(running)]
        measure = code.begin_measure if phase is ElementPhase.BEGUN else code.go_on_with_measure
        with ExitStack() as stack:
            stack.enter_context(code.at(phase, j, "row"))
            stack.enter_context(self._writer.deeper(f"if {asked.holds}:"))
            code.about(f"the conditions of {self._pattern.elements[j].name}")
            code.count(rest)
            self._holding(stack, [c for c in rest if c not in measured])
            if allocate:
                self._attempts.allocate()
                self._writer.line("begun = 1")
                self._attempts.blame("row", begins=True)
            for m in running:
                measure(m)
            self._holding(stack, measured)
            for m in own:
                if m not in running:
                    measure(m)
            if not self._pattern.elements[j].star:
                code.end_measures(j)
            if self._pattern.each and j == self._last:
                self._give_out(first=phase is ElementPhase.BEGUN and j == 0)
            yield

    def _holding(self, stack: ExitStack, conditions: Iterable[Expr], written: Iterable[Expr] = ()) -> None:
        """Emit tests of conditions; ``written`` are their forms in the pattern."""
        conditions = list(conditions)
        for condition, original in zip(conditions, list(written) or conditions, strict=True):
            self._code.about(" ".join(ConditionText(self._pattern).of(original).split()))
            stack.enter_context(self._writer.deeper(f"if {self._code.expressions.truth(condition)}:"))

    def _go_on(self, j: int) -> None:
        """Emit the effect of a tuple on an attempt inside a star: the star takes it, or is complete."""
        writer, code = self._writer, self._code
        writer.lines("offered = -1", "held = False")
        with self._taking(j, ElementPhase.GOING_ON):
            writer.line("held = True")
            own = code.measures_of(j)
            for m in own:
                code.measures[m].keep()
            if own:
                writer.line("changed = True")
            for condition in self._pattern.elements[j].final:
                match at_most(condition, self._pattern):
                    case (m, always) if m in own:
                        # A count that is too large will not become smaller.
                        code.count([always])
                        with writer.deeper(f"if not ({code.expressions.truth(always)}):"):
                            writer.line("verdict = 1")
            self._took(TuplePosition(j, 1))
        with writer.deeper("if not held:"):
            self._complete(j)

    def _give_out(self, *, first: bool) -> None:
        """Emit the row of a tuple that the last star takes; all attempts behind the oldest are inside it.

        No other star stands before it, so an older attempt is in the last star, too, and cannot fail.
        """
        values, stamp = self._matches.results(), self._matches.stamp(star=False)
        is_oldest = "at_head[k] == row"
        if first:
            is_oldest = f"at_head[k] < 0 or (begun == 1 and {is_oldest})"
        with self._writer.deeper(f"if {is_oldest}:"):
            self._matches.emit(values, stamp)

    def _inside(self, j: int) -> int:
        if self._pattern.each and j == self._last:
            return IN_LAST_STAR - self._count  # its tuples have been given out: it does not wait
        return IN_LAST_STAR - (self._last - j)

    def _took(self, position: TuplePosition) -> None:
        if position.element in self._differences:
            self._writer.line(f"near{position.element} = row")
        if position in self._barren:
            self._writer.line("barred = True")

    def _complete(self, j: int) -> None:
        """Emit the end of a star; the next element gets the tuple that ended it."""
        writer, code = self._writer, self._code
        writer.line("verdict = 1")
        with code.at(ElementPhase.COMPLETE, j, "row"), ExitStack() as stack:
            code.about(f"the conditions of {self._pattern.elements[j].name}")
            code.end_measures(j)
            code.count(self._pattern.elements[j].final)
            self._holding(stack, self._pattern.elements[j].final)
            if j == self._last and self._pattern.each:
                writer.lines("verdict = 2", "freed = True")
            elif j == self._last:
                self._matched(star=True)
            else:
                code.keep_tuple(j, "row", first=False)
                writer.lines("verdict = 0", f"offered = {j + 1}")

    def _begin(self, j: int) -> None:
        """Emit the offer of a tuple to an element as its first."""
        writer = self._writer
        element = self._pattern.elements[j]
        writer.line("verdict = 1")
        with self._taking(j, ElementPhase.BEGUN), ExitStack() as stack:
            if not element.star:
                self._code.count(element.final)
                self._holding(stack, element.final)
            if j == self._last and not element.star:
                self._matched(star=False)
                return
            self._keep(j)
            if j in self._differences:
                # An older equivalent attempt is enough.
                same = [f"near{j} >= 0", *(cell.same("row", f"near{j}") for cell in self._differences[j])]
                stack.enter_context(writer.deeper(f"if not ({' and '.join(same)}):"))
            writer.line("verdict = 0")
            self._took(TuplePosition(j))

    def _keep(self, j: int) -> None:
        """Emit the storage of the first tuple of an element, as far as it is read later."""
        star = self._pattern.elements[j].star
        self._code.keep_tuple(j, "row", first=star)
        for m in self._code.measures_of(j):
            self._code.measures[m].keep()
        self._writer.line(f"{self._state.of('row')} = {self._inside(j) if star else j + 1}")
        self._writer.line("changed = True")

    # ------------------------------------------------------------ the beginning of an attempt

    def _start(self) -> None:
        writer, element = self._writer, self._pattern.elements[0]
        asked = "begins and not taken" + (" and not barred" if self._barren else "")
        if element.star:
            # It is maximal on the left.
            asked += f" and (freed or {self._led.of('k')} == 0)"
        early = any(self._code.measures[m].has_tables for m in self._code.measures_of(0))
        writer.line("begun = 0")
        self._cache.find_out({0: "not taken" if element.star else asked})
        self._attempts.blame(str(NEW), begins=True)
        with writer.deeper(f"if {asked}:"), self._taking(0, ElementPhase.BEGUN, early), ExitStack() as stack:
            if not element.star:
                self._code.count(element.final)
                self._holding(stack, element.final)
            if self._count == 1 and not element.star:
                self._matches.emit(self._matches.results(), self._matches.stamp(star=False))
                writer.line("taken = True")
            else:
                if not early:
                    self._attempts.allocate()
                self._keep(0)
                writer.line("begun = 2")
        if early:
            # Rows of measures belong to an attempt, which has failed.
            with writer.deeper("if begun == 1:"):
                self._attempts.drop()

    @property
    def _led(self) -> StateColumn:
        """The column that marks a last tuple that the leading star takes and no match has taken."""
        return self._needs.partition.cell("led")

    # ------------------------------------------------------------ matches

    def _matched(self, *, star: bool) -> None:
        """Emit the completion of an attempt: the oldest is a match, others wait."""
        writer = self._writer
        values, stamp = self._matches.results(), self._matches.stamp(star=star)
        with writer.deeper("if at_head[k] == row:"):
            self._matches.emit(values, stamp)
            writer.line("verdict = 2")
        with writer.deeper("else:"):
            self._matches.put_aside(values, stamp)
            writer.lines(f"{self._state.of('row')} = {WAITING}", "changed = True", "verdict = 3")
        writer.line("freed = True" if star else "taken = True")

    # ------------------------------------------------------------ history

    def _remember(self) -> None:
        writer, code = self._writer, self._code
        self._attempts.blame(str(NO_ATTEMPT))
        needed = ["at_head[k] >= 0"]
        if self._pattern.elements[0].star:
            writer.line("led = 0")
            with ExitStack() as stack:
                stack.enter_context(writer.deeper("if not taken:"))
                self._satisfies_leading_star(stack)
                writer.line("led = 1")
            writer.line(f"{self._led.of('k')} = led")
            needed.append("led != 0")
        for index, depth in self._needs.back.items():
            for back in range(depth, 1, -1):
                older, newer = code.history(index, back), code.history(index, back - 1)
                writer.lines(
                    f"{older.of('k')} = {newer.of('k')}", f"{older.null_of('k')} = {newer.null_of('k')}"
                )
            code.history(index, 1).put(writer, "k", code.now(index, 0))
        if self._pattern.elements[self._last].star:
            self._matches.remember_stamp()
        kept = "1" if self._needs.back else f"1 if {' or '.join(needed)} else 0"
        writer.line(f"alive[k] = {kept}")

    def _satisfies_leading_star(self, stack: ExitStack) -> None:
        """Emit the tests of the leading star's conditions without aggregates."""
        asked = self._cache.of[0]
        stack.enter_context(self._writer.deeper(f"if {asked.holds}:"))
        stack.enter_context(self._code.at(ElementPhase.ASKED))
        own = [(own_tuple(condition, self._pattern, 0, alone=True), condition) for condition in asked.rest]
        left = [(condition, written) for condition, written in own if condition is not None]
        conditions = [condition for condition, _ in left]
        self._code.count(conditions)
        self._holding(stack, conditions, [written for _, written in left])


def _words() -> Iterator[str]:
    yield "if"
    while True:
        yield "elif"
