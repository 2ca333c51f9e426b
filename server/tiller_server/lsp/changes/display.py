"""How one client sees what waits for its user's word: as hints beside the text, or as change sets that it draws itself."""

import anyio

from agent_core.events import EventSubscription, RunEnded
from agent_core.kernel import JsonValue, RunId
from agent_core.kernel.redaction.redactor import Redactor
from tiller_server.lsp.changes.diagnostics import ChangeDiagnostics, DisplayedSession
from tiller_server.lsp.changes.diagnostics_publisher import DiagnosticsPublisher
from tiller_server.lsp.changes.diff_document import DiffDocument
from tiller_server.lsp.changes.findings import FindingDiagnostics
from tiller_server.lsp.changes.lens_refresh import LensRefresh
from tiller_server.lsp.editors.editor import Editor
from tiller_server.lsp.encode.change_sets import change_set
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.wire.capabilities import AgentOptions


class ChangeDisplay:
    """Shows one client the changes of the sessions that it is attached to."""

    def __init__(
        self,
        connection: LspConnection,
        editor: Editor,
        options: AgentOptions,
        *,
        redactor: Redactor,
    ) -> None:
        self._connection = connection
        self._editor = editor
        self._redactor = redactor
        publisher = DiagnosticsPublisher(connection)
        self.hints = ChangeDiagnostics(connection, editor.mirror, options, publisher=publisher)
        """Hints beside the text."""
        self.findings = FindingDiagnostics(editor.mirror, publisher=publisher)
        """Findings of a review."""
        self.diff = DiffDocument(connection, editor, redactor=redactor)
        """All of it in one document."""
        self._lenses = LensRefresh(connection, options)
        self._readers: list[EventSubscription] = []

    def close(self) -> None:
        """Stop; the client has left."""
        self.hints.close()
        self.findings.close()
        self.diff.close()
        self._lenses.close()
        for reader in self._readers:
            reader.close()

    async def follow(self, open_session: DisplayedSession) -> None:
        """Show a session's changes until it is over, or the client has left."""
        async with anyio.create_task_group() as group:
            group.start_soon(self.hints.follow, open_session)
            group.start_soon(self.diff.follow, open_session)
            group.start_soon(self._lenses.follow, open_session)
            group.start_soon(self._show_sets, open_session)

    async def of_run(self, open_session: DisplayedSession, run: RunId) -> dict[str, JsonValue]:
        """Return what a run changed, as this client counts characters."""
        changes = await open_session.session.changes.of_run(run)
        encoding = self._editor.mirror.encoding
        return await change_set(changes, encoding=encoding, redactor=self._redactor)

    async def _show_sets(self, open_session: DisplayedSession) -> None:
        """Send the change set of each run that changed files, if the client declared that it draws change sets."""
        if not self._editor.capabilities.draws_changes:
            return
        reader = open_session.session.subscribe(only=(RunEnded,))
        self._readers.append(reader)
        async for stamped in reader:
            if isinstance(stamped.event, RunEnded) and stamped.event.changes.files:
                changes = await self.of_run(open_session, stamped.event.run)
                params = {"session": open_session.session.id, "changeSet": changes}
                _ = self._connection.notify("agent/changes/show", params)
        self._readers.remove(reader)
