"""Editors that take an edit for older text: at the old places, or moved along; and one that refuses it in words."""

import asyncio
from collections.abc import Callable

from tests.support.lsp.lsp_behaviours import Honest, Json, RefusesStaleVersions
from tests.support.lsp.lsp_connection import Reply
from tests.support.lsp.lsp_editor import Editor, Operation, Past, operations
from tests.support.lsp.lsp_profiles import Profile
from tests.support.lsp.lsp_text import EditError, Lines, Splice, splices

_KINDS = ["create", "rename", "delete"]
_SYNC = {"dynamicRegistration": False, "didSave": True, "willSave": True}


class LikeKakoune:
    """kakoune-lsp: looks at no version, and answers before it has done anything.

    Args:
        delay_s: How long the answer is ahead of the change.
    """

    def __init__(self, *, delay_s: Callable[[], float] = lambda: 0.0) -> None:
        self._delay_s = delay_s

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        reply({"applied": True})
        silent = Reply(reply.request, lambda _: None)
        loop = asyncio.get_running_loop()
        loop.call_later(self._delay_s(), lambda: Honest()(editor, params, silent))


class LikeZed:
    """Zed: moves an edit from the text of its version to the text of now, and always says that it is applied.

    What was typed at either end of a replaced part stays; what was typed inside goes with it.
    """

    def __call__(self, editor: Editor, params: Json, reply: Reply) -> None:
        for step in operations(params["edit"]):
            try:
                edits = _moved_along(editor, step) if step.kind == "edit" else step
                changes = editor.perform(edits)
            except EditError:
                continue  # only logged
            if step.kind == "edit":
                editor.publish(step.uri, changes)
        reply({"applied": True})


def _moved_along(editor: Editor, step: Operation) -> Operation:
    document = editor.documents.get(step.uri)
    past = editor.history.get(step.uri, [])
    text = next((one.text for one in past if one.version == step.version), None)
    if document is None or text is None:
        return step
    later = [one for one in past if one.version >= (step.version or 0)]
    now = Lines(document.text, editor.encoding)
    moved = [
        {"range": now.range(*_carried(one, later)), "newText": one.new_text}
        for one in splices(Lines(text, editor.encoding), step.edits)
    ]
    return Operation(
        kind="edit", uri=step.uri, version=step.version, edits=tuple(moved), options={}
    )


def _carried(one: Splice, later: list[Past]) -> tuple[int, int]:
    start, end, is_insertion = one.start, one.end, one.start == one.end
    for past in later:
        for change in reversed(past.splices):
            start = _after(start, change, behind=True)
            end = start if is_insertion else _after(end, change, behind=False)
    return min(start, end), max(start, end)


def _after(at: int, change: Splice, *, behind: bool) -> int:
    grown = len(change.new_text) - (change.end - change.start)
    if change.end < at or (change.end == at and (behind or change.start < at)):
        return at + grown
    if change.start < at:
        return change.start + (len(change.new_text) if behind else 0)
    return at


SUBLIME = Profile(
    name="Sublime Text LSP",
    version="2.4.0",
    capabilities={
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {
            "applyEdit": True,
            "executeCommand": {},
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": _KINDS,
                "failureHandling": "abort",
                "changeAnnotationSupport": {"groupsOnLabel": False},
            },
            "configuration": True,
            "workspaceFolders": True,
            "codeLens": {"refreshSupport": True},
            "diagnostics": {"refreshSupport": True},
            "textDocumentContent": {"dynamicRegistration": True},
        },
        "textDocument": {
            "synchronization": {**_SYNC, "dynamicRegistration": True},
            "codeAction": {"dataSupport": True, "isPreferredSupport": True},
            "codeLens": {"dynamicRegistration": True},
            "publishDiagnostics": {"versionSupport": True, "dataSupport": True},
        },
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
            "showDocument": {"support": True},
        },
    },
    edits=lambda: RefusesStaleVersions(reason="The document version is out of date"),
)

KAKOUNE = Profile(
    name="kak-lsp",
    version="18.1.0",
    capabilities={
        "general": {"positionEncodings": ["utf-8", "utf-16"]},
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": _KINDS,
                "changeAnnotationSupport": {"groupsOnLabel": False},
            },
            "executeCommand": {"dynamicRegistration": False},
            "configuration": True,
            "workspaceFolders": False,
        },
        "textDocument": {
            "synchronization": {"dynamicRegistration": False, "didSave": True},
            "codeAction": {"dataSupport": False, "isPreferredSupport": True},
            "codeLens": {"dynamicRegistration": False},
            "publishDiagnostics": {"relatedInformation": True},
        },
        "window": {
            "workDoneProgress": True,
            "showMessage": {"messageActionItem": {"additionalPropertiesSupport": True}},
        },
    },
    edits=LikeKakoune,
)

ZED = Profile(
    name="Zed",
    version="0.205.0",
    capabilities={
        "general": {"positionEncodings": ["utf-16"]},
        "workspace": {
            "applyEdit": True,
            "workspaceEdit": {
                "documentChanges": True,
                "resourceOperations": _KINDS,
                "snippetEditSupport": True,
            },
            "configuration": True,
            "workspaceFolders": True,
            "didChangeWatchedFiles": {"dynamicRegistration": True, "relativePatternSupport": True},
            "diagnostics": {"refreshSupport": True},
        },
        "textDocument": {
            "synchronization": {"dynamicRegistration": True, "didSave": True},
            "codeAction": {"dataSupport": True},
            "publishDiagnostics": {"relatedInformation": True},
        },
        "window": {"workDoneProgress": True, "showMessage": {}},
        "experimental": {"serverStatusNotification": True, "localDocs": True},
    },
    edits=LikeZed,
)
