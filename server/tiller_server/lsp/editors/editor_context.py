"""Focus of a user in one editor, as the editor last reported it."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from agent_core.kernel.text import one_line
from tiller_server.lsp.documents.uris import path_of
from tiller_server.lsp.wire.runs import EditorContext, EditorFocus

INSERT: Final = "insert"
MOST_NAMED: Final = 30
"""How many open files the model is told of."""


class EditorContextTracker:
    """Follows `agent/editorContext` of one connection. An editor that never sends it has no focus and no mode."""

    def __init__(self) -> None:
        self._latest: EditorContext | None = None
        self._news = asyncio.Event()
        self._sent: dict[str, str] = {}

    @property
    def latest(self) -> EditorContext | None:
        """Newest reported context; None before the first report."""
        return self._latest

    def take(self, context: EditorContext) -> str | None:
        """Store a newer context; return the URI of its focus, None when the focus is absent or unchanged."""
        before, self._latest = self._latest, context
        news, self._news = self._news, asyncio.Event()
        news.set()
        if context.focus is None or (before is not None and before.focus == context.focus):
            return None
        return context.focus.uri

    def is_inserting(self, uri: str) -> bool:
        """Whether the user is about to type into a document."""
        focus = None if self._latest is None else self._latest.focus
        return focus is not None and focus.uri == uri and focus.mode == INSERT

    async def changed(self, *, timeout_s: float) -> None:
        """Wait for something newer, no longer than that."""
        news = self._news
        try:
            async with asyncio.timeout(timeout_s):
                await news.wait()
        except TimeoutError:
            return

    def news_for(self, session: str, text: str | None) -> str | None:
        """Return the words if that session does not have them already; `told` says when it has."""
        return None if text is None or self._sent.get(session) == text else text

    def mark_sent(self, session: str, text: str) -> None:
        """Record that a session has these words."""
        self._sent[session] = text


def describe_context(context: EditorContext, *, roots: Sequence[Path]) -> str | None:
    """Describe in lines the documents that the user looks at; None when no file of the workspace is among them. Pure.

    A file outside of the roots is not named: its name alone may be private.
    """
    lines = [*_focus(context.focus, roots)]
    for title, uris in (("unsaved", context.dirty or ()), ("open", context.open)):
        names = [name for one in uris if (name := _name(one, roots)) is not None]
        if names:
            more = len(names) - MOST_NAMED
            behind = f" and {more} more" if more > 0 else ""
            lines.append(f"{title}: {', '.join(names[:MOST_NAMED])}{behind}")
    return "\n".join(lines) or None


def _focus(focus: EditorFocus | None, roots: Sequence[Path]) -> Iterator[str]:
    name = None if focus is None else _name(focus.uri, roots)
    if focus is None or name is None:
        return
    places: list[str] = []
    for one in focus.selections[:MOST_NAMED]:
        first, last = one.start.line + 1, one.end.line + 1
        if one.start == one.end:
            places.append(f"cursor in line {first}")
        else:
            places.append(
                f"selected: lines {first} to {last}"
                if last > first
                else f"selected: in line {first}"
            )
    if focus.visible:
        shown = focus.visible[0]
        places.append(f"visible: lines {shown.start.line + 1} to {shown.end.line + 1}")
    yield f"focus: {name}" + (f" ({'; '.join(places)})" if places else "")


def _name(uri: str, roots: Sequence[Path]) -> str | None:
    path = path_of(uri)
    if path is None or ".." in path.parts:
        return None
    root = next((one for one in roots if path.is_relative_to(one)), None)
    if root is None:
        return None
    # Of further roots the whole path is given: a bare name would be looked for in the first.
    return one_line(str(path.relative_to(root) if root == roots[0] else path))
