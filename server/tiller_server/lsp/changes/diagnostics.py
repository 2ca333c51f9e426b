"""Changes of the agent as hints beside the text, for editors that know diagnostics and code actions and no more."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, Protocol

import msgspec
from anyio import to_thread
from msgspec import Struct

from agent_core.changes.hunks import FileReview, Hunk
from agent_core.events import ChangesUpdated, RunEnded
from agent_core.kernel import JsonValue, SessionId
from agent_core.kernel.values import Value
from agent_core.session import AgentSession
from tiller_server.lsp.changes.diagnostics_publisher import DiagnosticsPublisher
from tiller_server.lsp.changes.session_watch import DebouncedWatch
from tiller_server.lsp.clients.options import is_plain
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import as_array, as_object
from tiller_server.lsp.wire.capabilities import AgentOptions

KIND: Final = "quickfix.tiller"
SOURCE: Final = "tiller"
HINT: Final = 4
PAUSE_S: Final = 0.15
"""How long changes are collected before hints are drawn anew."""
SHOWN_CHARS: Final = 80


class DisplayedSession(Protocol):
    """A session that is loaded."""

    session: AgentSession
    root: Path


class Hint(Value, frozen=True, kw_only=True):
    """A hunk as an editor shows it."""

    session: SessionId
    hunk: str
    file: str
    """URI of the document, as the editor spells it."""
    start: tuple[int, int]
    end: tuple[int, int]
    message: str

    def reaches(self, first: int, last: int) -> bool:
        """Return whether it is on some of these lines."""
        # A hunk of whole lines ends at the beginning of the next.
        end = self.end[0] - (self.end[1] == 0 and self.end > self.start)
        return self.start[0] <= last and end >= first

    def diagnostic(self, *, with_data: bool = True) -> dict[str, JsonValue]:
        """Return it as the protocol has it."""
        encoded: dict[str, JsonValue] = {
            "range": {"start": _position(self.start), "end": _position(self.end)},
            "severity": HINT,
            "source": SOURCE,
            "message": self.message,
        }
        if with_data:
            encoded["data"] = {"hunk": self.hunk, "session": self.session}
        return encoded


class _Shown(Struct, kw_only=True):
    """Hints that an editor shows."""

    hints: dict[tuple[str, SessionId], Sequence[Hint]] = msgspec.field(
        default_factory=dict[tuple[str, SessionId], Sequence[Hint]]
    )
    published: dict[str, tuple[int | None, Sequence[Hint]]] = msgspec.field(
        default_factory=dict[str, tuple[int | None, Sequence[Hint]]]
    )
    """By document: the version that they were told for, and the hints."""


class ChangeDiagnostics:
    """Keeps the hints of one editor as the hunks that wait in its open documents."""

    def __init__(
        self,
        connection: LspConnection,
        mirror: Mirror,
        options: AgentOptions,
        *,
        publisher: DiagnosticsPublisher,
    ) -> None:
        self._publisher = publisher
        self._mirror = mirror
        self.is_wanted: Final = wants_hints(connection.client_params, options)
        """Whether this editor is shown hints."""
        self._shown = _Shown()
        self._watch = DebouncedWatch(ChangesUpdated, RunEnded, pause_s=PAUSE_S)

    def close(self) -> None:
        """Stop following; the editor has left."""
        self._watch.close()

    async def follow(self, open_session: DisplayedSession) -> None:
        """Draw the hints of a session whenever it or a document changes, until either is over."""
        if not self.is_wanted:
            return
        session = open_session.session
        news = asyncio.Event()
        news.set()
        with self._mirror.watch_all(lambda _: news.set()):
            await self._watch.follow(session, partial(self._draw, session), news=news)
        with suppress(ConnectionError):
            self._forget(session.id)

    def of(self, uri: str) -> list[Hint]:
        """Return the hints of a document."""
        return [one for (at, _), hints in self._shown.hints.items() if at == uri for one in hints]

    def actions(self, params: Mapping[str, object]) -> list[dict[str, JsonValue]]:
        """Return what can be done with the hunks on some lines of a document."""
        if not is_asked_for(params):
            return []
        uri = (as_object(params.get("textDocument")) or {}).get("uri")
        lines = as_object(params.get("range")) or {}
        first, last = _line(lines.get("start")), _line(lines.get("end"))
        all_here = self.of(uri) if isinstance(uri, str) else []
        here = [hint for hint in all_here if hint.reaches(first, last)]
        found: list[dict[str, JsonValue]] = []
        for hint in here:
            for verb, title in (("accept", "Keep"), ("reject", "Reject")):
                found.append(
                    _action(hint, verb, f"Tiller: {title} this change", {"hunk": hint.hunk})
                )
        if here and len(all_here) > 1:
            for verb, title in (("accept", "Keep"), ("reject", "Reject")):
                found.append(
                    _action(here[0], verb, f"Tiller: {title} all in file", {"file": here[0].file})
                )
        return found

    # ------------------------------------------------------------------ drawing

    async def _draw(self, session: AgentSession) -> None:
        log = session.changes.log
        if not len(log) and not self._shown.published:
            return
        open_now: set[str] = set()
        for document in self._mirror.documents():
            open_now.add(document.uri)
            if document.path is None:
                continue
            path = Path(await to_thread.run_sync(os.path.realpath, document.path))
            now = await session.changes.at(path, document.text) if log.of(path) else None
            found = (
                () if now is None else await to_thread.run_sync(_hints, session.id, document, now)
            )
            self._shown.hints[document.uri, session.id] = found
            latest = self._mirror.get(document.uri)
            if latest is not None and latest.revision == document.revision:
                self._publish_changed(document.uri, document.version)
        for key in [one for one in self._shown.hints if one[0] not in open_now]:
            del self._shown.hints[key]
        for uri in [one for one in self._shown.published if one not in open_now]:
            self._publish(uri, None, ())
            del self._shown.published[uri]

    def _forget(self, session: SessionId) -> None:
        for key in [one for one in self._shown.hints if one[1] == session]:
            del self._shown.hints[key]
            document = self._mirror.get(key[0])
            if document is not None:
                self._publish_changed(key[0], document.version)

    def _publish_changed(self, uri: str, version: int | None) -> None:
        hints = [one for (at, _), own in self._shown.hints.items() if at == uri for one in own]
        published = self._shown.published.get(uri)
        if (published is None and not hints) or (published is not None and published[1] == hints):
            return
        self._shown.published[uri] = (version, hints)
        self._publish(uri, version, hints)

    def _publish(self, uri: str, version: int | None, hints: Sequence[Hint]) -> None:
        with_data = "dataSupport" in self._publisher.takes
        shown = [one.diagnostic(with_data=with_data) for one in hints]
        self._publisher.publish(uri, shown, by="hints", version=version)


def wants_hints(params: object, options: AgentOptions) -> bool:
    """Return whether an editor is shown hints: as its user says, else when it has no better way and knows diagnostics."""
    said = options.edit.review if options.edit is not None else None
    if said is not None:
        return said == "hints"
    if options.plain is not None and options.plain.hints is not None:
        return options.plain.hints
    capabilities = as_object((as_object(params) or {}).get("capabilities")) or {}
    document = as_object(capabilities.get("textDocument")) or {}
    return "publishDiagnostics" in document and is_plain(as_object(params) or {}, options)


def _hints(session: SessionId, document: Document, now: FileReview) -> tuple[Hint, ...]:
    lines = document.lines
    return tuple(
        Hint(
            session=session,
            hunk=one.id,
            file=document.uri,
            start=lines.position(one.start),
            end=lines.position(one.end),
            message=_message(one),
        )
        for one in now.hunks
        if one.is_pending
    )


def _message(hunk: Hunk) -> str:
    first = next((row.strip() for row in hunk.old.splitlines() if row.strip()), "")
    cut = f"{first[:SHOWN_CHARS]}…" if len(first) > SHOWN_CHARS else first
    rows = hunk.old.count("\n") + (hunk.old != "" and not hunk.old.endswith("\n"))
    more = f" and {rows - 1} more" if rows > 1 else ""
    if not hunk.old:
        return "Added by the agent."
    verb = "Changed by the agent; before" if hunk.new else "Deleted here by the agent"
    return f"{verb}: {cut}{more}"


def _action(
    hint: Hint, verb: str, title: str, about: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    return {
        "title": title,
        "kind": KIND,
        "diagnostics": [hint.diagnostic()] if "hunk" in about else [],
        "command": {
            "title": title,
            "command": f"tiller.{verb}",
            "arguments": [{"session": hint.session, **about}],
        },
    }


def is_asked_for(params: Mapping[str, object]) -> bool:
    """Return whether actions of our kind are wanted, by the params of `textDocument/codeAction`."""
    only = as_array((as_object(params.get("context")) or {}).get("only"))
    return only is None or any(_is_above(one) for one in only)


def _is_above(kind: object) -> bool:
    """Return whether a kind that was asked for has ours in it."""
    return isinstance(kind, str) and (not kind or f"{KIND}.".startswith(f"{kind}."))


def _line(position: object) -> int:
    line = (as_object(position) or {}).get("line")
    return line if isinstance(line, int) else 0


def _position(at: tuple[int, int]) -> dict[str, JsonValue]:
    return {"line": at[0], "character": at[1]}
