"""Slash commands and resources of a session."""

import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Protocol

import anyio
from anyio.abc import TaskGroup

from agent_core.events import Event, ExtensionError, Notice
from agent_core.kernel import EntryId, JsonObject
from agent_core.kernel.errors import UsageError
from agent_core.kernel.text import readable
from agent_core.messages import CustomMessage, Text, UserContent
from agent_core.resources.load_result import LoadedResources, Reloadable
from agent_core.resources.offers import (
    ClientOffers,
    CommandSource,
    Completion,
    NoOffers,
    OfferSource,
    SlashCommand,
    SlashInvocation,
    slashed,
)
from agent_core.session.config import FollowsSettings
from agent_core.session.history.recorder import Background, Recorder
from agent_core.transcript.entries import CustomMessageEntry

EVENT = "command"
"""Event name under which a failure of a command is reported, beside the name of the command."""

RENDERER = "message_renderer"

log = logging.getLogger(__name__)


class TemplateSource(Protocol):
    """Knows what can be written out: skills and prompt templates."""

    def commands(self) -> Sequence[SlashCommand]:
        """List them as they were when they were last read."""
        ...

    def look_also(self, *, skills: Sequence[str], prompts: Sequence[str]) -> None:
        """Look in these places too from now on, in the place of those that were named so before."""
        ...

    def own_commands(self) -> Sequence[CommandSource]:
        """Return the sources of Tiller's own commands."""
        ...

    async def refresh(self) -> tuple[str, ...]:
        """Read them anew; gives what is wrong with them, a sentence each."""
        ...

    async def reload(self) -> LoadedResources:
        """Read them anew, with all else that people write for agents; says what there is."""
        ...

    async def expand(self, said: SlashInvocation) -> str | None:
        """Return the words that are meant, read anew; None when it knows nothing of that name."""
        ...


class NoTemplates:
    """Nothing can be written out."""

    def commands(self) -> Sequence[SlashCommand]:
        """List nothing."""
        return ()

    def look_also(self, *, skills: Sequence[str], prompts: Sequence[str]) -> None:
        """Look nowhere."""
        _ = skills, prompts

    def own_commands(self) -> Sequence[CommandSource]:
        """Return none."""
        return ()

    async def refresh(self) -> tuple[str, ...]:
        """Find nothing wrong."""
        return ()

    async def reload(self) -> LoadedResources:
        """Find nothing."""
        return LoadedResources()

    async def expand(self, said: SlashInvocation) -> str | None:
        """Know nothing."""
        _ = said


class SlashCommands:
    """The commands of one session. Those that run code go before those that become words."""

    def __init__(
        self,
        templates: TemplateSource,
        *,
        background: Background,
        publish: Callable[[Event], object],
    ) -> None:
        self.sources: list[CommandSource] = []
        """Sources of commands; each source adds itself. Of commands with the same name, the first one is used."""
        self.templates = templates
        self.offers: OfferSource = NoOffers()
        """Offers of extensions besides commands."""
        self._running: set[object] = set()
        self._settled = anyio.Event()
        self._background = background
        self._publish = publish

    def all(self) -> tuple[SlashCommand, ...]:
        """List what can be written after a slash, each name once."""
        brought = (command for source in self._all_sources() for command in source.commands())
        found: dict[str, SlashCommand] = {}
        for command in (*brought, *self.templates.commands()):
            _ = found.setdefault(command.name, command)
        return tuple(found.values())

    async def complete(self, name: str, prefix: str) -> tuple[Completion, ...]:
        """Return how the arguments of a command may go on."""
        source = self._source_of(name)
        return () if source is None else tuple(await source.complete(name, prefix))

    def runs(self, text: str) -> bool:
        """Return whether words run a command when they are said alone."""
        said = slashed(text)
        return said is not None and self._source_of(said.name) is not None

    def start(self, content: Sequence[UserContent]) -> bool:
        """Start the command that words name; no when they name none. It runs beside what goes on."""
        said = _said(content)
        source = None if said is None else self._source_of(said.name)
        group = self._background.group
        if said is None or source is None or group is None:
            return False
        self._begin(group, f"/{said.name}", partial(source.run, said.name, said.arguments))
        return True

    def press(self, key: str) -> None:
        """Start what a key of an extension stands for. It runs beside what goes on.

        Raises:
            UsageError: It stands for nothing.
        """
        keys = [one.key for one in self.offers.offered().keys]
        group = self._background.group
        if key.lower() not in keys or group is None:
            message = (
                f"no extension offers the key {key!r}; offered are {', '.join(keys) or 'none'}"
            )
            raise UsageError(message)
        self._begin(group, key.lower(), partial(self.offers.press, key))

    async def settled(self) -> None:
        """Wait until no command runs."""
        while self._running:
            await self._settled.wait()

    async def expand(self, content: tuple[UserContent, ...]) -> tuple[UserContent, ...] | None:
        """Return words with the skill or template that they begin with written out; None when they name none."""
        said = _first_said(content)
        text = None if said is None else await self.templates.expand(said)
        return None if text is None else (Text(text=text), *content[1:])

    async def rendered(self, message: CustomMessage) -> JsonObject | None:
        """Return a message of an extension as the view that it has for it; None: it has none, or it failed, which is told."""
        try:
            return await self.offers.rendered(message)
        except Exception as error:
            name = message.custom_type
            log.exception("the view of %s failed", readable(name))
            text = f"{type(error).__name__}: {error}"
            _ = self._publish(ExtensionError(extension=name, event=RENDERER, error=text))
            return None

    def _all_sources(self) -> Sequence[CommandSource]:
        return (*self.sources, *self.templates.own_commands())

    def _source_of(self, name: str) -> CommandSource | None:
        for source in self._all_sources():
            if any(command.name == name for command in source.commands()):
                return source
        return None

    def _begin(
        self, group: TaskGroup, name: str, work: Callable[[], Awaitable[str | None]]
    ) -> None:
        running = object()
        self._running.add(running)
        group.start_soon(self._run, name, work, running)

    async def _run(
        self, name: str, work: Callable[[], Awaitable[str | None]], running: object
    ) -> None:
        try:
            if text := await work():
                _ = self._publish(Notice(level="info", text=text))
        except Exception as error:
            # Code of others: that it fails is told, and ends nothing. The traceback is for the log of whoever wrote it.
            log.warning("%s failed", readable(name), exc_info=True)
            notes: list[str] = getattr(error, "__notes__", [])
            text = " ".join((f"{type(error).__name__}: {error}", *map(str.strip, notes)))
            _ = self._publish(ExtensionError(extension=name, event=EVENT, error=text))
        finally:
            self._running.discard(running)
            self._settled.set()
            self._settled = anyio.Event()


def may_name_template(content: Sequence[UserContent]) -> bool:
    """Return whether words begin as those do that are written out."""
    return _first_said(content) is not None


def _first_said(content: Sequence[UserContent]) -> SlashInvocation | None:
    match content:
        case [Text(text=text), *_]:
            return slashed(text)
        case _:
            return None


def _said(content: Sequence[UserContent]) -> SlashInvocation | None:
    """A command takes words alone: beside a picture they are said to the model."""
    match content:
        case [Text(text=text)]:
            return slashed(text)
        case _:
            return None


class ResourceView:
    """Slash commands, and the resources that they come from."""

    def __init__(
        self,
        commands: SlashCommands,
        *,
        recorder: Recorder,
        settings: FollowsSettings | None,
        reloads: Sequence[Reloadable],
    ) -> None:
        """Create the view.

        Args:
            commands: The slash commands.
            recorder: Reader of the session's entries.
            settings: The settings that the session follows; None: it has the fixed options of its creator.
            reloads: Resources that a reload reads again, in this order; others may add themselves.
        """
        self._commands = commands
        self._recorder = recorder
        self._settings = settings
        self._reloads = reloads

    def commands(self) -> tuple[SlashCommand, ...]:
        """List the commands of extensions, the skills and the prompt templates, each name once.

        Skills and templates are those that were there when they were last read: for a run, or by `refresh`.
        """
        return self._commands.all()

    async def refresh(self) -> tuple[SlashCommand, ...]:
        """Read skills and templates anew, and list everything."""
        _ = await self._commands.templates.refresh()
        return self.commands()

    async def complete(self, name: str, prefix: str) -> tuple[Completion, ...]:
        """Return how the arguments of a command may go on; nothing for a name that is not there."""
        return await self._commands.complete(name, prefix)

    def runs(self, text: str) -> bool:
        """Return whether words run a command when they are said alone."""
        return self._commands.runs(text)

    def offered(self) -> ClientOffers:
        """List what extensions offer besides commands: keys, flags, views of their messages."""
        return self._commands.offers.offered()

    def press(self, key: str) -> None:
        """Start what a key of an extension stands for; a failure of it is told as `ExtensionError`.

        Raises:
            UsageError: It stands for nothing.
        """
        self._commands.press(key)

    async def rendered(self, entry: EntryId) -> JsonObject | None:
        """Return a message of an extension as the view that it has for it; None: it has none.

        Raises:
            UsageError: There is no such message in this branch.
        """
        recorder = self._recorder
        found = [one for one in recorder.path() if one.id == entry]
        for one in await recorder.load(found):
            if isinstance(one, CustomMessageEntry):
                message = CustomMessage(
                    custom_type=one.custom_type,
                    content=one.content,
                    display=one.display,
                    details=one.details,
                    at_ms=one.at_ms,
                )
                return await self._commands.rendered(message)
        what = f"no message of an extension in this branch has the id {entry!r}"
        raise UsageError(what)

    async def settled(self) -> None:
        """Wait until no command runs any more; activities that a command started may continue."""
        await self._commands.settled()

    async def configure(self, values: JsonObject) -> None:
        """Apply an editor's configuration as a layer of settings, in force from the next run.

        Its problems are published as notices, and the rest applies. It never loosens the user's own settings.
        """
        if self._settings is not None:
            await self._settings.configure(values)

    async def reload(self) -> LoadedResources:
        """Read settings, context files, skills, templates and extensions again; in force from the next prompt."""
        loaded = LoadedResources()
        for part in self._reloads:
            loaded = loaded.plus(await part.reload())
        return loaded.plus(await self._commands.templates.reload())
