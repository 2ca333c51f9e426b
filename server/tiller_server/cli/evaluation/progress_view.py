"""Progress of an evaluation, one line per event."""

from typing import Protocol

from tiller_server.cli.exit_codes import complain
from tiller_server.evaluation.errors import TaskInvalid
from tiller_server.evaluation.result import Attempt, SkippedTask
from tiller_server.evaluation.tasks.task import LoadedTask


class LineOutput(Protocol):
    """A stream of text."""

    def write(self, text: str, /) -> object:
        """Write text."""
        ...

    def flush(self) -> None:
        """Write what is buffered."""
        ...


class ProgressView:
    """Writes the progress to a stream."""

    def __init__(self, stream: LineOutput) -> None:
        self._stream = stream

    def checked(self, task: LoadedTask) -> None:
        """Write that a task was checked both ways."""
        self._write(f"checked {task.task.instance_id}")

    def refused(self, problem: TaskInvalid) -> None:
        """Write why a task cannot be used."""
        complain("eval", str(problem))

    def skipped(self, task: SkippedTask) -> None:
        """Write why a task is not tried."""
        self._write(f"skipped {task.task}: {task.reason}")

    def tried(self, attempt: Attempt) -> None:
        """Write the verdict on an attempt."""
        reason = f": {attempt.reasons[0]}" if attempt.reasons else ""
        name = f"{attempt.task} #{attempt.number}"
        self._write(f"{attempt.verdict} {name}, {attempt.duration_s:.1f} s{reason}")

    def _write(self, line: str) -> None:
        _ = self._stream.write(f"{line}\n")
        self._stream.flush()
