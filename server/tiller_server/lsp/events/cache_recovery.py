"""Finds the replay cache of a session that was opened, and lets its events go on from there."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import anyio.to_thread

from agent_core.events import (
    Event,
    PermissionResolved,
    QuestionResolved,
    QueueChanged,
    SessionConfigured,
    SessionStateChanged,
)
from agent_core.events.codec import queue_item, value
from agent_core.kernel import RunId
from agent_core.kernel.redaction.redactor import Redactor
from agent_core.session import AgentSession, SessionSnapshot
from agent_core.storage.adapters.paths import EVENTS_SUFFIX, SUFFIX
from tiller_server.lsp.events.cache_file import CacheContents, ReplayFile, find
from tiller_server.lsp.events.replay_log import EventLog

RESTARTED = "restart"
"""By whom a question was resolved that did not outlive its process."""


async def open_event_log(
    session: AgentSession, *, new_epoch: Callable[[], str], redactor: Redactor
) -> EventLog:
    """Begin to keep a session's events; the caller runs the log's task and closes it after the session.

    The epoch goes on when the cache holds all that the session's file told of; else a new one begins.
    """
    location = session.info.location
    file, found = None, None
    if location is not None:
        path = cache_of(Path(location))
        file, found = await anyio.to_thread.run_sync(partial(_open, path, session, redactor))
    view = session.info.events
    if file is not None and view.seq:
        # Something was told before anybody could keep it.
        file.close()
        file, found = None, None
    if found is not None:
        epoch, seq = found.epoch, max(found.mark.to, found.newest)
    else:
        epoch, seq = new_epoch(), view.seq
    if file is None and location is not None:
        file = ReplayFile(
            cache_of(Path(location)), session=session.id, epoch=epoch, after=seq, redactor=redactor
        )
    log = EventLog(
        epoch=epoch,
        seq=seq,
        file=file,
        newest_entry=lambda: view.newest_entry,
        is_stored=Path(location or "/").is_file,
        new_epoch=new_epoch,
    )
    view.go_on_from(seq, log.see)
    if found is not None:
        for event in catching_up(found, session.info.snapshot()):
            view.publish(event)
    return log


def cache_of(location: Path) -> Path:
    """Return where the cache of a session's file lies."""
    return location.with_name(location.name.removesuffix(SUFFIX) + EVENTS_SUFFIX)


def catching_up(found: CacheContents, now: SessionSnapshot) -> Iterator[Event]:
    """Return what is otherwise than it was told last: a process may have died, settings may have changed. Pure."""
    asked = {one.request for one in now.pending}
    for request, run in found.open.items():
        if request not in asked:
            of = RunId(run) if isinstance(run, str) else None
            yield PermissionResolved(run=of, request=request, option=None, by=RESTARTED)
    for request, run in found.asked.items():
        if request not in asked:
            of = RunId(run) if isinstance(run, str) else None
            yield QuestionResolved(run=of, request=request, by=RESTARTED)
    queue = found.said.get("queue.changed", {})
    if queue.get("queue", []) != [queue_item(one) for one in now.queue]:
        yield QueueChanged(queue=now.queue, paused=now.paused)
    config = found.said.get("session.config", {})
    if config.get("config") != value(now.config):
        yield SessionConfigured(config=now.config)
    if found.said.get("session.state", {}).get("state", now.state) != now.state:
        yield SessionStateChanged(state=now.state)


def _open(
    path: Path, session: AgentSession, redactor: Redactor
) -> tuple[ReplayFile | None, CacheContents | None]:
    found = find(path, session.id)
    entry = session.info.events.opened_after
    if found is None or entry is None or found.mark.entry != entry:
        return None, None
    try:
        file = ReplayFile.going_on(path, session=session.id, found=found, redactor=redactor)
    except OSError:
        return None, None
    return file, found
