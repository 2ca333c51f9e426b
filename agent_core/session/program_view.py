"""The session as programs inside of it see it, extensions above all."""

from agent_core.kernel import EntryId, JsonValue
from agent_core.kernel.errors import UsageError
from agent_core.kernel.json import decode, encode
from agent_core.session.context import SessionContext
from agent_core.session.history.entries import data_entry
from agent_core.session.runs.slot import ActivitySlot
from agent_core.transcript.entries import WholeEntry

OURS = "tiller."


class ProgramView:
    """Data that a program stores in the session, and the state that it checks before it acts."""

    def __init__(self, parts: SessionContext, runs: ActivitySlot) -> None:
        self._parts = parts
        self._runs = runs

    @property
    def is_idle(self) -> bool:
        """Whether nothing goes on."""
        return self._runs.current is None

    @property
    def has_pending_messages(self) -> bool:
        """Whether words wait in the queue."""
        return bool(self._parts.inbox.items())

    async def whole(self) -> tuple[WholeEntry, ...]:
        """Return the entries of the present branch with all bodies.

        Raises:
            StorageError: The file cannot be read.
        """
        recorder = self._parts.recorder
        return await recorder.load(recorder.path())

    async def keep(self, custom_type: str, data: JsonValue = None) -> EntryId:
        """Store data in the present branch that no model sees; return the id of its entry.

        Args:
            custom_type: The type name by which the program identifies its data.
            data: JSON.

        Raises:
            UsageError: The type is empty or begins with `tiller.`, which is reserved; or the data is not JSON.
        """
        if not custom_type.strip() or custom_type.startswith(OURS):
            message = f"custom_type is {custom_type!r}; give a name of your own that does not begin with {OURS!r}"
            raise UsageError(message)
        try:
            own = decode(encode(data))
        except (TypeError, ValueError) as error:
            message = f"the data of {custom_type!r} is no JSON: {error}"
            raise UsageError(message) from error
        return await self._parts.recorder.keep(data_entry(custom_type, own))
