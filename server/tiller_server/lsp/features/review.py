"""`agent/review`: review of a change; the findings are returned, and shown beside the text."""

from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Final

import anyio

from agent_core.assembly import SessionRequest
from agent_core.events import (
    ChangeCounts,
    Failure,
    RunResult,
    RunStatus,
    UsageReport,
)
from agent_core.kernel import JsonObject, JsonValue, RunId, uuid7
from agent_core.session import AgentSession
from tiller_server.lsp.encode import serializer
from tiller_server.lsp.feature import session_feature
from tiller_server.lsp.operations.review_progress import ReviewProgress, review_line
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.sessions.open_session import OpenSession
from tiller_server.lsp.wire.runs import REVIEW, ReviewParams
from tiller_server.review.options import ReviewOrder

STATUS: Final[Mapping[str | None, RunStatus]] = {
    None: "completed",
    "budget": "budget",
    "refused": "refused",
    "cancelled": "cancelled",
    "outage": "failed",
    "failed": "failed",
}


@session_feature(REVIEW)
async def review(
    client: ConnectedClient, open_session: OpenSession, params: ReviewParams
) -> JsonObject:
    """Review what is not committed, or what came after a commit; the files on the disk count."""
    # Few connections ever need it, and it loads more than all other features together.
    from tiller_server.review import engine  # noqa: PLC0415 - see above

    watcher = ReviewProgress()
    order, root = await _order(
        open_session.root, params, open_session.session, env=client.origin.env
    )
    with review_line(client, params.work_done_token, watcher):
        made = await engine.review(
            order, _request(client, open_session), watcher=watcher, stop=watcher.stop
        )
    shown = client.change_display.findings
    shown.show(root, made.findings, texts=watcher.lines)
    now_ms = client.host.now_ms()
    result = RunResult(
        run=watcher.run or RunId(uuid7(now_ms)),
        status=STATUS[made.stopped],
        text=made.summary,
        usage=UsageReport(tokens=watcher.usage, context_used=None, context_size=0),
        changes=ChangeCounts(),
        error=None
        if made.partial is None
        else watcher.error or Failure(kind="ModelError", message=made.partial),
    )
    none: dict[str, JsonValue] = {"id": str(result.run), "base": str(result.run), "files": []}
    findings: list[JsonValue] = [
        {
            "uri": (root / one.path).as_uri(),
            "diagnostic": shown.diagnostic(one, lines=watcher.lines.get(one.path, ())),
        }
        for one in made.findings
    ]
    return {**serializer.result(result, none), "findings": findings}


async def _order(
    workspace: Path, params: ReviewParams, session: AgentSession, *, env: Mapping[str, str]
) -> tuple[ReviewOrder, Path]:
    """Return what is looked at, and the repository's root, from which findings name their files."""
    from agent_core.events import Budgets  # noqa: PLC0415 - see above
    from agent_core.workspace.git.client import find_root  # noqa: PLC0415 - see above
    from tiller_server.review.git.file_filter import ReviewFileFilter  # noqa: PLC0415 - see above
    from tiller_server.review.git.revisions import WORKING_TREE  # noqa: PLC0415 - see above

    root = await find_root(workspace, env)
    below = PurePosixPath(Path(await anyio.Path(workspace).resolve()).relative_to(root).as_posix())
    order = ReviewOrder(
        base=params.base,
        head=WORKING_TREE,
        scope=ReviewFileFilter(paths=tuple(str(below / path) for path in params.paths or ())),
        wishes=(params.instructions or "").strip(),
        budgets=session.info.config.budgets or Budgets(),
    )
    return order, root


def _request(client: ConnectedClient, open_session: OpenSession) -> SessionRequest:
    """Return the request for the review's own session; its messages are no part of the conversation."""
    facts = open_session.session.models.current
    return SessionRequest(
        workspace=open_session.root,
        env=client.origin.env,
        model=None if facts is None else facts.ref,
        store="memory",
        redactor=client.host.redactor,
        telemetry=client.host.telemetry,
        ledger=client.host.ledger,
    )
