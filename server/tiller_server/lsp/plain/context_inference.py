"""Focus of a user in an editor that does not report it, inferred from its documents."""

from tiller_server.lsp.plain.last_location import LastLocation
from tiller_server.lsp.sessions.client import ConnectedClient
from tiller_server.lsp.wire.blocks import Position, Range
from tiller_server.lsp.wire.runs import EditorContext, EditorFocus


def infer_editor_context(
    client: ConnectedClient, last_location: LastLocation
) -> EditorContext | None:
    """Return what the user probably looks at; None: the editor tells it by itself, or nothing is open."""
    if client.editor.context_tracker.latest is not None:
        return None
    place = last_location.latest()
    if place is None:
        return None
    selections: list[Range] = []
    if place.lines0 is not None:
        first, last = place.lines0
        end = Position(line=last, character=0)
        selections.append(Range(start=Position(line=first, character=0), end=end))
    document = client.editor.mirror.get(place.uri)
    return EditorContext(
        focus=EditorFocus(
            uri=place.uri,
            version=0 if document is None else max(document.version or 0, 0),
            selections=selections,
            visible=[],
        ),
        open=last_location.files(),
    )
