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
from agent_core.hooks import GoOn, Hooks, Input, PromptClosed, PromptShown
from agent_core.session.snapshot import Picture

Start = Callable[[Callable[[], Coroutine[object, None, None]]], None]
"""Begins something that nobody waits for."""


class Teller(Protocol):
    """Those who tell what happens, and the session's state."""

    @property
    def state(self) -> SessionState:
        """The session's state."""
        ...

    @property
    def picture(self) -> Picture:
        """Present state of the session."""
        ...

    @property
    def is_asked(self) -> Callable[[], bool]:
        """Function that returns whether a person must answer before the session can continue."""
        ...

    def say(self, event: Event) -> object:
        """Publish an event."""
        ...

    def say_state(self, state: SessionState) -> None:
        """Report the session's state when it changes."""
        ...


class PromptTeller:
    """Publisher that also calls hooks for the permission requests and questions among its events."""

    def __init__(self, voice: Teller, hooks: Hooks, start: Start) -> None:
        self._voice = voice
        self._hooks = hooks
        self._start = start
        self._shown: dict[str, tuple[str, str]] = {}
        """Kind and title of what is asked, by the request."""
        self._turn = anyio.Lock()

    @property
    def state(self) -> SessionState:
        """The session's state."""
        return self._voice.state

    @property
    def picture(self) -> Picture:
        """Present state of the session."""
        return self._voice.picture

    @property
    def is_asked(self) -> Callable[[], bool]:
        """Function that returns whether a person must answer before the session can continue."""
        return self._voice.is_asked

    def say(self, event: Event) -> object:
        """Publish an event; call hooks when it opens or closes a permission request or a question."""
        told = self._voice.say(event)
        match event:
            case PermissionRequested(request=asked):
                self._show(asked.request, "permission", asked.title)
            case QuestionRequested(request=question):
                self._show(question.request, "question", question.questions[0].text)
            case PermissionResolved(request=request) | QuestionResolved(request=request):
                shown = self._shown.pop(request, None)
                if shown is not None:
                    self._tell(PromptClosed(kind=shown[0], title=shown[1]))
            case _:
                pass
        return told

    def say_state(self, state: SessionState) -> None:
        """Report the session's state when it changes."""
        self._voice.say_state(state)

    def _show(self, request: str, kind: str, title: str) -> None:
        if self._hooks.listens(PromptShown) or self._hooks.listens(PromptClosed):
            self._shown[request] = (kind, title)
            self._tell(PromptShown(kind=kind, title=title))

    def _tell(self, value: Input[GoOn]) -> None:
        async def tell() -> None:
            async with self._turn:
                _ = await self._hooks.ask(value)

        self._start(tell)
