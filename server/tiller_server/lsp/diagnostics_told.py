"""What this server tells an editor about documents: several parts have something to say, and each message replaces the last."""

from collections.abc import Sequence
from typing import Final

from agent_core.kernel import JsonValue
from tiller_server.lsp.codec import as_object
from tiller_server.lsp.protocol import Connection


class DiagnosticsTold:
    """The diagnostics of one editor, by document and by who has them to tell."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._known: dict[str, dict[str, Sequence[JsonValue]]] = {}
        self.takes: Final = _takes(connection.client_params)
        """What the editor takes beside the plain diagnostics of old, `versionSupport` for one."""

    def tell(
        self, uri: str, diagnostics: Sequence[JsonValue], *, by: str, version: int | None
    ) -> None:
        """Replace what one part has told about a document; what the others told stays."""
        parts = self._known.setdefault(uri, {})
        parts[by] = tuple(diagnostics)
        together = [one for part in parts.values() for one in part]
        if not together:
            del self._known[uri]
        told: dict[str, JsonValue] = {"uri": uri, "diagnostics": together}
        if version is not None and "versionSupport" in self.takes:
            told["version"] = version
        _ = self._connection.notify("textDocument/publishDiagnostics", told)


def _takes(params: object) -> frozenset[str]:
    known: object = params
    for name in ("capabilities", "textDocument", "publishDiagnostics"):
        known = (as_object(known) or {}).get(name)
    return frozenset(name for name, has in (as_object(known) or {}).items() if has is True)
