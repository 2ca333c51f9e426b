"""The editor's side of documents: its own texts and versions, and what it tells the server of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote, urlsplit

from tests.support.lsp.lsp_text import (
    EditError,
    Encoding,
    Lines,
    Splice,
    content_changes,
    spliced,
    splices,
)

Json = dict[str, Any]
FULL_SYNC = 1


@dataclass(slots=True, kw_only=True)
class Document:
    """One open document as its user sees it."""

    uri: str
    language: str
    version: int
    text: str
    dirty: bool = False

    @property
    def sha256(self) -> str:
        """The hash of the text in UTF-8, in hex."""
        return sha256(self.text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A text that a document had, and what made the next one of it."""

    version: int
    text: str
    splices: tuple[Splice, ...]
    """In order of their place; all refer to this text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One step of a WorkspaceEdit: text edits of one document, or a file operation."""

    kind: Literal["edit", "create", "rename", "delete"]
    uri: str
    version: int | None = None
    edits: tuple[Json, ...] = ()
    new_uri: str = ""
    options: Json


def operations(edit: Json) -> list[Operation]:
    """Give the steps of a WorkspaceEdit in order, from either of its two forms."""
    if "documentChanges" not in edit:
        return [
            Operation(kind="edit", uri=uri, edits=tuple(edits), options={})
            for uri, edits in (edit.get("changes") or {}).items()
        ]
    return [_operation(change) for change in edit["documentChanges"]]


def _operation(change: Json) -> Operation:
    options = change.get("options") or {}
    match change.get("kind"):
        case "create" | "delete" as kind:
            return Operation(kind=kind, uri=change["uri"], options=options)
        case "rename":
            old, new = change["oldUri"], change["newUri"]
            return Operation(kind="rename", uri=old, new_uri=new, options=options)
        case _:
            target = change["textDocument"]
            return Operation(
                kind="edit",
                uri=target["uri"],
                version=target.get("version"),
                edits=tuple(change["edits"]),
                options=options,
            )


class Editor:
    """The documents of one editor. The text here is the truth that a server has to follow.

    Args:
        notify: Sends a notification to the server.
    """

    def __init__(self, notify: Callable[[str, Json], None]) -> None:
        self.documents: dict[str, Document] = {}
        self.encoding: Encoding = "utf-16"
        self.sync_kind = 2
        self.next_version: Callable[[int], int] = lambda version: version + 1
        """How the editor counts."""
        self.complaints: list[str] = []
        self.history: dict[str, list[Past]] = {}
        """The former texts of each open document, the oldest first."""
        self._notify = notify

    def open(self, uri: str, text: str, *, version: int = 1, language: str = "python") -> Document:
        """Open a document with this text, which may differ from the disk."""
        document = Document(uri=uri, language=language, version=version, text=text)
        self.documents[uri] = document
        self.history[uri] = []
        item = {"uri": uri, "languageId": language, "version": version, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": item})
        return document

    def open_file(self, path: Path, *, version: int = 1, language: str = "python") -> Document:
        """Open a document with the text that the disk has."""
        return self.open(
            path.as_uri(), path.read_bytes().decode(), version=version, language=language
        )

    def close(self, uri: str) -> None:
        """Close a document; unsaved text is gone."""
        del self.documents[uri]
        self._notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    def change(self, uri: str, change: str | Sequence[Json]) -> Document:
        """Type: replace the whole text, or apply text edits that all refer to the text as it is now."""
        self.publish(uri, self.stage(uri, change))
        return self.documents[uri]

    def save(self, uri: str) -> None:
        """Write a document to the disk and say so."""
        document = self.documents[uri]
        path_of(uri).write_bytes(document.text.encode())
        document.dirty = False
        self._notify("textDocument/didSave", {"textDocument": {"uri": uri}})

    def stage(self, uri: str, change: str | Sequence[Json]) -> list[Json]:
        """Change the text without telling the server yet; give the changes for `publish`.

        Raises:
            EditError: The edits cannot be applied; the text is as before.
        """
        document = self.documents[uri]
        if isinstance(change, str):
            self._remember(document, [Splice(0, len(document.text), change)])
            document.text, document.dirty = change, True
            return [{"text": change}]
        lines = Lines(document.text, self.encoding)
        ordered = splices(lines, change)
        self._remember(document, ordered)
        self._check_places(lines, uri, change)
        document.text, document.dirty = spliced(document.text, ordered), True
        return content_changes(lines, ordered)

    def publish(self, uri: str, changes: list[Json]) -> None:
        """Tell the server of staged changes, as one new version."""
        document = self.documents[uri]
        document.version = self.next_version(document.version)
        if self.sync_kind == FULL_SYNC:
            changes = [{"text": document.text}]
        identifier = {"uri": uri, "version": document.version}
        params = {"textDocument": identifier, "contentChanges": changes}
        self._notify("textDocument/didChange", params)

    def is_stale(self, operation: Operation) -> bool:
        """Tell whether a step was made for another version of an open document."""
        document = self.documents.get(operation.uri)
        wanted = operation.version
        return document is not None and wanted is not None and wanted != document.version

    def perform(self, operation: Operation) -> list[Json]:
        """Do one step; give the staged changes of an edit, which the caller publishes.

        Raises:
            EditError: The step is impossible; nothing has changed.
        """
        match operation.kind:
            case "edit":
                if operation.uri not in self.documents:
                    self._open_for_edit(operation.uri)
                return self.stage(operation.uri, operation.edits)
            case "create":
                _create(path_of(operation.uri), operation.options)
            case "rename":
                self._rename(operation)
            case "delete":
                path_of(operation.uri).unlink()
                if operation.uri in self.documents:
                    self.close(operation.uri)
        return []

    def texts(self) -> dict[str, Document]:
        """Give copies of all documents, to put back when a later step fails."""
        return {uri: replace(document) for uri, document in self.documents.items()}

    def put_back(self, before: dict[str, Document]) -> None:
        """Undo staged changes that were not published."""
        for uri, document in before.items():
            self.documents[uri] = document

    def _remember(self, document: Document, ordered: Sequence[Splice]) -> None:
        past = Past(version=document.version, text=document.text, splices=tuple(ordered))
        self.history.setdefault(document.uri, []).append(past)

    def _open_for_edit(self, uri: str) -> None:
        path = path_of(uri)
        if not path.is_file():
            message = f"no such file: {path}"
            raise EditError(message)
        self.open_file(path)

    def _rename(self, operation: Operation) -> None:
        old, new = path_of(operation.uri), path_of(operation.new_uri)
        if new.exists() and not operation.options.get("overwrite"):
            message = f"the target exists: {new}"
            raise EditError(message)
        old.rename(new)
        if (document := self.documents.get(operation.uri)) is not None:
            self.close(operation.uri)
            moved = self.open(operation.new_uri, document.text, language=document.language)
            moved.dirty = document.dirty

    def _check_places(self, lines: Lines, uri: str, edits: Sequence[Json]) -> None:
        for edit in edits:
            end = edit["range"]["end"]
            if not lines.exists(end):
                self.complaints.append(f"an edit of {uri} ends beyond the text, at {end}")


def _create(path: Path, options: Json) -> None:
    if path.exists() and not options.get("overwrite"):
        if options.get("ignoreIfExists"):
            return
        message = f"the file exists: {path}"
        raise EditError(message)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"")


def path_of(uri: str) -> Path:
    """Give the path of a file URI."""
    return Path(unquote(urlsplit(uri).path))
