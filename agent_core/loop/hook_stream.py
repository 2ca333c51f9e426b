"""Notification of hooks about growing text while it grows: at intervals, in order, without delaying its source."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import anyio

from agent_core.hooks import GoOn, HookInput, Hooks

INTERVAL_S = 0.1
"""At least this long between two times."""


class TextSink(Protocol):
    """A text that grows."""

    def add(self, text: str) -> None:
        """More of it came."""
        ...

    async def finish(self) -> None:
        """Wait until hooks were told all of it."""
        ...


class NullHookStream:
    """Something that grows while nobody listens."""

    def add(self, text: str) -> None:
        """More of it came."""
        del text

    async def finish(self) -> None:
        """Wait for nothing."""


class HookStream:
    """Something that grows while hooks listen."""

    def __init__(self, hooks: Hooks, value_of: Callable[[str], HookInput[GoOn]]) -> None:
        self._hooks = hooks
        self._value_of = value_of
        self._waiting: list[str] = []
        self._news = anyio.Event()
        self._over = anyio.Event()
        self._delivered = anyio.Event()

    def add(self, text: str) -> None:
        """More of it came."""
        self._waiting.append(text)
        self._news.set()

    async def finish(self) -> None:
        """Wait until hooks were told all of it."""
        self._over.set()
        self._news.set()
        await self._delivered.wait()

    async def deliver(self) -> None:
        """Notify hooks of added text, at intervals, until `finish` is called."""
        while self._waiting or not self._over.is_set():
            await self._news.wait()
            self._news = anyio.Event()
            if self._waiting:
                text = "".join(self._waiting)
                self._waiting.clear()
                _ = await self._hooks.ask(self._value_of(text))
                with anyio.move_on_after(INTERVAL_S):
                    await self._over.wait()
        self._delivered.set()


@asynccontextmanager
async def hook_stream(
    hooks: Hooks, point: type[HookInput[GoOn]], value_of: Callable[[str], HookInput[GoOn]]
) -> AsyncGenerator[TextSink]:
    """Open a growing text; the hooks have received all of it when the context is left without an error.

    Args:
        hooks: The hooks to notify.
        point: The hook point; without a listener there, nothing is done.
        value_of: Makes the hook input from the text added since the last notification.
    """
    if not hooks.listens(point):
        yield NullHookStream()
        return
    heard = HookStream(hooks, value_of)
    failure: Exception | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(heard.deliver)
        try:
            yield heard
            await heard.finish()
        except Exception as error:  # noqa: BLE001 - kept from the task group, which would wrap it; raised below
            failure = error
            group.cancel_scope.cancel()
    if failure is not None:
        raise failure
