"""Judges files by the hidden tests, run as contained as the commands of an agent."""

import shlex
import shutil
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from anyio import to_thread
from msgspec.structs import replace

from agent_core.assembly import SessionRequest, open_session
from agent_core.kernel.values import Value
from agent_core.session import AgentSession
from tiller_server.evaluation.place import AgentPlace
from tiller_server.evaluation.tasks.repositories import (
    CountedChange,
    GitRunner,
    TaskRepository,
    write_files,
)
from tiller_server.evaluation.tasks.task import TESTS, TESTS_HERE, LoadedTask, TaskLimits

REPEATS: Final = 2
"""Times that a failed test is run again: one that then passes is flaky, and judges nothing."""
OUTPUT_CHARS: Final = 4000
EMBEDDED: Final = "embedded/repair"
"""Opens the session in which tests run; it is not asked anything."""


class TestRun(Value, frozen=True, kw_only=True):
    """Result of tests, by id."""

    passed: tuple[str, ...]
    failed: tuple[str, ...]
    output: str
    """End of the output of the first command that failed."""


class Grade(Value, frozen=True, kw_only=True):
    """Judgement of the files of an attempt."""

    failed: tuple[str, ...] = ()
    """Tests that fail every time."""
    flaky: tuple[str, ...] = ()
    """A sentence for each failure that was not repeated."""
    output: str = ""


class TestRunner:
    """Runs the test command of a task in one folder."""

    def __init__(self, loaded: LoadedTask, session: AgentSession) -> None:
        self._loaded = loaded
        self._session = session

    async def run(self, tests: Sequence[str]) -> TestRun:
        """Run tests: all with one command, and each alone when that fails."""
        if not tests:
            return TestRun(passed=(), failed=(), output="")
        output = await self._failure(tests)
        if output is None:
            return TestRun(passed=tuple(tests), failed=(), output="")
        if len(tests) == 1:
            return TestRun(passed=(), failed=tuple(tests), output=output)
        alone = await self.run_each(tests)
        return replace(alone, output=alone.output or output)

    async def run_each(self, tests: Sequence[str]) -> TestRun:
        """Run each test with a command of its own."""
        passed: list[str] = []
        failed: list[str] = []
        first = ""
        for test in tests:
            output = await self._failure([test])
            if output is None:
                passed.append(test)
            else:
                failed.append(test)
                first = first or output
        return TestRun(passed=tuple(passed), failed=tuple(failed), output=first)

    async def grade(self) -> Grade:
        """Run all tests of the task; those that fail are run again."""
        task = self._loaded.task
        first = await self.run((*task.fail_to_pass, *task.pass_to_pass))
        failed, flaky = first.failed, list[str]()
        if first.output and not failed:
            flaky.append("the tests failed together, and then each passed")
        for _ in range(REPEATS):
            again = await self.run_each(failed)
            flaky += [f"the test {test} failed, and then passed" for test in again.passed]
            failed = again.failed
        return Grade(failed=failed, flaky=tuple(flaky), output=first.output)

    async def _failure(self, tests: Sequence[str]) -> str | None:
        """Run the command and return the end of its output; None: it succeeded."""
        arguments: list[str] = []
        for word in self._loaded.task.test_command:
            arguments.extend(tests if word == TESTS_HERE else [word])
        ended = await self._session.execute_bash(shlex.join(arguments), exclude_from_context=True)
        if ended.exit_code == 0 and not ended.cancelled:
            return None
        return ended.output[-OUTPUT_CHARS:]


@asynccontextmanager
async def opened_tests(
    loaded: LoadedTask, folder: Path, place: AgentPlace
) -> AsyncGenerator[TestRunner]:
    """Open a folder for the tests of a task; commands in it are contained as the settings of the place say."""
    request = SessionRequest(
        workspace=folder,
        trusted=True,
        env=place.variables,
        model=EMBEDDED,
        store="memory",
    )
    async with open_session(request) as session:
        yield TestRunner(loaded, session)


async def write_graded(
    git: GitRunner, loaded: LoadedTask, repository: TaskRepository, tree: str, folder: Path
) -> None:
    """Write the files to be judged into a new folder: those of a tree, with the tests of the base and the hidden ones."""
    await to_thread.run_sync(_write_graded, git, loaded, repository, tree, folder)


def _write_graded(
    git: GitRunner, loaded: LoadedTask, repository: TaskRepository, tree: str, folder: Path
) -> None:
    write_files(git, repository, tree, folder)
    tests = folder / TESTS
    if tests.is_symlink() or tests.is_file():
        tests.unlink()
    # Tests that the agent wrote or changed judge nothing.
    shutil.rmtree(tests, ignore_errors=True)
    theirs = repository.folder / TESTS
    if theirs.is_dir():
        _ = shutil.copytree(theirs, tests)
    _ = shutil.copytree(
        loaded.folder / TESTS,
        tests,
        dirs_exist_ok=True,
        ignore=shutil.ignore_patterns("__pycache__"),
    )


def beyond_limits(changes: Sequence[CountedChange], limits: TaskLimits) -> list[str]:
    """Return a sentence for each limit of the changes that was passed. Pure."""
    reasons = [
        f"{change.path} was changed, which is not among limits.paths"
        for change in changes
        if not any(fnmatchcase(change.path, glob) for glob in limits.paths)
    ]
    if limits.files is not None and len(changes) > limits.files:
        reasons.append(f"{len(changes)} files were changed, at most {limits.files} may be")
    lines = sum(change.lines for change in changes)
    if limits.lines is not None and lines > limits.lines:
        reasons.append(f"{lines} lines were changed, at most {limits.lines} may be")
    return reasons
