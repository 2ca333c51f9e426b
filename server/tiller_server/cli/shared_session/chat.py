"""A session that the daemon has loaded, as a conversation uses it."""

from collections.abc import Collection, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from agent_core.assembly import SessionRequest
from agent_core.assembly.library import open_library
from agent_core.kernel import JsonObject, SessionId, SystemClock
from agent_core.resources.paths import app_paths
from agent_core.transcript import AnyEntry
from tiller_server.agent_client.connection import AgentClient
from tiller_server.agent_client.session import SharedSession
from tiller_server.cli.chat.completion import InputSuggestion, command_suggestions
from tiller_server.cli.chat.context import ChatDialog, ChatLineOutcome
from tiller_server.cli.chat.slash_commands import COMMANDS as LOCAL, OTHER_NAMES
from tiller_server.cli.shared_session.commands import COMMANDS, run_command
from tiller_server.cli.terminal.permission_prompt import BY


class SharedPermissions:
    """Answers the permission requests of the session."""

    def __init__(self, session: SharedSession) -> None:
        self._session = session

    def answer(self, request: str, option: str, *, note: str | None, by: str) -> None:
        """Answer a request; the daemon drops an answer that comes after another."""
        _ = by
        noted: JsonObject = {} if note is None else {"note": note}
        self._session.post(
            "agent/permission/respond", {"request": request, "option": option, **noted}
        )


class SharedQuestions:
    """Answers the questions of the session."""

    def __init__(self, session: SharedSession) -> None:
        self._session = session

    def answer(self, request: str, answers: Mapping[str, object] | None, *, by: str) -> None:
        """Answer a question; the daemon drops an answer that comes after another. None: the user declined."""
        _ = by
        given: JsonObject = (
            {"cancelled": True} if answers is None else {"answers": msgspec.to_builtins(answers)}
        )
        self._session.post("agent/question/respond", {"request": request, **given})


class SharedChatSession(SharedSession):
    """A session of the daemon in a conversation."""

    def __init__(self, connection: AgentClient, request: SessionRequest) -> None:
        """Prepare it; `open` comes first.

        Args:
            connection: The connection.
            request: How a session of this terminal's own would be opened.
        """
        super().__init__(connection, request.paths or app_paths(request.env), name=BY)
        self._request = request
        self.permissions = SharedPermissions(self)
        self.questions = SharedQuestions(self)

    def request_for(self, session: str) -> SessionRequest:
        """Return the request that opens another session in this terminal."""
        return replace(self._request, session=session)

    async def all_entries(self) -> Sequence[AnyEntry]:
        """Read the entries of all branches from the file of the session.

        Raises:
            StorageError: The file cannot be read.
        """
        async with open_library(self._paths, clock=SystemClock()) as library:
            return (await library.read(SessionId(self.id))).entries

    @property
    def commands(self) -> Collection[str]:
        """Names of the commands of the conversation itself, aliases included."""
        return (*LOCAL, *OTHER_NAMES)

    @property
    def title(self) -> str:
        """The title that an extension gave last; empty when there is none."""
        return self.state.extension_title

    def suggestions(self, line: str) -> Sequence[InputSuggestion]:
        """Return the commands that a line could become."""
        if not line.startswith("/") or any(one.isspace() for one in line):
            return ()
        rows = {name: (LOCAL[name].hint, LOCAL[name].about) for name in COMMANDS}
        return command_suggestions(
            line[1:], rows | {name: ("", about) for name, about in self.offered.items()}
        )

    def runs(self, text: str) -> bool:
        """Return False: the panel and the terminal see what a command of an extension shows."""
        _ = text
        return False

    async def run_command(self, dialog: ChatDialog, name: str, arguments: str) -> ChatLineOutcome:
        """Run a command of the conversation."""
        dialog.tell(f"> /{name} {arguments}".rstrip())
        return await run_command(self, dialog, name, arguments)
