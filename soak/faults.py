"""Mutation check: faults are planted one at a time in a copy of the tree, and the tests have to find each.

A fault is a slip that an engineer could make. Planting it must change results, or a file or code that users
see. The tests that are likely to find it run first, then all others.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from soak.report import Finding

_ROOT = Path(__file__).parents[1]
_PATIENCE_SECONDS = 1800.0
_FOREIGN = ("SPARK_HOME", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE")
"""Variables that `make test` keeps away from the tests too."""

_PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-n", "2")
_COMPILE = (
    sys.executable,
    "-c",
    "from millstream.stage.precompile_stages import warm_up; warm_up(print)",
)
_PASSED, _FAILED, _STOPPED = 0, 1, 2
"""Exit codes of pytest, which two workers stop with after the first failure.

All others are about the run and not about the tests.
"""

_FAILURE = re.compile(r"^(?:FAILED|ERROR) (\S+?(?:\[.*?\])?)(?= - |$)", re.MULTILINE)


@dataclass(frozen=True)
class Fault:
    """A change of one place in a source.

    ``file`` is below src/millstream, and has the text ``old`` exactly once. ``near`` are files or folders
    below tests, whose tests run first.
    """

    name: str
    area: str
    file: str
    old: str
    new: str
    near: tuple[str, ...]


FAULTS = (
    # ---------------------------------------------------------------- kernels
    Fault(
        "session-closed-at-its-reach",
        "kernels",
        "kernels/windows/session_or_predicate_assigner.py",
        "(sessions and reach[part] < time)",
        "(sessions and reach[part] <= time)",
        ("kernels/test_kinds.py", "engine/test_lines.py"),
    ),
    Fault(
        "landmark-forgets-its-day",
        "kernels",
        "kernels/windows/landmark_assigner.py",
        'Change(meta={"done": self._done, "reached": self._reached, "day": self._day})',
        'Change(meta={"done": self._done, "reached": self._reached})',
        ("kernels/test_kinds.py", "engine/test_combinations.py"),
    ),
    Fault(
        "over-rows-saved-twice",
        "kernels",
        "kernels/over/frame_aggregates.py",
        "            self._start_over()\n            self._import(table)\n            self._saved = saved\n",
        "            self._saved = saved\n            self._start_over()\n            self._import(table)\n",
        ("kernels/test_over.py", "engine/test_chains.py"),
    ),
    Fault(
        "null-in-sum-of-long-decimals",
        "kernels",
        "kernels/aggregates/integer_sum.py",
        "        high, low, valid = halves(column)\n"
        "        # A NULL adds 0, and not -2**63.\n"
        '        return (high if self._half == "high" else np.where(valid, low, 0)), NO_INTEGERS\n',
        "        high, low, _ = halves(column)\n"
        '        return (high if self._half == "high" else low), NO_INTEGERS\n',
        ("kernels/test_types.py",),
    ),
    Fault(
        "copies-numbered-from-one",
        "kernels",
        "kernels/relational/distinct_and_set_operations.py",
        "copies[count] = shown[key] - 1 if grows else shown[key]",
        "copies[count] = shown[key]",
        ("kernels/test_incremental_relation.py", "engine/test_current_results.py"),
    ),
    Fault(
        "match-overtaken-by-watermark",
        "kernels",
        "kernels/patterns/matcher.py",
        "Frontier(time, earliest[1] - 1, frontier.newest)",
        "Frontier(time, earliest[1], frontier.newest)",
        ("kernels/test_pattern.py", "codegen/patterns/test_together.py"),
    ),
    Fault(
        "first-version-of-a-row-restored",
        "kernels",
        "kernels/udas/machine_state.py",
        "    _, last = np.unique(ids[::-1], return_index=True)\n"
        "    return table.take(pa.array(len(ids) - 1 - last))\n",
        "    _, last = np.unique(ids, return_index=True)\n    return table.take(pa.array(last))\n",
        ("kernels/test_user_aggregates.py", "kernels/test_user_windows.py"),
    ),
    Fault(
        "merge-changes-the-front",
        "kernels",
        "kernels/python_udas/instances.py",
        "self._methods.merge(_copied(self._front[-1]), self._back)",
        "self._methods.merge(self._front[-1], self._back)",
        ("kernels/test_python_aggregates.py",),
    ),
    # ---------------------------------------------------------------- logical plans and rules
    Fault(
        "outer-join-filters-its-kept-side",
        "plan",
        "plan/rules/push_condition_to_join_side.py",
        '"left": ("right",),',
        '"left": ("left", "right"),',
        ("plan/test_window_rules.py", "engine/test_maintained_queries.py"),
    ),
    Fault(
        "aggregates-taken-for-append-only",
        "plan",
        "plan/update_patterns.py",
        "    replaces = any(isinstance(below, nodes.WindowAggregate) for below in maintained(node))\n"
        "    return not replaces and update_pattern(node) is UpdatePattern.MONOTONIC\n",
        "    return update_pattern(node) is UpdatePattern.MONOTONIC\n",
        ("plan/test_update_patterns.py", "engine/test_maintained_queries.py"),
    ),
    Fault(
        "early-report-stamped-at-its-end",
        "plan",
        "plan/time_attributes.py",
        "isinstance(windowed.window, RowWindow) or windowed.window.emit_every is not None:",
        "isinstance(windowed.window, RowWindow):",
        ("runtime/test_attributes.py",),
    ),
    Fault(
        "end-of-landmark-included",
        "plan",
        "plan/join_conditions.py",
        '(window.end, "<")',
        '(window.end, "<=")',
        ("engine/test_maintained_queries.py", "engine/test_current_results.py"),
    ),
    # ---------------------------------------------------------------- physical plans and sharing
    Fault(
        "branch-numbered-by-query",
        "physical",
        "physical/scan_sharing.py",
        "place = shared.members.index(number)",
        "place = number",
        ("physical",),
    ),
    Fault(
        "null-keys-meet",
        "physical",
        "physical/operators/change_columns.py",
        "_absent(columns, number + 1)",
        "_absent(columns, 1)",
        ("engine/test_maintained_queries.py", "engine/test_current_results.py"),
    ),
    Fault(
        "union-ties-without-sides",
        "physical",
        "physical/flow.py",
        "ex.constant(str(mine), INT)",
        'ex.constant("0", INT)',
        ("runtime/test_unions.py", "engine/test_ties.py"),
    ),
    Fault(
        "rows-counted-by-shard",
        "physical",
        "physical/operators/window.py",
        "(per != WHOLE or not is_contextual(window))",
        "(per == WHOLE or not is_contextual(window))",
        ("engine/test_metamorphic.py", "engine/test_chains.py"),
    ),
    Fault(
        "condition-hides-the-last-tuple",
        "physical",
        "physical/planner.py",
        "    return is_contextual(window) or (\n"
        "        ends_with_the_input(window) and any(one.stream is None for one in flow.inputs)\n"
        "    )\n",
        "    return is_contextual(window)\n",
        ("engine/test_ends_of_input.py",),
    ),
    # ---------------------------------------------------------------- Spark: translator, host, sources
    Fault(
        "lookup-loses-reports",
        "spark",
        "spark/lowering/translator.py",
        "frame.where(F.col(MARK).isNotNull() | F.col(_MATCHED))",
        "frame.where(F.col(_MATCHED))",
        ("runtime/test_changing_tables.py", "engine/test_patterns_on_spark.py"),
    ),
    Fault(
        "limit-before-offset",
        "spark",
        "spark/lowering/translator.py",
        "    result = result.offset(wanted.offset) if wanted.offset else result\n"
        "    result = result.limit(wanted.limit) if wanted.limit is not None else result\n",
        "    result = result.limit(wanted.limit) if wanted.limit is not None else result\n"
        "    result = result.offset(wanted.offset) if wanted.offset else result\n",
        ("runtime/test_aggregates_on_tables.py",),
    ),
    Fault(
        "shards-of-stages-collide",
        "spark",
        "spark/host/stage_host.py",
        "        if at not in taken:\n            ids.setdefault(murmur_long(at, SEED) % partitions, at)\n",
        "        ids.setdefault(murmur_long(at, SEED) % partitions, at)\n",
        ("runtime/test_windows.py",),
    ),
    Fault(
        "last-word-is-a-bad-record",
        "spark",
        "spark/sources/stream_sources.py",
        "reason.when(F.col(TIME).isNull() & data, NO_TIMESTAMP)",
        "reason.when(F.col(TIME).isNull(), NO_TIMESTAMP)",
        ("runtime/test_windows.py",),
    ),
    Fault(
        "files-of-one-instant-without-names",
        "spark",
        "spark/sources/stream_sources.py",
        "by_name = not reader.is_bounded or arrive_together(path, spark)",
        "by_name = not reader.is_bounded and arrive_together(path, spark)",
        ("runtime/test_windows.py", "runtime/test_stateless_queries.py"),
    ),
    # ---------------------------------------------------------------- progress and stages
    Fault(
        "newest-of-a-piece-is-its-last",
        "stage",
        "stage/packer.py",
        "piece.newest = max(before[-1], time[-1]).item()",
        "piece.newest = time[-1].item()",
        ("engine/test_arrivals.py", "engine/test_invariants.py"),
    ),
    Fault(
        "watermark-before-all-partitions",
        "stage",
        "stage/input_progress.py",
        "        if len(self._partitions) < self._input.partitions:\n"
        "            return BEGINNING\n"
        "        return min(",
        "        if not self._partitions:\n            return BEGINNING\n        return min(",
        ("engine/test_arrivals.py", "engine/test_invariants.py"),
    ),
    Fault(
        "idle-at-the-very-limit",
        "stage",
        "progress/substream_trackers.py",
        "while tree[1] < edge:",
        "while tree[1] <= edge:",
        ("progress",),
    ),
    Fault(
        "stale-shard-in-memory",
        "stage",
        "stage/shard_cache.py",
        "if shard is not None and shard.version == version:",
        "if shard is not None:",
        ("stage", "engine/test_on_spark.py"),
    ),
    # ---------------------------------------------------------------- checkpoints and result logs
    Fault(
        "format-of-checkpoint-not-compared",
        "recovery",
        "runtime/checkpoints/checkpoint_compatibility.py",
        'if manifest["format"] != FORMAT:',
        'if not isinstance(manifest["format"], int):',
        ("recovery/test_identity.py", "recovery/test_damaged.py"),
    ),
    Fault(
        "results-dropped-before-they-are-given",
        "recovery",
        "runtime/results/result_log.py",
        "            yield table\n"
        "            if forget and self._kept is not None:\n"
        "                # Not before: a batch that was not yielded is available again after a restart.\n"
        "                self._kept.drop(batch_id)\n",
        "            if forget and self._kept is not None:\n"
        "                self._kept.drop(batch_id)\n"
        "            yield table\n",
        ("runtime/test_result_log.py", "recovery/test_damaged.py"),
    ),
    Fault(
        "results-not-synced",
        "recovery",
        "runtime/checkpoints/checkpoint_files.py",
        "write_whole(path, write)",
        "write_whole(path, write, durable=False)",
        ("runtime/test_result_log.py", "recovery/test_damaged.py"),
    ),
    # ---------------------------------------------------------------- output formats and commands
    Fault(
        "carriage-return-not-quoted",
        "output",
        "runtime/results/output_formats.py",
        r"\r\n]",
        r"\n]",
        ("runtime/test_output_formats.py",),
    ),
    Fault(
        "lists-of-later-pieces",
        "output",
        "runtime/results/value_formatting.py",
        "json_texts(column.values)",
        "json_texts(column.flatten())",
        ("runtime/test_output_formats.py",),
    ),
    Fault(
        "wrong-exit-code-if-all-is-bad",
        "output",
        "cli/run_command.py",
        "RunEnd.ALL_BAD: 3",
        "RunEnd.ALL_BAD: 1",
        ("cli",),
    ),
)

NAMES = (*dict.fromkeys(fault.area for fault in FAULTS), *(fault.name for fault in FAULTS))
"""Areas, and the faults themselves: names by which faults can be chosen."""


@dataclass(frozen=True)
class _Outcome:
    """The test that found a fault, or the reason why that could not be decided; neither if none found it."""

    fault: Fault
    seconds: float
    test: str = ""
    error: str = ""

    def __str__(self) -> str:
        verdict = (
            f"ERROR: {self.error}" if self.error else f"found by {self.test}" if self.test else "NOT FOUND"
        )
        return f"{self.fault.name} ({self.fault.area}): {verdict} in {self.seconds:,.0f} s"


def soak(directory: Path, names: Collection[str], say: Callable[[str], None]) -> list[Finding]:
    """Plant faults, those of some names or areas or all, and report the ones that no test finds."""
    if "JAVA_HOME" not in os.environ:
        return [
            Finding("faults", "none", 0, wrong="JAVA_HOME is not set, and every test on Spark would fail")
        ]
    chosen = [fault for fault in FAULTS if not names or {fault.name, fault.area}.intersection(names)]
    copy = _Copy(directory)
    outcomes = []
    for fault in chosen:
        outcomes.append(copy.outcome(fault))
        say(str(outcomes[-1]))
    return [_finding(area, outcomes) for area in dict.fromkeys(fault.area for fault in chosen)]


def _finding(area: str, outcomes: Sequence[_Outcome]) -> Finding:
    mine = [outcome for outcome in outcomes if outcome.fault.area == area]
    found = sum(bool(outcome.test) for outcome in mine)
    others = [f"{o.fault.name}: {o.error or 'not found'}" for o in mine if not o.test]
    return Finding(
        f"faults in {area}",
        f"{len(mine)} faults",
        sum(outcome.seconds for outcome in mine),
        detail=f"{found} found",
        wrong="; ".join(others),
    )


class _Copy:
    """A copy of all files but ignored ones, as they are now.

    It has a cache of its own: code that is compiled from a fault must never be found by anything else.
    """

    def __init__(self, directory: Path) -> None:
        self._tree, self._logs, cache = (directory / name for name in ("tree", "logs", "cache"))
        for one in (self._logs, cache):
            one.mkdir(parents=True)
        # Links of a document may lead to a file that is not committed yet.
        listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(listing, cwd=_ROOT, check=True, capture_output=True).stdout.decode()
        for name in filter(None, listed.split("\0")):
            if (_ROOT / name).is_file():
                (self._tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(_ROOT / name, self._tree / name)
        known = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "millstream"
        # A file may vanish meanwhile; then it is compiled again.
        with contextlib.suppress(FileNotFoundError, shutil.Error):
            shutil.copytree(known, cache / "millstream")
        kept = {name: value for name, value in os.environ.items() if name not in _FOREIGN}
        self._environment = {**kept, "PYTHONPATH": str(self._tree / "src"), "XDG_CACHE_HOME": str(cache)}

    def outcome(self, fault: Fault) -> _Outcome:
        """Plant a fault, and run tests until one fails."""
        began = time.monotonic()
        test = error = ""
        try:
            with self._planted(fault):
                test = self._found(fault)
        except _CheckError as failure:
            error = str(failure)
        return _Outcome(fault, time.monotonic() - began, test, error)

    @contextlib.contextmanager
    def _planted(self, fault: Fault) -> Iterator[None]:
        path = self._tree / "src" / "millstream" / fault.file
        text, stat = path.read_text(encoding="utf-8"), path.stat()
        if text.count(fault.old) != 1:
            raise _CheckError(f"its text is {text.count(fault.old)} times in {fault.file}")
        path.write_text(text.replace(fault.old, fault.new), encoding="utf-8")
        # Examples that failed because of another fault would be tried first.
        shutil.rmtree(self._tree / ".hypothesis", ignore_errors=True)
        try:
            yield
        finally:
            path.write_text(text, encoding="utf-8")
            # By the time of its source Python knows bytecode that is out of date.
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def _found(self, fault: Fault) -> str:
        """Return the first test that fails; empty if none does."""
        steps = (
            (*_PYTEST, *(f"tests/{path}" for path in fault.near)),
            _COMPILE,
            (*_PYTEST, "-m", "not spark"),
            (*_PYTEST, "-m", "spark"),
        )
        for number, step in enumerate(steps):
            log = self._logs / f"{fault.name}-{number}.txt"
            code, tests = self._run(step, log), step is not _COMPILE
            if code is None and tests:
                return "a timeout"
            if code in (_FAILED, _STOPPED) and tests:
                return _first_failure(log)
            if code != _PASSED:
                raise _CheckError(f"exit code {code}, see {log}")
        return ""

    def _run(self, command: Sequence[str], log: Path) -> int | None:
        """Run a command in the copy; return its exit code, None if it took too long."""
        with log.open("wb") as out:
            process = subprocess.Popen(
                command,
                cwd=self._tree,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                return process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                return None
            finally:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()


class _CheckError(Exception):
    """A reason why it cannot be said whether a fault is found."""


def _first_failure(log: Path) -> str:
    found = _FAILURE.search(log.read_text(encoding="utf-8", errors="replace"))
    # A name without a test is that of a file that could not be collected.
    if found is None or "::" not in found[1]:
        raise _CheckError(f"no failed test is named, see {log}")
    return found[1]
