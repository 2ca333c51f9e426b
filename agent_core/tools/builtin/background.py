"""The tool `background`: lists, reads and stops the background commands of the session."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.errors import ToolError
from agent_core.kernel.text import format_size
from agent_core.tools.arguments import ModelTool, ToolArguments, schema_of
from agent_core.tools.port import (
    BackgroundCommand,
    ToolContext,
    ToolResult,
    ToolSpec,
    error_result,
    text_result,
)
from agent_core.workspace import Process
from agent_core.workspace.permissions.call_permission import Needs

if TYPE_CHECKING:
    from agent_core.tools.command_output import OutputCapture

MOST_WAIT_S: Final = 300.0
MOVED_BYTES: Final = 2_048
"""How much of the output the model gets of a command that was moved."""


def _as_name(given: object) -> object:
    """Return `bg1` for 1: models shorten names."""
    return f"bg{given}" if isinstance(given, int) or str(given).isdigit() else given


class BackgroundArguments(ToolArguments):
    """Arguments of `background`."""

    other_names: ClassVar[Mapping[str, str]] = {"name": "id", "wait": "waitS", "wait_s": "waitS"}

    action: Literal["list", "read", "stop"] = Field(
        description="list all commands, read the output of one, or stop one"
    )
    id: Annotated[str, BeforeValidator(_as_name)] | None = Field(
        default=None, description="The command, such as bg1; for read and stop"
    )
    offset: Annotated[int, Field(ge=0)] | None = Field(
        default=None,
        description="Where to begin to read, in bytes (default: where the last reading ended)",
    )
    wait_s: Annotated[float, Field(ge=0, le=MOST_WAIT_S)] = Field(
        default=0,
        alias="waitS",
        description=f"How long to wait for new output or the end, in seconds, at most {MOST_WAIT_S:g}",
    )


def background_tool() -> ModelTool[BackgroundArguments]:
    """Make the tool."""
    return ModelTool(
        spec=ToolSpec(
            name="background",
            description=(
                "Look after commands that were started with bash and `background`: list them, read what they wrote since the "
                "last reading, or stop one. You are told when one ends: do not poll, use waitS."
            ),
            parameters=schema_of(BackgroundArguments),
            kind="read",
            snippet="List, read and stop background commands",
        ),
        arguments=BackgroundArguments,
        titled=_title,
        execute=_run,
    )


async def start_in_background(
    command: str, context: ToolContext, *, needs: frozenset[Needs]
) -> ToolResult:
    """Start a command in the background and return what became of it in its first moment.

    Raises:
        ToolError: Too many are running, or the log cannot be written.
        WorkspaceError: It cannot be started.
    """
    commands = context.background()
    stale = await context.processes.before_start()
    one = await commands.start(command, call=context.call, needs=needs)
    page = await commands.read(one.id, offset=None, wait_s=0)
    written = page.text.strip()
    parts = [f"{_about(one)}. {one.log_line}"]
    parts.append(f"Output so far:\n{written}" if written else "No output so far.")
    parts += [f"[{stale}]"] if stale else []
    text, details = "\n".join(parts), _details(one)
    if not one.is_running and one.exit_code != 0:
        return error_result(text, details=details)
    return text_result(text, details=details)


async def go_on_in_background(
    command: str, process: Process, capture: "OutputCapture", context: ToolContext
) -> ToolResult:
    """Move a running command to the background for the user, and return the result for the model.

    The process belongs to the session from the first moment, also if this is cancelled.
    """
    one = await context.background().adopt(command, process, capture, call=context.call)
    page = await context.background().read(one.id, offset=max(0, one.size - MOVED_BYTES), wait_s=0)
    text = f"The user moved this command to the background: {_about(one)}. {one.log_line}"
    written = page.text.strip()
    last = f"Last output:\n{written}" if written else "No output so far."
    return text_result(f"{text}\n{last}", details=_details(one))


def _title(arguments: JsonObject) -> str:
    action, id_ = arguments.get("action"), arguments.get("id")
    parts = [one for one in ("background", action, id_) if isinstance(one, str)]
    return " ".join(parts)


async def _run(arguments: BackgroundArguments, context: ToolContext) -> ToolResult:
    commands = context.background()
    if arguments.action == "list":
        listed = await commands.list()
        lines = [
            f"{_about(one)}, {format_size(one.size)} of output. {one.log_line}" for one in listed
        ]
        shown: list[JsonValue] = [_details(one) for one in listed]
        return text_result(
            "\n".join(lines) or "There are no background commands.", details={"commands": shown}
        )
    if arguments.id is None:
        message = "Name the command with id; action list gives all of them."
        raise ToolError(message)
    if arguments.action == "stop":
        one = await commands.stop(arguments.id)
        return text_result(f"{_about(one)}.", details=_details(one))
    page = await commands.read(arguments.id, offset=arguments.offset, wait_s=arguments.wait_s)
    one = page.command
    rest = one.size - page.next
    more = f"\n[{format_size(rest)} more: read again]" if rest > 0 else ""
    if not one.is_log_whole and not more:
        more = f"\n[{one.log_line}]"
    text = page.text or "(no new output)"
    return text_result(
        f"{_about(one)}. Output to byte {page.next}:\n{text}{more}", details=_details(one)
    )


def _about(one: BackgroundCommand) -> str:
    if one.is_running:
        ports = ", ".join(map(str, one.ports))
        state = f"running, listening on port {ports}" if ports else "running"
    elif one.signal is not None:
        state = f"ended by signal {one.signal}"
    else:
        state = f"ended with exit code {one.exit_code}"
    return f"{one.id} ($ {one.command}): {state}"


def _details(one: BackgroundCommand) -> dict[str, JsonValue]:
    details: dict[str, JsonValue] = {
        "id": one.id,
        "command": one.command,
        "log": one.log,
        "running": one.is_running,
    }
    if not one.is_running:
        details |= {"exit_code": one.exit_code, "signal": one.signal}
    if one.ports:
        details["ports"] = list(one.ports)
    return {"background": details}
