"""`tiller.apply` and its code action: an edit that no editor could take is done because its user says so."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import anyio
from anyio import to_thread

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import TillerError
from agent_core.session.changes.revert import ApplyResult
from tiller_server.lsp.changes.diagnostics import KIND, is_asked_for
from tiller_server.lsp.edits.proposals import Proposal, Proposals
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.operations.review_commands import argument_of
from tiller_server.lsp.sessions.client import ConnectedClient, invalid_params
from tiller_server.lsp.sessions.open_session import OpenSession

COMMAND: Final = "tiller.apply"
TITLE: Final = "Tiller: Apply the proposed change"
ANSWER_S: Final = 15.0
"""Longest wait of the command, in seconds; Helix gives up after 20 s. Slower work continues; its result is shown."""
WARNING: Final = 2
INFO: Final = 3
SHOWN: Final = 5
"""So many files are named."""


async def actions(
    client: ConnectedClient, params: Mapping[str, object]
) -> Sequence[dict[str, JsonValue]]:
    """Return an action for each edit that waits for a document, the newest first."""
    uri = (as_object(params.get("textDocument")) or {}).get("uri")
    document = client.editor.mirror.get(uri) if isinstance(uri, str) else None
    if document is None or document.path is None or not is_asked_for(params):
        return []
    found: list[dict[str, JsonValue]] = []
    for open_session in [one for one in client.host.sessions() if client.uses(one)]:
        waiting = await _proposals(open_session).all()
        if not waiting:
            continue
        path = await _real(document.path)
        here = [one for one in reversed(waiting) if one.path == path]
        for number, one in enumerate(here, 1):
            title = TITLE if len(here) == 1 else f"{TITLE} ({number} of {len(here)})"
            argument: dict[str, JsonValue] = {
                "session": open_session.session.id,
                "proposal": one.id,
            }
            command: dict[str, JsonValue] = {
                "title": title,
                "command": COMMAND,
                "arguments": [argument],
            }
            found.append({"title": title, "kind": KIND, "command": command})
    return found


async def apply_proposal(client: ConnectedClient, arguments: tuple[object, ...]) -> object:
    """Apply an edit that waits; without arguments that of the document that was touched last, or the only one.

    Raises:
        RpcError: The argument makes no sense, or this client may not decide.
    """
    client.dialogs.check_may_decide()
    asked = argument_of(arguments)
    session, wanted = asked.get("session"), asked.get("proposal")
    if not isinstance(session, str | None) or not isinstance(wanted, str | None):
        message = f"{COMMAND} takes one object with `session` and `proposal`, got {asked!r:.200}"
        raise invalid_params(message)
    open_session = await client.resolve_session(session)
    waiting = await _proposals(open_session).all()
    chosen = await _chosen(client, waiting, wanted)
    if isinstance(chosen, str):
        return _respond(client, "none", chosen)
    with anyio.move_on_after(ANSWER_S):
        status, text = await _apply(open_session, chosen)
        await client.flush()
        return _respond(client, status, text)
    return _respond(client, "slow", f"Tiller: the change of {chosen.path.name} takes its time.")


async def _chosen(
    client: ConnectedClient, waiting: Sequence[Proposal], wanted: str | None
) -> Proposal | str:
    """Return which edit is meant, or why none is."""
    if wanted is not None:
        named = [one for one in waiting if one.id == wanted]
        return named[0] if named else "Tiller: this change does not wait any more."
    if not waiting:
        return "Tiller: no change waits to be applied."
    if len(waiting) == 1:
        return waiting[0]
    documents = sorted(client.editor.mirror.documents(), key=lambda one: -one.touched_at)
    paths = [one.path for one in documents if one.path is not None]
    here = await _real(paths[0]) if paths else None
    if found := [one for one in waiting if one.path == here]:
        return found[-1]
    names = sorted({one.path.name for one in waiting})
    more = ", …" if len(names) > SHOWN else ""
    return f"Tiller: changes wait for {', '.join(names[:SHOWN])}{more}; open one of them and apply it there."


async def _apply(open_session: OpenSession, proposal: Proposal) -> tuple[str, str]:
    """Do it; gives what came of it in a word and in a sentence."""
    name, proposals = proposal.path.name, _proposals(open_session)
    texts = await proposals.texts(proposal)
    if texts is None:
        return "gone", f"Tiller: not applied: what is to be done to {name} cannot be read."
    if (where := await _blocking_editor(open_session, proposal.path)) is not None:
        why = f"it has unsaved text in {where}, which takes no edits"
        return "waiting", f"Tiller: not applied to {name}: {why}. Save it there, then apply again."
    try:
        applied = await open_session.session.changes.apply(
            proposal.path, before=texts[0], after=texts[1]
        )
    except TillerError as error:
        return "refused", f"Tiller: not applied: {error}"
    if applied.status != "conflict":
        await proposals.forget(proposal)
    return applied.status, _sentence(
        applied, proposal, await _editor_name(open_session, proposal.path)
    )


async def _blocking_editor(open_session: OpenSession, path: Path) -> str | None:
    """Name the editor that has unsaved text of a file and takes no edits."""
    try:
        buffer = await open_session.files.opened.find(path)
    except TillerError:
        return None  # the edit itself says why
    if buffer is None or buffer.editor.capabilities.applies_edits:
        return None
    return None if buffer.state in {"clean", "outdated"} else buffer.editor.name


async def _editor_name(open_session: OpenSession, path: Path) -> str | None:
    """Return the name of the editor that has a file open; None: no editor has."""
    try:
        buffer = await open_session.files.opened.find(path)
    except TillerError:
        return None
    return None if buffer is None else buffer.editor.name


def _sentence(applied: ApplyResult, proposal: Proposal, where: str | None) -> str:
    name, written = proposal.path.name, applied.written
    if applied.status == "conflict":
        return f"Tiller: not applied to {name}: {applied.why} The change is in {proposal.patch}."
    if written is None:
        return f"Tiller: {name} has the proposed change already."
    if written.source == "buffer":
        saved = "saved" if written.saved else "unsaved"
        return f"Tiller: the proposed change is applied to {name} in {where}, {saved}."
    if where is None:
        return f"Tiller: the proposed change is applied to {name} on the disk."
    return f"Tiller: the proposed change is applied to {name} on the disk; reload it in {where} if it does not follow."


def _respond(client: ConnectedClient, status: str, text: str) -> object:
    """Show the user the outcome, in clients without a subscription; return the same text as the answer."""
    if not client.subscriptions:
        kind = INFO if status in {"applied", "nothing"} else WARNING
        _ = client.connection.notify("window/showMessage", {"type": kind, "message": text})
    return {"status": status, "text": text}


def _proposals(open_session: OpenSession) -> Proposals:
    proposals = open_session.files.edits.proposals
    assert isinstance(proposals, Proposals)  # noqa: S101 - a session that is loaded has them
    return proposals


async def _real(path: Path) -> Path:
    return Path(await to_thread.run_sync(os.path.realpath, path))
