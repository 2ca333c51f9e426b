"""Verdicts on a failure: more information is needed, a repair, or no repair."""

from collections.abc import Sequence

import msgspec

from agent_core.kernel.values import Value
from agent_core.providers.adapters.embedded.commands import ASKING_MARK, TEST_COMMANDS
from agent_core.providers.adapters.embedded.output import TestFailure
from agent_core.providers.adapters.embedded.source import PythonSource
from agent_core.providers.adapters.embedded.steps import ToolStep

LONG_FILE = 1500
"""Lines that the read tool surely gives at once."""
WINDOW = 400


class RunCommand(Value, frozen=True, kw_only=True):
    """A command must be run to know more."""

    command: str
    why: str


class ReadLines(Value, frozen=True, kw_only=True):
    """A file must be read."""

    path: str
    line: int

    @property
    def offset(self) -> int | None:
        """The first line to read; None: from the beginning."""
        return None if self.line <= LONG_FILE else self.line - WINDOW // 2


class Repair(Value, frozen=True, kw_only=True):
    """A change that mends the failure."""

    path: str
    line: int
    edits: tuple[tuple[str, str], ...]
    """Old and new texts."""
    what: str


class Declined(Value, frozen=True, kw_only=True):
    """There is no rule for this failure, and why."""

    why: str


RepairDecision = RunCommand | ReadLines | Repair | Declined


class RepairEvidence(Value, frozen=True, kw_only=True):
    """Evidence from the steps since the last test run."""

    root: str | None
    test_command: str
    steps: tuple[ToolStep, ...]
    """Since the last run."""
    answers: tuple[str, ...] = ()
    """All that Python was asked for and said in this task, newest first."""
    sources: dict[tuple[str, int | None], PythonSource] = msgspec.field(default_factory=dict)
    """Files that were read, each parsed once: many failures may come from one."""

    def output(self, command: str) -> ToolStep | None:
        """Return what a command printed, when it was run."""
        return next((one for one in self.steps if one.argument("command") == command), None)

    def source(self, path: str, line: int) -> PythonSource | ReadLines | Declined:
        """Return the text around a line, or what must be done to have it."""
        wanted = ReadLines(path=path, line=line)
        key = (path, wanted.offset)
        if key in self.sources:
            return self.sources[key]
        for step in self.steps:
            if step.name != "read" or step.argument("path") != path:
                continue
            if step.arguments.get("offset") != wanted.offset:
                continue
            if step.failed:
                return Declined(why=f"{path} could not be read: {step.output}")
            self.sources[key] = PythonSource(step.output, first_line=wanted.offset or 1)
            return self.sources[key]
        return wanted


def evidence_since_tests(steps: Sequence[ToolStep], root: str | None) -> RepairEvidence:
    """Gather what was learnt since the tests ran last."""
    last = max(i for i, one in enumerate(steps) if one.argument("command") in TEST_COMMANDS)
    return RepairEvidence(
        root=root,
        test_command=steps[last].argument("command"),
        steps=tuple(steps[last + 1 :]),
        answers=tuple(
            one.output for one in reversed(steps) if ASKING_MARK in one.argument("command")
        ),
    )


class Site(Value, frozen=True, kw_only=True):
    """A failure, and the line of the workspace that it comes from."""

    failure: TestFailure
    path: str
    line: int
    raised_here: bool
    """The error was raised on this line, not in something that it calls."""
