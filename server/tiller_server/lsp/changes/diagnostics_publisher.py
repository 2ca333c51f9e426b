"""Diagnostics that this server publishes to an editor: each message replaces the last, so all parts are merged."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel import JsonValue
from tiller_server.lsp.jsonrpc.lsp_connection import LspConnection
from tiller_server.lsp.jsonrpc.messages import as_object


class DiagnosticsPublisher:
    """The diagnostics of one editor, by document and by who has them to tell."""

    def __init__(self, connection: LspConnection) -> None:
        self._connection = connection
        self._published: dict[str, dict[str, Sequence[JsonValue]]] = {}
        self.takes: Final = _takes(connection.client_params)
        """Optional features of diagnostics that the editor supports, such as `versionSupport`."""

    def publish(
        self, uri: str, diagnostics: Sequence[JsonValue], *, by: str, version: int | None
    ) -> None:
        """Replace the diagnostics of one part for a document; those of the other parts stay."""
        parts = self._published.setdefault(uri, {})
        parts[by] = tuple(diagnostics)
        together = [one for part in parts.values() for one in part]
        if not together:
            del self._published[uri]
        params: dict[str, JsonValue] = {"uri": uri, "diagnostics": together}
        if version is not None and "versionSupport" in self.takes:
            params["version"] = version
        _ = self._connection.notify("textDocument/publishDiagnostics", params)


def _takes(params: object) -> frozenset[str]:
    capability: object = params
    for name in ("capabilities", "textDocument", "publishDiagnostics"):
        capability = (as_object(capability) or {}).get(name)
    return frozenset(name for name, has in (as_object(capability) or {}).items() if has is True)
