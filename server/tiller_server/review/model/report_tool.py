"""Tool `report_finding`: checks a finding of the model at once, so that the model can still correct it."""

from collections.abc import Mapping
from contextlib import suppress
from difflib import get_close_matches
from typing import Annotated, ClassVar, Final

import anyio.to_thread
import msgspec
from msgspec import Struct
from msgspec.structs import replace
from pydantic import Field

from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ArgumentsInvalid
from agent_core.kernel.redaction.redactor import TextRedactor
from agent_core.tools import Tool, ToolContext, ToolResult, ToolSpec
from agent_core.tools.arguments import (
    ArgumentCount,
    ModelTool,
    ToolArguments,
    schema_of,
    validated,
)
from agent_core.tools.port import error_result, text_result
from tiller_server.review.findings.raw_finding import RawFinding
from tiller_server.review.findings.result import Category, Dropped, Finding, Severity
from tiller_server.review.findings.sanitizer import evidence_of, title_of
from tiller_server.review.findings.verification import (
    FindingRejected,
    NewSide,
    VerifiedFinding,
    check,
)
from tiller_server.review.git.head_files import HeadFiles

TOOL: Final = "report_finding"
MOST_REPORTS: Final = 200
"""More than this no reader and no host would take."""


class ReportArguments(ToolArguments):
    """Arguments of `report_finding`."""

    other_names: ClassVar[Mapping[str, str]] = {
        "file": "path",
        "file_path": "path",
        "start_line": "line",
        "endLine": "end_line",
        "description": "message",
        "body": "message",
        "quote": "evidence",
        "code": "evidence",
        "replacement": "suggestion",
        "suggested_change": "suggestion",
    }

    path: str = Field(description="The file's name after the change, from the repository's root")
    line: ArgumentCount = Field(description="The first wrong line, after the change")
    end_line: ArgumentCount | None = Field(
        default=None, description="The last wrong line (default: line)"
    )
    severity: Severity = Field(description="How grave it is")
    category: Category = Field(description="What kind of problem it is")
    title: str = Field(description="The problem in one line")
    message: str = Field(
        description="Why it is wrong, in which case, and what would be right; Markdown"
    )
    evidence: str = Field(description="The wrong line or lines, just as they stand in the file")
    suggestion: str | None = Field(
        default=None,
        description="Whole lines, with their indentation, to stand in the place of line to end_line",
    )
    confidence: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.7, description="How sure you are, 0 to 1"
    )


class Reports(Struct, kw_only=True):
    """Findings reported so far."""

    files: HeadFiles
    cleaner: TextRedactor
    """Removes secrets from the report."""
    found: list[Finding] = msgspec.field(default_factory=list["Finding"])
    _refused: dict[tuple[str, str], Dropped] = msgspec.field(
        default_factory=dict["tuple[str, str]", "Dropped"]
    )

    @property
    def refused(self) -> tuple[Dropped, ...]:
        """Findings that failed the check and were not corrected later."""
        right = {(finding.path, finding.title) for finding in self.found}
        return tuple(one for key, one in self._refused.items() if key not in right)

    def tool(self) -> Tool:
        """Make the tool."""
        return ModelTool(
            spec=ToolSpec(
                name=TOOL,
                description="Report one problem that the change brings. It is checked at once: the evidence must stand in the file, and a suggestion must be applicable.",
                parameters=schema_of(ReportArguments),
                kind="read",
                snippet="Report one problem of the change",
            ),
            arguments=ReportArguments,
            titled=_title,
            execute=self._report,
        )

    async def take(self, raw: RawFinding) -> VerifiedFinding:
        """Check a finding and keep it.

        Raises:
            NotSo: It does not stand.
        """
        if len(self.found) >= MOST_REPORTS:
            message = f"{MOST_REPORTS} findings are enough"
            raise FindingRejected(message, advice="sum up and end")
        there = await self._side(raw.path)
        # Before anything is cut to its length: a part of a secret would not be known for one.
        plain = replace(
            raw, title=self.cleaner.text(raw.title), message=self.cleaner.text(raw.message)
        )
        checked = await anyio.to_thread.run_sync(check, plain, there)
        finding = checked.finding
        quote = "\n".join(there.lines[finding.line - 1 : finding.end_line])
        finding = replace(finding, evidence=evidence_of(self.cleaner.text(quote)))
        self.found.append(finding)
        return replace(checked, finding=finding)

    async def repeat(self, arguments: JsonObject) -> None:
        """Report a finding again, as a stored call of the model did; one with wrong arguments was none."""
        with suppress(ArgumentsInvalid, FindingRejected):
            _ = await self._take(validated(TOOL, ReportArguments, arguments))

    async def _report(self, arguments: ReportArguments, context: ToolContext) -> ToolResult:
        _ = context
        try:
            checked = await self._take(arguments)
        except FindingRejected as refusal:
            return error_result(f"Not noted: {refusal}.")
        finding = checked.finding
        notes = "".join(f"; {note}" for note in checked.notes)
        place = f"{finding.path}:{finding.line}-{finding.end_line}"
        return text_result(
            f"Noted at {place}{notes}.",
            details={
                "path": finding.path,
                "line": finding.line,
                "fingerprint": finding.fingerprint,
            },
        )

    async def _take(self, arguments: ReportArguments) -> VerifiedFinding:
        raw = _raw(arguments)
        try:
            return await self.take(raw)
        except FindingRejected as refusal:
            self._refuse(raw, refusal.why)
            raise

    def _refuse(self, raw: RawFinding, why: str) -> None:
        title = title_of(self.cleaner.text(raw.title))
        self._refused[raw.path, title] = Dropped(
            path=raw.path, line=raw.line, title=title, reason=why
        )

    async def _side(self, said: str) -> NewSide:
        plain = said.strip().removeprefix("./")
        for path in (plain, plain.removeprefix("b/"), plain.removeprefix("a/")):
            if path and not path.startswith("/") and (there := await self.files.side(path)):
                return there
        if plain in self.files.deleted:
            message = f"{said!r} is deleted by the change, so none of its lines can be named"
            advice = (
                "name and quote the line that still needs it, or the one beside which it is missing"
            )
            raise FindingRejected(message, advice=advice)
        close = get_close_matches(plain, self.files.paths, n=1, cutoff=0.5)
        hint = f"did you mean {close[0]!r}?" if close else ""
        message = f"there is no text file {said!r} after the change"
        raise FindingRejected(message, advice=hint)


def _raw(arguments: ReportArguments) -> RawFinding:
    end_line = arguments.line if arguments.end_line is None else arguments.end_line
    return RawFinding(
        path=arguments.path,
        line=arguments.line,
        end_line=max(arguments.line, end_line),
        severity=arguments.severity,
        category=arguments.category,
        title=arguments.title,
        message=arguments.message,
        evidence=arguments.evidence,
        suggestion=arguments.suggestion,
        confidence=arguments.confidence,
    )


def _title(arguments: JsonObject) -> str:
    path, line = arguments.get("path"), arguments.get("line")
    return f"finding: {arguments.get('title') or '?'} ({path or '?'}:{line or '?'})"
