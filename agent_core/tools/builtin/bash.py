"""The tool `bash`: runs a command and gives the end of what it wrote."""

from msgspec.structs import asdict
from pydantic import Field

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.text import DEFAULT_MAX_BYTES, DEFAULT_MAX_LINES, format_size
from agent_core.messages import Text
from agent_core.tools.arguments import ArgumentSeconds, ModelTool, ToolArguments, schema_of
from agent_core.tools.command import BashCommand
from agent_core.tools.port import ToolContext, ToolResult, ToolSpec
from agent_core.workspace import KillReport
from agent_core.workspace.permissions.call_permission import AskedNeeds

TITLE_CHARS = 120
CHANGED_SHOWN = 50


class BashArguments(ToolArguments):
    """Arguments of `bash`."""

    command: str = Field(description="The bash command")
    timeout: ArgumentSeconds | None = Field(
        default=None, description="Seconds after which it is ended"
    )
    background: bool = Field(
        default=False,
        description="Start it and return at once: for servers and watchers. It goes on until it ends, is stopped with the tool background, or the session is closed.",
    )
    needs: tuple[AskedNeeds, ...] = Field(
        default=(),
        description="What this command cannot do without, beyond its containment: `network` for connections (installing, downloading, pushing, services on this machine), `sockets` for unix sockets (docker, a display, a database that listens on one), `gitConfig` to change .git/config or hooks. Leave it out for everything else: the user may be asked.",
    )


def bash_tool() -> ModelTool[BashArguments]:
    """Make the tool."""
    limit = format_size(DEFAULT_MAX_BYTES)
    return ModelTool(
        spec=ToolSpec(
            name="bash",
            description=f"Run a command with bash in the workspace. Gives what it wrote to stdout and stderr, the last {DEFAULT_MAX_LINES} lines or {limit}, whichever is less; longer output is kept whole in a file that is named. There is no input. Commands are contained as a rule: they write only inside the workspace and to a private /tmp, see no secrets, and have neither the network nor unix sockets unless `needs` asks for them. Only git itself changes a repository: run `git add`, `git commit` and the like in a call of their own, in plain words. The command and everything that it started are ended when it returns or its time is over, unless it runs with `background`.",
            parameters=schema_of(BashArguments),
            kind="execute",
            snippet="Run a command",
            guidelines=("Use bash for builds, tests and everything that no other tool does.",),
        ),
        arguments=BashArguments,
        titled=_title,
        execute=_bash,
    )


def _title(arguments: JsonObject) -> str:
    command = arguments.get("command")
    text = " ".join(command.split()) if isinstance(command, str) else ""
    return f"$ {text if len(text) <= TITLE_CHARS else text[:TITLE_CHARS] + '…'}"


async def _bash(arguments: BashArguments, context: ToolContext) -> ToolResult:
    if arguments.background:
        from agent_core.tools.builtin.background import start_in_background  # noqa: PLC0415 - at first use

        return await start_in_background(
            arguments.command, context, needs=frozenset(arguments.needs)
        )
    stale = await context.processes.before_start()
    begun_s = context.clock.monotonic_s()
    command = BashCommand(
        context.workspace,
        options=context.options,
        scratch=context.scratch,
        show=context.output,
        needs=frozenset(arguments.needs),
    )
    await command.run(arguments.command, timeout_s=arguments.timeout, leave=context.leave)
    if command.left is not None:
        from agent_core.tools.builtin.background import go_on_in_background  # noqa: PLC0415 - at first use

        # No await since the run: whoever takes the process ends it.
        return await go_on_in_background(arguments.command, command.left, command.capture, context)
    took_ms = round((context.clock.monotonic_s() - begun_s) * 1000)
    for path in command.killed.changed if command.killed else ():
        context.seen.forget(path)
    return _result(arguments.command, command, stale, took_ms=took_ms)


def _result(text: str, command: BashCommand, stale: str | None, *, took_ms: int) -> ToolResult:
    tail = command.tail()
    parts = [tail.content if tail.content.strip() else "(no output)"]
    if tail.truncated:
        parts.append(command.about_cut(tail))
    if said := command.about_end():
        parts.append(said)
    parts += [f"[{note}]" for note in (*command.notes(), *([stale] if stale else []))]
    end = command.end
    failed = command.timed_out or end is None or end.exit_code != 0
    details: dict[str, JsonValue] = {
        "command": text,
        "exit_code": end.exit_code if end else None,
        "signal": end.signal if end else None,
        "timed_out": command.timed_out,
        "duration_ms": took_ms,
        "truncated": tail.truncated,
        "full_output": command.full_output,
    }
    if tail.truncated:
        details["truncation"] = {
            name: value
            for name, value in asdict(tail).items()  # pyright: ignore[reportAny] - the fields are JSON
            if name != "content"
        }
    if colors := command.colors(tail):
        details["colors"] = colors
    if command.killed:
        details |= _about(command.killed)
    whole = parts[0] if len(parts) == 1 else "\n\n".join(part.removesuffix("\n") for part in parts)
    return ToolResult(content=(Text(text=whole),), details=details, is_error=failed)


def _about(killed: KillReport) -> dict[str, JsonValue]:
    """Return what there is to say of an end; nothing as a rule."""
    details: dict[str, JsonValue] = {}
    if killed.survivors:
        details["survivors"] = list(killed.survivors)
    if killed.quarantined:
        details["quarantined"] = [str(path) for path in killed.quarantined]
    if killed.changed:
        details["changed_files"] = [str(path) for path in killed.changed[:CHANGED_SHOWN]]
        details["changed_count"] = len(killed.changed)
    if killed.unseen:
        details["changed_unseen"] = killed.unseen
    if killed.denied:
        details["denied"] = list(killed.denied)
    return details
