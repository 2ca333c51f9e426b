"""Scripted answers to the requests of a server: dialogs, permissions, saves."""

from typing import Any

from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor

Json = dict[str, Any]


class Scripted:
    """Answers with these results in order, then with null; remembers what was asked."""

    def __init__(self, *results: Any) -> None:
        self.asked: list[Json] = []
        self._results = list(results)

    def __call__(self, params: Json, reply: Reply) -> None:
        self.asked.append(params)
        reply(self._results.pop(0) if self._results else None)


class Chooses:
    """Presses these buttons of `window/showMessageRequest` in order, by title; then dismisses.

    A title that is not offered dismisses the dialog and is kept in `missing`.
    """

    def __init__(self, *titles: str) -> None:
        self.asked: list[Json] = []
        self.missing: list[str] = []
        self._titles = list(titles)

    def __call__(self, params: Json, reply: Reply) -> None:
        self.asked.append(params)
        title = self._titles.pop(0) if self._titles else None
        offered = {action["title"]: action for action in params.get("actions") or []}
        if title is not None and title not in offered:
            self.missing.append(title)
        reply(offered.get(title) if title is not None else None)


class LeavesOpen:
    """Leaves every dialog open; a test answers through `replies` when it wants."""

    def __init__(self) -> None:
        self.asked: list[Json] = []
        self.replies: list[Reply] = []

    def __call__(self, params: Json, reply: Reply) -> None:
        self.asked.append(params)
        self.replies.append(reply)


class Saves:
    """Answers `agent/documents/save` honestly: writes the documents to the disk, says so, reports each."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def __call__(self, params: Json, reply: Reply) -> None:
        reply({"results": [self._one(item) for item in params["items"]]})

    def _one(self, item: Json) -> Json:
        uri = item["uri"]
        document = self._editor.documents.get(uri)
        if document is None:
            return {"uri": uri, "saved": False, "why": "not open"}
        if item.get("version") not in {None, document.version}:
            return {"uri": uri, "saved": False, "version": document.version, "why": "changed"}
        self._editor.save(uri)
        return {"uri": uri, "saved": True, "version": document.version}


class Reads:
    """Answers `agent/documents/read` from the editor's documents."""

    def __init__(self, editor: Editor) -> None:
        self._editor = editor

    def __call__(self, params: Json, reply: Reply) -> None:
        document = self._editor.documents.get(params["uri"])
        if document is None:
            reply.error(-32602, f"not open: {params['uri']}")
            return
        reply(
            {
                "text": document.text,
                "version": document.version,
                "dirty": document.dirty,
                "languageId": document.language,
            }
        )
