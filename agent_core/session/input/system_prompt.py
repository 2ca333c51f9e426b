"""The system prompt of a session: sent whole once, then only the parts that have changed, beside the user's words."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.kernel import Clock
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value
from agent_core.messages import CustomMessage, Message, Text, UserMessage, text_of
from agent_core.resources.instructions import PromptSection, render_prompt
from agent_core.session.model_selection import ModelSelection
from agent_core.session.permissions.broker import PermissionState
from agent_core.tools import ToolSpec
from agent_core.workspace import Workspace

CHANGED: Final = "tiller.prompt"  # decision 0042
"""The type of the message that gives the changed parts."""
LEAD: Final = "These parts of your instructions have changed. They stand in the place of the earlier ones of the same name."
PREAMBLE: Final = "preamble"
TOPIC_PROMPTS: Final = 2
TOPIC_CHARS: Final = 1_000

SystemPrompt = Callable[[Sequence[ToolSpec]], Awaitable[str]]
"""Builds the system prompt of a run for the tools that are active."""

Sections = Callable[[Sequence[ToolSpec], str], Awaitable[tuple[PromptSection, ...]]]
"""Writes the parts of the system prompt for the tools that are active, and for the topic of the conversation."""


class PromptCacheKey(Value, frozen=True, kw_only=True):
    """With others the whole prompt is sent anew: a provider's cache does not hold, or must not."""

    model: str | None
    trusted: bool
    """Whether the workspace is trusted: text of a workspace that is no longer trusted must leave the prompt."""
    roots: tuple[Path, ...]
    """Nor what a folder said that is none of the workspace any more."""


class PromptUpdate(Value, frozen=True, kw_only=True):
    """Parts of the system prompt for one run."""

    system: tuple[PromptSection, ...]
    changed: tuple[PromptSection, ...] = ()
    """New versions of parts of it, sent as a message in the conversation."""


class SystemPromptSync(Struct, kw_only=True):
    """Remembers what was sent as the system prompt, so that it stays the same for a provider's cache."""

    sections: Sections
    clock: Clock
    _sent: tuple[PromptSection, ...] = msgspec.field(default=())
    _in: PromptCacheKey | None = msgspec.field(default=None)

    async def of_run(
        self, specs: Sequence[ToolSpec], *, conversation: Sequence[Message], now: PromptCacheKey
    ) -> tuple[str, tuple[CustomMessage, ...]]:
        """Return the system prompt of a run, and what is to be told of it in the conversation."""
        sent = self._sent if self._in == now else ()
        prompted = prompt(
            await self.sections(specs, topic_of(conversation)),
            sent=sent,
            announced=announced_sections(conversation),
        )
        self._sent, self._in = prompted.system, now
        return render_prompt(prompted.system), self._announcement(prompted.changed)

    def _announcement(self, changed: Sequence[PromptSection]) -> tuple[CustomMessage, ...]:
        if not changed:
            return ()
        message = CustomMessage(
            custom_type=CHANGED,
            content=(Text(text=f"{LEAD}\n\n{render_prompt(changed)}"),),
            display=False,
            details={"sections": {section.name: section.text for section in changed}},
            at_ms=self.clock.now_ms(),
        )
        return (message,)


class RunSystemPrompt:
    """The system prompt of each run: whole, or only its changed parts."""

    def __init__(
        self,
        whole: SystemPrompt,
        sync: SystemPromptSync | None,
        *,
        models: ModelSelection,
        permissions: PermissionState,
        workspace: Workspace,
    ) -> None:
        """Create it.

        Args:
            whole: Builds the whole system prompt.
            sync: Sends only what has changed of it; None: it is sent whole with every run.
            models: The model in force.
            permissions: Whether the workspace is trusted.
            workspace: The folders of the session.
        """
        self.whole = whole
        self._sync = sync
        self._models = models
        self._permissions = permissions
        self._workspace = workspace

    async def of_run(
        self, specs: Sequence[ToolSpec], *, conversation: Sequence[Message]
    ) -> tuple[str, tuple[CustomMessage, ...]]:
        """Return the system prompt, and the messages about parts that have changed since it was sent."""
        if self._sync is None:
            return await self.whole(specs), ()
        now = PromptCacheKey(
            model=self._models.ref,
            trusted=self._permissions.is_trusted(),
            roots=tuple(self._workspace.roots),
        )
        return await self._sync.of_run(specs, conversation=conversation, now=now)


def prompt(
    now: Sequence[PromptSection], *, sent: Sequence[PromptSection], announced: Mapping[str, str]
) -> PromptUpdate:
    """Return the system prompt to send: pure.

    Args:
        now: The present parts.
        sent: The system prompt that was sent last; empty: the whole prompt is sent again.
        announced: The newest text of each part that the conversation has received since.
    """
    names = {section.name for section in now}
    # What is not said any more can only be left out, not taken back; of the preamble nobody can speak by name.
    is_whole = any(
        section.name not in names or (section.name == PREAMBLE and section not in now)
        for section in sent
    )
    system = tuple(now) if is_whole or not sent else tuple(sent)
    last_sent = {section.name: section.text for section in system} | dict(announced)
    changed = [section for section in now if last_sent.get(section.name) != section.text]
    gone = [
        PromptSection(name=name, text="(nothing any more)")
        for name in announced
        if name not in names
    ]
    stale = [section for section in gone if last_sent.get(section.name) != section.text]
    return PromptUpdate(system=system, changed=(*changed, *stale))


def topic_of(conversation: Sequence[Message]) -> str:
    """Return what the user wrote last: the beginning of the last two prompts, the newer first."""
    prompts = (
        text_of(one.content) for one in reversed(conversation) if isinstance(one, UserMessage)
    )
    return "\n".join(text[:TOPIC_CHARS] for text in islice(prompts, TOPIC_PROMPTS))


def announced_sections(conversation: Sequence[Message]) -> Mapping[str, str]:
    """Read what a conversation says of changed parts."""
    sections_by_name: dict[str, str] = {}
    if CustomMessage not in map(type, conversation):
        return sections_by_name
    for message in conversation:
        if not isinstance(message, CustomMessage) or message.custom_type != CHANGED:
            continue
        sections = as_object(as_object(message.details).get("sections"))
        sections_by_name.update(
            {name: text for name, text in sections.items() if isinstance(text, str)}
        )
    return sections_by_name
