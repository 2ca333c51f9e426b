"""The view of a session on what people write for agents: commands to choose from, and reading everything anew."""

from agent_core.kernel import EntryId, JsonObject
from agent_core.kernel.errors import UsageError
from agent_core.messages import CustomMessage
from agent_core.resources.client_offers import ClientOffers
from agent_core.resources.load_result import LoadedResources
from agent_core.resources.slash_commands import Completion, SlashCommand
from agent_core.session.context import SessionContext
from agent_core.transcript.entries import CustomMessageEntry


class ResourceView:
    """Slash commands, and the resources that they come from."""

    def __init__(self, parts: SessionContext) -> None:
        self._parts = parts

    def commands(self) -> tuple[SlashCommand, ...]:
        """List the commands of extensions, the skills and the prompt templates, each name once.

        Skills and templates are those that were there when they were last read: for a run, or by `refresh`.
        """
        return self._parts.commands.all()

    async def refresh(self) -> tuple[SlashCommand, ...]:
        """Read skills and templates anew, and list everything."""
        _ = await self._parts.commands.templates.refresh()
        return self.commands()

    async def complete(self, name: str, prefix: str) -> tuple[Completion, ...]:
        """Return how the arguments of a command may go on; nothing for a name that is not there."""
        return await self._parts.commands.complete(name, prefix)

    def runs(self, text: str) -> bool:
        """Return whether words run a command when they are said alone."""
        return self._parts.commands.runs(text)

    def offered(self) -> ClientOffers:
        """List what extensions offer besides commands: keys, flags, views of their messages."""
        return self._parts.commands.offers.offered()

    def press(self, key: str) -> None:
        """Start what a key of an extension stands for; a failure of it is told as `ExtensionError`.

        Raises:
            UsageError: It stands for nothing.
        """
        self._parts.commands.press(key)

    async def rendered(self, entry: EntryId) -> JsonObject | None:
        """Return a message of an extension as the view that it has for it; None: it has none.

        Raises:
            UsageError: There is no such message in this branch.
        """
        recorder = self._parts.recorder
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
                return await self._parts.commands.rendered(message)
        what = f"no message of an extension in this branch has the id {entry!r}"
        raise UsageError(what)

    async def settled(self) -> None:
        """Wait until no command runs any more; activities that a command started may continue."""
        await self._parts.commands.settled()

    async def configure(self, values: JsonObject) -> None:
        """Apply an editor's configuration as a layer of settings, in force from the next run.

        Its problems are published as notices, and the rest applies. It never loosens the user's own settings.
        """
        if self._parts.settings is not None:
            await self._parts.settings.configure(values)

    async def reload(self) -> LoadedResources:
        """Read settings, context files, skills, templates and extensions again; in force from the next prompt."""
        loaded = LoadedResources()
        for part in self._parts.reloads:
            loaded = loaded.plus(await part.reload())
        return loaded.plus(await self._parts.commands.templates.reload())
