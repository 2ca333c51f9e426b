"""Findings of a review as diagnostics with quick fixes, in every editor that supports these."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from agent_core.kernel import JsonValue
from tiller_server.lsp.changes.diagnostics import KIND, is_asked_for
from tiller_server.lsp.changes.diagnostics_publisher import DiagnosticsPublisher
from tiller_server.lsp.documents.mirror import Document, Mirror
from tiller_server.lsp.documents.positions import PositionEncoding
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.review.findings.relocation import moved
from tiller_server.review.findings.result import Finding, Severity

SOURCE: Final = "tiller review"
SEVERITIES: Final[Mapping[Severity, int]] = {"error": 1, "warning": 2, "note": 3}
PAUSE_S: Final = 0.3
"""How long typing is waited for before findings are looked for anew."""
MOST_CHARS: Final = 1 << 20
"""In a longer document findings stay where they were told."""


class _File(Struct, kw_only=True):
    """Findings in one file."""

    findings: tuple[Finding, ...]
    lines: Sequence[str]
    """As they are on the disk, or in the editor."""
    later: asyncio.TimerHandle | None = None
    version: int | None = None
    uris: set[str] = msgspec.field(default_factory=set[str])
    """Under which names it was told of."""


class FindingDiagnostics:
    """The findings that one editor shows; those whose evidence is typed away go."""

    def __init__(self, mirror: Mirror, *, publisher: DiagnosticsPublisher) -> None:
        self._mirror = mirror
        self._publisher = publisher
        self._files: dict[Path, _File] = {}
        self._watching = mirror.watch_all(self._changed)
        self._is_watching = False

    def close(self) -> None:
        """Stop; the editor has left."""
        for file in self._files.values():
            if file.later is not None:
                file.later.cancel()
        self._files.clear()
        if self._is_watching:
            self._is_watching = False
            _ = self._watching.__exit__(None, None, None)

    def show(
        self, root: Path, findings: Sequence[Finding], *, texts: Mapping[str, Sequence[str]]
    ) -> None:
        """Show the findings of a review in place of those of the last review.

        Args:
            root: Folder that the findings' paths are relative to.
            findings: The findings.
            texts: Lines of the reviewed files, by name.
        """
        if not self._is_watching:
            self._is_watching = True
            self._watching.__enter__()
        before = self._files
        self._files = {}
        for name in dict.fromkeys(one.path for one in findings):
            here = tuple(one for one in findings if one.path == name)
            self._files[root / name] = _File(findings=here, lines=texts.get(name, ()))
        for path, file in before.items():
            if file.later is not None:
                file.later.cancel()
            if path not in self._files:
                for uri in file.uris:
                    self._publisher.publish(uri, (), by=SOURCE, version=None)
        for path, file in self._files.items():
            self._draw(path, file)

    def diagnostic(self, finding: Finding, *, lines: Sequence[str]) -> dict[str, JsonValue]:
        """Return a finding as the protocol has it."""
        encoding = self._mirror.encoding
        text = lines[finding.end_line - 1] if finding.end_line <= len(lines) else ""
        first = lines[finding.line - 1] if finding.line <= len(lines) else ""
        start = len(first) - len(first.lstrip())
        return {
            "range": {
                "start": {"line": finding.line - 1, "character": start},
                "end": {"line": finding.end_line - 1, "character": _units(text, encoding)},
            },
            "severity": SEVERITIES[finding.severity],
            "source": SOURCE,
            "code": finding.category,
            "message": f"{finding.title}\n{finding.message}".strip(),
            "data": {
                "fingerprint": finding.fingerprint,
                "suggestion": finding.suggestion is not None,
            },
        }

    def actions(self, params: Mapping[str, object]) -> list[dict[str, JsonValue]]:
        """Return the suggestions for some lines of an open document, as edits that the editor makes itself."""
        uri = (as_object(params.get("textDocument")) or {}).get("uri")
        document = self._mirror.get(uri) if isinstance(uri, str) else None
        if document is None or document.path is None or not is_asked_for(params):
            return []
        file = self._files.get(document.path)
        if file is None:
            return []
        lines = _lines_of(document)
        asked = as_object(params.get("range")) or {}
        first, last = (_line(asked.get(end)) + 1 for end in ("start", "end"))
        return [
            self._fix(finding, document, lines)
            for finding in _current_findings(file.findings, lines)
            if finding.suggestion is not None and finding.line <= last and finding.end_line >= first
        ]

    def _fix(
        self, finding: Finding, document: Document, lines: Sequence[str]
    ) -> dict[str, JsonValue]:
        suggestion = finding.suggestion
        text, edit = "", {}
        if suggestion is not None:
            text = suggestion.replacement.replace("\n", _end_of_lines(document.text))
            place: dict[str, JsonValue] = {
                "start": {"line": suggestion.line - 1, "character": 0},
                "end": {"line": suggestion.end_line, "character": 0},
            }
            edit = {"changes": {document.uri: [{"range": place, "newText": text}]}}
        return {
            "title": f"Tiller: Fix: {finding.title}",
            "kind": KIND,
            "isPreferred": True,
            "diagnostics": [self.diagnostic(finding, lines=lines)],
            "edit": edit,
        }

    # ------------------------------------------------------------------ drawing

    def _changed(self, document: Document | None) -> None:
        if document is None or document.path is None:
            return
        file = self._files.get(document.path)
        if file is None or len(document.text) > MOST_CHARS:
            return
        if file.later is not None:
            file.later.cancel()
        loop = asyncio.get_running_loop()
        file.later = loop.call_later(PAUSE_S, self._draw, document.path, file)

    def _draw(self, path: Path, file: _File) -> None:
        document = next((one for one in self._mirror.documents() if one.path == path), None)
        uri = path.as_uri() if document is None else document.uri
        lines = file.lines if document is None else _lines_of(document)
        diagnostics = [
            self.diagnostic(one, lines=lines) for one in _current_findings(file.findings, lines)
        ]
        version = None if document is None else document.version
        for other in file.uris - {uri}:
            self._publisher.publish(other, (), by=SOURCE, version=None)
        file.uris = {uri}
        self._publisher.publish(uri, diagnostics, by=SOURCE, version=version)


def _current_findings(findings: Sequence[Finding], lines: Sequence[str]) -> list[Finding]:
    there = (moved(one, lines) for one in findings)
    return [one for one in there if one is not None]


def _lines_of(document: Document) -> list[str]:
    return [line.removesuffix("\r") for line in document.text.split("\n")]


def _end_of_lines(text: str) -> str:
    first = text.find("\n")
    return "\r\n" if first > 0 and text[first - 1] == "\r" else "\n"


def _units(text: str, encoding: PositionEncoding) -> int:
    if encoding == "utf-32" or text.isascii():
        return len(text)
    return (
        len(text.encode("utf-8", "replace"))
        if encoding == "utf-8"
        else len(text.encode("utf-16-le", "surrogatepass")) // 2
    )


def _line(position: object) -> int:
    line = (as_object(position) or {}).get("line")
    return line if isinstance(line, int) else 0
