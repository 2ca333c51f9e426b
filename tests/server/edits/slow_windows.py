"""Editors at the other end of a slow line, which gather what they tell, and answer late, twice or never."""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any, Literal, TypeAlias

from typing_extensions import override

from tests.support.clients.editors import Window, tell
from tests.support.lsp.lsp_behaviours import EditBehaviour, Json
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor as Desk
from tests.support.lsp.lsp_profiles import Profile

Versions: TypeAlias = Literal["checked", "checked but for 0", "ignored"]
"""How an editor looks at the versions of edits. One that does not look puts an edit into text that it was not made for;
what was typed there is known only if it is told as a change of its own. Of an edit that mends another such an editor makes
no secret here."""


Numbering: TypeAlias = Literal["counted", "none", "odd"]
"""Which versions an editor gives: `odd` ones jump far ahead and come twice, so that an edit may be for two texts."""


class Lane:
    """One direction of a connection: everything arrives, in order, some time later."""

    def __init__(self, delay_s: Callable[[], float]) -> None:
        self._delay_s = delay_s
        self._waiting: deque[Callable[[], None]] = deque()
        self._last_s = 0.0

    def put(self, step: Callable[[], None]) -> None:
        """Send."""
        loop = asyncio.get_running_loop()
        self._last_s = max(self._last_s, loop.time() + self._delay_s())
        self._waiting.append(step)
        loop.call_at(self._last_s, self._arrives)

    def _arrives(self) -> None:
        self._waiting.popleft()()

    def is_last(self, step: Callable[[], None]) -> bool:
        """Tell whether nothing was sent after a step that is still on its way."""
        return bool(self._waiting) and self._waiting[-1] is step


class SlowWindow(Window):
    """An editor at the other end of a slow line; it may tell of several changes at once."""

    def __init__(
        self,
        profile: Profile,
        *,
        delay_s: Callable[[], float],
        gathers: bool,
        gives_versions: bool = True,
        **more: Any,
    ) -> None:
        super().__init__(profile, **more)
        self._gives_versions = gives_versions
        self._down, self._up = Lane(delay_s), Lane(delay_s)
        self._gathers = gathers
        self._latest: tuple[Callable[[], None], Json] | None = None

    @override
    def _to_editor(self, step: Callable[[], None]) -> None:
        self._down.put(step)

    @override
    def _to_server(self, step: Callable[[], None]) -> None:
        self._up.put(step)

    @override
    def _later_notify(self, method: str, params: Json) -> None:
        if method == "textDocument/didChange" and self._gathers and self._latest is not None:
            step, earlier = self._latest
            if self._up.is_last(step):
                earlier["contentChanges"] += params["contentChanges"]
                earlier["textDocument"] = params["textDocument"]
                return

        def arrives() -> None:
            document = params["textDocument"]
            if not self._gives_versions and "version" in document:
                params["textDocument"] = {**document, "version": None}
            tell(self.mirror, method, params)

        self._latest = (arrives, params) if method == "textDocument/didChange" else None
        self._up.put(arrives)


class Unreliable:
    """Does as another behaviour, but answers late, twice or never now and then, or takes its time to apply."""

    def __init__(self, then: EditBehaviour, chosen: random.Random, *, versions: Versions) -> None:
        self._then = then
        self._chosen = chosen
        self._versions = versions

    def __call__(self, editor: Desk, params: Json, reply: Reply) -> None:
        loop = asyncio.get_running_loop()
        send = reply._send
        luck = self._chosen.random()
        if luck < 0.03 and self._versions != "ignored":
            return  # neither applies nor answers
        if luck < 0.06:
            reply = Reply(reply.request, lambda _: None)
        elif luck < 0.10:
            late_s = self._chosen.uniform(0.1, 12)
            reply = Reply(reply.request, lambda told: _later(loop, late_s, send, told))
        elif luck < 0.14:
            reply = Reply(reply.request, lambda told: _twice(send, told))
        elif luck < 0.18 and self._versions == "checked":
            loop.call_later(
                self._chosen.uniform(0.1, 12), lambda: self._then(editor, params, reply)
            )
            return
        self._then(editor, params, reply)


def _twice(send: Callable[[Json], None], told: Json) -> None:
    send(told)
    send(told)


def _later(
    loop: asyncio.AbstractEventLoop, delay_s: float, send: Callable[[Json], None], told: Json
) -> None:
    loop.call_later(delay_s, lambda: send(told))
