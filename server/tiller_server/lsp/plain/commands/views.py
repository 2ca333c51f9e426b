"""Commands that show something: how things stand, the chat file, what waits for the user's word."""

import logging
import os
from collections.abc import Mapping
from typing import Final

from tiller_server.lsp.changes.diff_document import NAME
from tiller_server.lsp.plain.client import PlainClient
from tiller_server.lsp.plain.commands.arguments import CommandArguments, check_nothing
from tiller_server.lsp.sessions.open_session import OpenSession

BUSY: Final[Mapping[str, str]] = {"requiresAction": "waits for you"}


async def status(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Return how things stand, in a line."""
    check_nothing("tiller.status", arguments)
    open_session = await plain_client.client.resolve_session()
    text = status_text(open_session)
    plain_client.show_message(text)
    return {"status": text}


async def chat(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Open the chat file."""
    check_nothing("tiller.chat", arguments)
    path = await plain_client.chat.open(focus=True)
    if not plain_client.can_show:
        plain_client.show_message(f"the chat file is {path}")
    return {"uri": path.as_uri()}


async def changes(plain_client: PlainClient, arguments: CommandArguments) -> object:
    """Open the diff of what waits for the user's word."""
    check_nothing("tiller.changes", arguments)
    open_session = await plain_client.client.resolve_session()
    uri = await plain_client.client.change_display.diff.show(open_session)
    if not open_session.session.changes.counts.unreviewed:
        plain_client.show_message("nothing waits for your word.")
    elif not plain_client.can_show:
        plain_client.show_message(f"what waits for your word is in {open_session.root / NAME}")
    return {"uri": uri}


def status_text(open_session: OpenSession) -> str:
    """Return the status of a session: its activity, model, use of the context, cost, and the path of the log."""
    session = open_session.session
    seen = session.info.snapshot()
    model = session.models.current
    parts = [
        BUSY.get(seen.state, str(seen.state)),
        f"model {model.ref}" if model else "no model: run tiller.model or tiller.signIn",
        f"mode {seen.config.mode}",
    ]
    if seen.title:
        parts.append(f"“{seen.title}”")
    usage = seen.usage
    if usage.context_size and usage.context_used is not None:
        parts.append(f"context {100 * usage.context_used // usage.context_size} %")
    if usage.tokens.cost is not None:
        parts.append(f"${usage.tokens.cost.total:.2f}")
    if waiting := seen.changes.unreviewed:
        parts.append("1 change waits" if waiting == 1 else f"{waiting} changes wait")
    if not session.permissions.trust.trusted:
        parts.append("the folder is not trusted: run tiller.trust")
    parts.extend(f"log {path}" for path in log_files())
    return " · ".join(parts)


def log_files() -> list[str]:
    """Return the files that this process writes its log to."""
    handlers = logging.getLogger().handlers
    files = [one.baseFilename for one in handlers if isinstance(one, logging.FileHandler)]
    return [one for one in files if one != os.devnull]
