"""The tool `diagnostics`: the problems that the user's editor shows, where an editor gives them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Protocol

from pydantic import Field

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.text import for_model, one_line
from agent_core.kernel.values import Value
from agent_core.tools.arguments import ArgumentSeconds, ModelTool, ToolArguments, schema_of
from agent_core.tools.port import CheckedCall, ToolContext, ToolResult, ToolSpec, text_result

DEFAULT_WAIT_S = 5.0
MOST_WAIT_S = 60.0
MOST_FILES = 50
MOST_PROBLEMS = 100
MOST_CHARS = 500
"""Of one message."""
SEVERITIES: Mapping[int, str] = {1: "error", 2: "warning", 3: "info", 4: "hint"}
STALE = "STALE: of an older text than the present one; wait, or run the checker yourself"


class FileProblem(Value, frozen=True, kw_only=True):
    """One thing that is wrong with a file."""

    line0: int
    column0: int
    severity: int
    """1 error, 2 warning, 3 information, 4 hint."""
    message: str
    source: str = ""
    """Which checker says so, and under which code."""


class FileProblems(Value, frozen=True, kw_only=True):
    """The problems of one file."""

    path: Path
    is_fresh: bool
    """They are of the file's present text."""
    problems: tuple[FileProblem, ...]


class Problems(Protocol):
    """Knows what is wrong with files."""

    @property
    def is_there(self) -> bool:
        """Whether anybody can be asked now."""
        ...

    async def of(self, paths: Sequence[Path] | None, *, wait_s: float) -> Sequence[FileProblems]:
        """Return the problems of files (None: of all known files), fresh if fresh ones arrive within the time.

        Raises:
            TillerError: No source of problems answers; the text says what to do.
        """
        ...


class DiagnosticsArguments(ToolArguments):
    """Arguments of `diagnostics`."""

    other_names: ClassVar[Mapping[str, str]] = {
        "path": "paths",
        "file_path": "paths",
        "files": "paths",
        "timeout": "wait_s",
    }

    paths: list[str] | None = Field(
        default=None,
        max_length=MOST_FILES,
        description="The files (default: all of the workspace that have problems)",
    )
    wait_s: ArgumentSeconds = Field(
        default=DEFAULT_WAIT_S,
        description=f"How long to wait for fresh ones after an edit, in seconds (default: {DEFAULT_WAIT_S:g})",
    )


class DiagnosticsTool:
    """The tool; models see it while somebody can be asked."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._tool = ModelTool(
            spec=ToolSpec(
                name="diagnostics",
                description="Give the problems (errors, warnings) that the language servers of the user's editor report for files, also for text that is not saved. Waits until they are of the present text; says of each file whether they are.",
                parameters=schema_of(DiagnosticsArguments),
                kind="read",
                parallel_safe=True,
                snippet="Ask the editor for errors and warnings",
            ),
            arguments=DiagnosticsArguments,
            titled=_title,
            execute=self._run,
        )

    @property
    def spec(self) -> ToolSpec:
        """Declaration of the tool."""
        return self._tool.spec

    @property
    def is_offered(self) -> bool:
        """Whether models see it now."""
        return self._problems.is_there

    def title(self, arguments: JsonObject) -> str:
        """Describe in a few words what a call does."""
        return self._tool.title(arguments)

    def check(self, arguments: JsonObject) -> CheckedCall:
        """Coerce and check the arguments of a call."""
        return self._tool.check(arguments)

    async def _run(self, arguments: DiagnosticsArguments, context: ToolContext) -> ToolResult:
        paths: list[Path] | None = None
        if arguments.paths is not None:
            paths = [await context.files.resolve(one, "read") for one in arguments.paths]
        found = await self._problems.of(paths, wait_s=min(arguments.wait_s, MOST_WAIT_S))
        roots = tuple(context.workspace.roots)
        asked = frozenset(paths or ())
        # What an editor has open elsewhere is not the workspace's business.
        mine = [one for one in found if one.path in asked or _root_of(one.path, roots)]
        return _result(sorted(mine, key=lambda one: one.path), asked=paths, roots=roots)


def _result(
    found: Sequence[FileProblems], *, asked: Sequence[Path] | None, roots: Sequence[Path]
) -> ToolResult:
    lines: list[str] = []
    shown = 0
    for one in found:
        lines.append(_head(one, roots))
        worst_first = sorted(one.problems, key=lambda each: (each.severity, each.line0))
        lines += [_line(each) for each in worst_first[: MOST_PROBLEMS - shown]]
        shown = min(MOST_PROBLEMS, shown + len(one.problems))
    reported = {one.path for one in found}
    lines += [
        f"{_name(one, roots)}: the editor says nothing of it"
        for one in asked or ()
        if one not in reported
    ]
    left = sum(len(one.problems) for one in found) - shown
    if left:
        lines.append(f"[{left} more problems; name fewer files to see them]")
    files: list[JsonValue] = [
        {
            "path": str(one.path),
            "fresh": one.is_fresh,
            "errors": sum(each.severity == 1 for each in one.problems),
            "problems": len(one.problems),
        }
        for one in found
    ]
    return text_result("\n".join(lines) or "No problems are reported.", details={"files": files})


def _head(one: FileProblems, roots: Sequence[Path]) -> str:
    count = len(one.problems)
    much = "no problems" if count == 0 else f"{count} problem{'s' if count > 1 else ''}"
    return f"{_name(one.path, roots)}: {much} ({'fresh' if one.is_fresh else STALE})"


def _line(one: FileProblem) -> str:
    severity = SEVERITIES.get(one.severity, "error")
    source = f" [{one_line(one.source)}]" if one.source else ""
    message = one_line(for_model(one.message))
    if len(message) > MOST_CHARS:
        message = f"{message[:MOST_CHARS]}…"
    return f"  {one.line0 + 1}:{one.column0 + 1} {severity}{source} {message}"


def _name(path: Path, roots: Sequence[Path]) -> str:
    is_first = bool(roots) and path.is_relative_to(roots[0])
    return one_line(str(path.relative_to(roots[0]) if is_first else path))


def _root_of(path: Path, roots: Sequence[Path]) -> Path | None:
    return next((root for root in roots if path.is_relative_to(root)), None)


def _title(arguments: JsonObject) -> str:
    paths = arguments.get("paths")
    if isinstance(paths, str):
        return f"diagnostics {paths}"
    if isinstance(paths, list) and paths:
        more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
        return f"diagnostics {paths[0]}{more}"
    return "diagnostics"
