"""Reads what test runners print: whether the tests passed, and the errors with their tracebacks."""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import Literal

from agent_core.kernel.values import Value

ANSI = re.compile(r"\x1b\[[0-9;]*m")
FRAME = re.compile(r'^ *File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<name>.+))?$')
SHORT_FRAME = re.compile(r"^(?P<path>[^\s:][^:\n]*\.py):(?P<line>\d+): in (?P<name>.+)$")
ERROR = re.compile(r"^(?:E   )?(?P<kind>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
SECTION = re.compile(r"^(?:={70}|=+ (?:FAILURES|ERRORS) =+)$", re.MULTILINE)
CAPTURED = re.compile(r"^-+ Captured .+ -+$")
HEADING = re.compile(r"^(?:_{3,} .+ _{3,}|=+ .+ =+)$")
COUNT = re.compile(r"(?P<passed>\d+) passed|^Ran (?P<ran>\d+) tests?", re.MULTILINE)
NOTHING = re.compile(
    r"^(?:Ran 0 tests|no tests ran|NO TESTS RAN|ImportError: Start directory is not importable)",
    re.MULTILINE,
)
END = re.compile(r"^-{70}\nRan \d+ tests?", re.MULTILINE)
FOREIGN = re.compile(r"/(?:site-packages|dist-packages|lib(?:64)?/python\d[\d.]*)/|^<|/\.?venv/")
SUGGESTED = re.compile(r"Did you mean:? '(?P<name>[A-Za-z_][\w.]*)'")
FORGOTTEN = re.compile(r"[Dd]id you forget to import '(?P<name>[A-Za-z_][\w.]*)'")


class TracebackFrame(Value, frozen=True, kw_only=True):
    """A line of a traceback."""

    path: str
    line: int
    function: str


class TestFailure(Value, frozen=True, kw_only=True):
    """An error of a test run."""

    kind: str
    message: str
    """Its first line, without a suggestion."""
    frames: tuple[TracebackFrame, ...]
    """Never empty; the last is where it was raised."""
    suggested: str | None = None
    forgotten_import: str | None = None

    @property
    def sentence(self) -> str:
        """The error as Python says it."""
        return f"{self.kind}: {self.message}" if self.message else self.kind


class TestRunReport(Value, frozen=True, kw_only=True):
    """Result of a test run."""

    outcome: Literal["passed", "failed", "nothing"]
    count: int
    """Tests that passed, or ran, as far as the runner says."""
    root: str | None
    """The folder that the tests ran in."""
    failures: tuple[TestFailure, ...] = ()
    tail: str = ""
    """Its last words."""


def read_run(text: str, *, failed: bool) -> TestRunReport:
    """Read the output of a run."""
    text = ANSI.sub("", text).replace("\r\n", "\n")
    first = text.split("\n", 1)[0].strip()
    counts = [int(match["passed"] or match["ran"]) for match in COUNT.finditer(text)]
    count = counts[-1] if counts else 0
    failures = tuple(dict.fromkeys(_failures(text)))
    if NOTHING.search(text) and not count:
        outcome = "nothing"
    elif failed or not counts:
        outcome = "failed"
    else:
        outcome = "passed"
    lines = [line for line in text.splitlines() if line.strip()]
    return TestRunReport(
        outcome=outcome,
        count=count,
        root=first if first.startswith("/") else None,
        failures=failures if outcome == "failed" else (),
        tail="\n".join(lines[-6:]),
    )


def inside(frame: TracebackFrame, root: str | None) -> str | None:
    """Return a frame's path relative to the workspace; None when it lies elsewhere."""
    if FOREIGN.search(frame.path):
        return None
    path = PurePosixPath(frame.path)
    if not path.is_absolute():
        return path.as_posix() if ".." not in path.parts else None
    if root is None or not path.is_relative_to(root):
        return None
    return path.relative_to(root).as_posix()


def suggestion_in(text: str, failure: TestFailure) -> str | None:
    """Find the interpreter's suggestion for an error among other output."""
    for line in text.splitlines():
        if line.startswith(failure.sentence):
            match = SUGGESTED.search(line, len(failure.sentence))
            if match:
                return match["name"]
    return None


def _failures(text: str) -> Iterator[TestFailure]:
    start, end = SECTION.search(text), END.search(text)
    # What the tests themselves print stands before and, buffered, behind unittest's report.
    report = text[start.start() if start else 0 : end.start() if end else None]
    frames: list[TracebackFrame] = []
    for line in _without_captured(report):
        if frame := FRAME.match(line) or SHORT_FRAME.match(line):
            frames.append(
                TracebackFrame(
                    path=frame["path"].removeprefix("./"),
                    line=int(frame["line"]),
                    function=frame["name"] or "",
                )
            )
        elif line.startswith("Traceback"):
            frames = []
        elif frames and (error := ERROR.match(line)):
            yield _failure(error["kind"], error["message"] or "", tuple(frames))
            frames = []


def _without_captured(text: str) -> Iterator[str]:
    """Skip what the tests themselves printed: it may look like anything."""
    captured = False
    for line in text.split("\n"):
        if CAPTURED.match(line):
            captured = True
        elif HEADING.match(line):
            captured = False
        if not captured:
            yield line


def _failure(kind: str, message: str, frames: tuple[TracebackFrame, ...]) -> TestFailure:
    suggested = SUGGESTED.search(message)
    forgotten = FORGOTTEN.search(message)
    return TestFailure(
        kind=kind.rsplit(".", 1)[-1],
        message=message.split(". Did you ", 1)[0],
        frames=frames,
        suggested=suggested["name"] if suggested else None,
        forgotten_import=forgotten["name"] if forgotten else None,
    )
