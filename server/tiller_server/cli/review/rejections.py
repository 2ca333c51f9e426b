"""Rejected findings in the memory of a project, and the last review that findings are rejected from."""

import argparse
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread

from agent_core.kernel import SystemClock
from agent_core.kernel.errors import UsageError
from agent_core.kernel.private_file import replace_text
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.memory.access import OFF, FolderMemory, open_if_on
from agent_core.memory.values import MOST_CHARS, MemoryDraft
from agent_core.resources.paths import app_paths
from tiller_server.cli.environment import Environment
from tiller_server.cli.exit_codes import DONE, complain
from tiller_server.cli.review.files import content_of
from tiller_server.review.findings.rejection_memory import KIND, read_rejections
from tiller_server.review.findings.rejections import RejectedFinding, sketch_of
from tiller_server.review.findings.result import Finding, Review
from tiller_server.review.outputs.json_report import read_json, render_json
from tiller_server.review.outputs.summary import place

DAYS: Final = 90
LAST: Final = "last-review.json"
LEAST_PREFIX: Final = 6
NO_REVIEW: Final = (
    "there is no stored review of this project; make one, or name its JSON report with --from"
)


async def rejected_findings(
    workspace: Path, variables: Mapping[str, str], redactor: Redactor
) -> tuple[RejectedFinding, ...]:
    """Return the findings that were rejected in a project; none if memory is off there.

    Raises:
        ConfigError: The memory cannot be read.
    """
    memory = await _memory_if_on(workspace, variables, redactor)
    if memory is None:
        return ()
    rejected, problems = await read_rejections(memory)
    for problem in problems:
        complain("review", str(problem))
    return rejected


async def store_review(
    made: Review, workspace: Path, variables: Mapping[str, str], redactor: Redactor
) -> None:
    """Store a review, so that its findings can be rejected by name; not if memory is off in the project.

    Raises:
        ConfigError: The file of projects cannot be read.
    """
    memory = await _memory_if_on(workspace, variables, redactor)
    if memory is None:
        return
    path = memory.store.path(memory.project.scope).with_name(LAST)
    text = redactor.text(render_json(made))
    try:
        await anyio.Path(path.parent).mkdir(parents=True, exist_ok=True, mode=0o700)
        await anyio.to_thread.run_sync(replace_text, path, text)
    except OSError as error:
        complain("review", f"the review cannot be stored as {str(path)!r} ({error.strerror})")


async def reject(options: argparse.Namespace, environment: Environment) -> int:
    """Store that findings of the last review, or of the report of `--from`, are rejected; return the exit code.

    Raises:
        UsageError: Memory is off, or no single finding has the name.
        ReviewFileInvalid: There is no such report.
    """
    redactor = Redactor()
    redactor.hold_environment(environment.variables)
    workspace = Path(await anyio.Path(options.workspace).resolve())
    memory = await _memory_if_on(workspace, environment.variables, redactor)
    if memory is None:
        raise UsageError(OFF)
    last = memory.store.path(memory.project.scope).with_name(LAST)
    if options.stored is None and not await anyio.Path(last).exists():
        raise UsageError(NO_REVIEW)
    report = options.stored or last
    review = read_json(await content_of(report), name=str(report))
    drafts = [
        await _draft(_named(review.findings, name), options.why, workspace, memory.store.today)
        for name in options.reject
    ]
    for entry in await memory.store.add(memory.project.scope, drafts):
        complain("review", f"rejected until {entry.expires} ({entry.id}): {entry.text}")
    return DONE


def _named(findings: Sequence[Finding], name: str) -> Finding:
    """Return the finding with a fingerprint, the beginning of one, or a place as `src/a.py:12`.

    Raises:
        UsageError: None has the name, or several do.
    """
    is_prefix = len(name) >= LEAST_PREFIX
    matching = [
        one
        for one in findings
        if name == f"{one.path}:{one.line}" or (is_prefix and one.fingerprint.startswith(name))
    ]
    if len(matching) == 1:
        return matching[0]
    listed = "; ".join(f"{place(one)} is {one.fingerprint[:12]}" for one in matching or findings)
    count = "several findings have" if matching else "no finding has"
    message = f"{count} the name {name!r}: {listed or 'the review has none'}"
    raise UsageError(message)


async def _draft(finding: Finding, why: str, workspace: Path, today: str) -> MemoryDraft:
    text = f"{finding.title} ({finding.path}:{finding.line}): {why}"
    last = date.fromisoformat(today) + timedelta(days=DAYS)
    return MemoryDraft(
        text=text[:MOST_CHARS],
        kind=KIND,
        expires=last.isoformat(),
        fields={
            "fingerprint": finding.fingerprint,
            "rule": finding.category,
            "file": finding.path,
            "sketch": sketch_of(await _lines(workspace, finding.path)),
        },
    )


async def _lines(workspace: Path, path: str) -> Sequence[str]:
    try:
        text = await anyio.Path(workspace / path).read_text("utf-8", "replace")
    except OSError:
        return ()
    return text.splitlines()


async def _memory_if_on(
    workspace: Path, variables: Mapping[str, str], redactor: Redactor
) -> FolderMemory | None:
    return await open_if_on(
        app_paths(variables).memory,
        workspace,
        env=variables,
        clock=SystemClock(),
        redactor=redactor,
    )
