"""Hooks for permission requests and questions: called when one opens and when it closes; not awaited."""

from collections.abc import Callable, Coroutine
from typing import Protocol

import anyio

from agent_core.events import (
    Event,
    PermissionRequested,
    PermissionResolved,
    QuestionRequested,
    QuestionResolved,
)
from agent_core.events.values import SessionState
from agent_core.hooks import GoOn, HookInput, Hooks, PromptClosed, PromptShown
from agent_core.session.snapshot import SnapshotBuilder

StartHook = Callable[[Callable[[], Coroutine[object, None, None]]], None]
"""Begins something that nobody waits for."""


class SessionPublisher(Protocol):
    """Those who tell what happens, and the session's state."""

    @property
    def state(self) -> SessionState:
        """The session's state."""
        ...

    @property
    def picture(self) -> SnapshotBuilder:
        """Present state of the session."""
        ...

    @property
    def awaits_user(self) -> Callable[[], bool]:
        """Function that returns whether a person must answer before the session can continue."""
        ...

    def publish(self, event: Event) -> object:
        """Publish an event."""
        ...

    def set_state(self, state: SessionState) -> None:
        """Report the session's state when it changes."""
        ...


class PromptHooks:
    """Publisher that also calls hooks for the permission requests and questions among its events."""

    def __init__(self, publisher: SessionPublisher, hooks: Hooks, start: StartHook) -> None:
        self._publisher = publisher
        self._hooks = hooks
        self._start = start
        self._shown: dict[str, tuple[str, str]] = {}
        """Kind and title of what is asked, by the request."""
        self._turn = anyio.Lock()

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self._publisher.state

    @property
    def picture(self) -> SnapshotBuilder:
        """Present state of the session."""
        return self._publisher.picture

    @property
    def awaits_user(self) -> Callable[[], bool]:
        """Function that returns whether a person must answer before the session can continue."""
        return self._publisher.awaits_user

    def publish(self, event: Event) -> object:
        """Publish an event; call hooks when it opens or closes a permission request or a question."""
        result = self._publisher.publish(event)
        match event:
            case PermissionRequested(request=asked):
                self._show(asked.request, "permission", asked.title)
            case QuestionRequested(request=question):
                self._show(question.request, "question", question.questions[0].text)
            case PermissionResolved(request=request) | QuestionResolved(request=request):
                shown = self._shown.pop(request, None)
                if shown is not None:
                    self._call_hooks(PromptClosed(kind=shown[0], title=shown[1]))
            case _:
                pass
        return result

    def set_state(self, state: SessionState) -> None:
        """Report the session's state when it changes."""
        self._publisher.set_state(state)

    def _show(self, request: str, kind: str, title: str) -> None:
        if self._hooks.listens(PromptShown) or self._hooks.listens(PromptClosed):
            self._shown[request] = (kind, title)
            self._call_hooks(PromptShown(kind=kind, title=title))

    def _call_hooks(self, value: HookInput[GoOn]) -> None:
        async def tell() -> None:
            async with self._turn:
                _ = await self._hooks.ask(value)

        self._start(tell)
