"""Turns what the policy wants to be asked into a question that people read: pure."""

from collections.abc import Mapping
from typing import Final

from agent_core.events import (
    CommandRead,
    CommandSubject,
    PermissionOption,
    PermissionRequest,
    PermissionSubject,
    RuleInfo,
    TargetSubject,
)
from agent_core.events.values import TargetKind
from agent_core.kernel import ItemId, JsonObject, JsonValue, RunId, SessionId
from agent_core.kernel.values import Value
from agent_core.workspace.permissions.call_permission import SandboxLevel
from agent_core.workspace.permissions.policy import (
    Ask,
    CommandAccess,
    FileAccess,
    Option,
    Rule,
    Subject,
    ToolAccess,
)
from agent_core.workspace.permissions.shell import PlainCommandLine, mentioned, read_command

TITLE_CHARS: Final = 120
INPUT_CHARS: Final = 4_000
"""How much of a long argument a question carries; the tool call itself has all of it."""
PARSED_KEPT: Final = 50
LISTING_TOOLS: Final = frozenset({"find", "ls"})
"""They tell the names of files and nothing of what is in them."""


class RequestedCall(Value, frozen=True, kw_only=True):
    """The call of a tool that is asked about."""

    session: SessionId
    run: RunId | None
    item: ItemId
    tool: str
    arguments: Mapping[str, JsonValue]
    script: str | None = None
    """Script that the shell receives, where the call is a command: the settings may prepend text to the command."""


def build_request(
    ask: Ask,
    subject: Subject,
    call: RequestedCall,
    *,
    request: str,
    containment: SandboxLevel,
    now_ms: int,
    timeout_s: float,
) -> PermissionRequest:
    """Create the permission request of a call.

    Args:
        ask: The decision of the policy.
        subject: The subject of that decision.
        call: The call that needs the permission.
        request: The question's id.
        containment: The containment level of commands.
        now_ms: The present time.
        timeout_s: Time after which the request expires and counts as rejected.
    """
    return PermissionRequest(
        request=request,
        session=call.session,
        run=call.run,
        item=call.item,
        title=_title(subject),
        description=_description(ask, subject, call),
        risk=ask.risk,
        since_ms=now_ms,
        expires_ms=now_ms + round(timeout_s * 1000),
        subject=_subject(subject, call, containment),
        options=tuple(_option(one) for one in ask.options),
        default=ask.default,
    )


def shows_content(tool: str) -> bool:
    """Return whether a reading tool shows what is in files, and not only which there are."""
    return tool not in LISTING_TOOLS


def shown_rule(rule: Rule) -> RuleInfo:
    """Return a rule as people see it."""
    return RuleInfo(
        id=rule.id,
        tool=rule.tool,
        argv_prefix=rule.argv_prefix or None,
        path=rule.path,
        host=rule.host,
        mcp=rule.mcp,
        verdict=rule.verdict,
        scope=rule.scope,
        match=rule.match,
        not_match=rule.not_match,
    )


def _option(option: Option) -> PermissionOption:
    return PermissionOption(
        id=option.id,
        kind=option.kind,
        label=option.label,
        rule=None if option.rule is None else shown_rule(option.rule),
    )


def _description(ask: Ask, subject: Subject, call: RequestedCall) -> str:
    if isinstance(subject, FileAccess) and _kind(subject) == "secret" and shows_content(call.tool):
        return f"{ask.reason}; if you allow it, searches of this session show it too"
    return ask.reason


def _title(subject: Subject) -> str:
    match subject:
        case CommandAccess(command=command):
            text = f"Run {' '.join(command.split())}"
        case FileAccess(operation=operation, path=path):
            text = f"{operation.capitalize()} {path}"
        case ToolAccess(host=str() as host, tool=tool):
            text = f"{tool.replace('_', ' ').capitalize()}: {host}"
        case ToolAccess(tool=tool):
            text = f"Use {tool}"
    return text if len(text) <= TITLE_CHARS else f"{text[: TITLE_CHARS - 1]}…"


def _subject(subject: Subject, call: RequestedCall, containment: SandboxLevel) -> PermissionSubject:
    if isinstance(subject, CommandAccess):
        return _command(
            subject, subject.command if call.script is None else call.script, containment
        )
    return TargetSubject(
        type=_kind(subject),
        tool=call.tool,
        sandbox=containment,
        path=subject.path if isinstance(subject, FileAccess) else None,
        input={name: _shortened(one) for name, one in call.arguments.items()},
        change_set=call.item if _kind(subject) == "edit" else None,
    )


def _command(subject: CommandAccess, script: str, containment: SandboxLevel) -> CommandSubject:
    """Show what runs to the byte; judged, and shown in words, is what the model wrote of it."""
    read = read_command(subject.command)
    argvs = read.commands if isinstance(read, PlainCommandLine) else mentioned(subject.command)
    alone = isinstance(read, PlainCommandLine) and len(argvs) == 1
    return CommandSubject(
        argv=argvs[0] if alone and script == subject.command else None,
        command=script,
        cwd=subject.cwd,
        plain=isinstance(read, PlainCommandLine),
        sandbox=containment,
        parsed=tuple(CommandRead(argv=argv) for argv in argvs[:PARSED_KEPT]),
        needs=tuple(sorted(subject.needs)),
    )


def _kind(subject: FileAccess | ToolAccess) -> TargetKind:
    if isinstance(subject, ToolAccess):
        if subject.mcp is not None:
            return "mcp"
        return "tool" if subject.host is None else "fetch"
    if subject.operation == "read" and subject.protected:
        return "secret"
    if not subject.inside:
        return "outsideRoot"
    return "delete" if subject.operation == "delete" else "edit"


def _shortened(one: JsonValue) -> JsonValue:
    if isinstance(one, str) and len(one) > INPUT_CHARS:
        return f"{one[:INPUT_CHARS]}… ({len(one)} characters)"
    if isinstance(one, Mapping):
        return {name: _shortened(inner) for name, inner in one.items()}
    if isinstance(one, list | tuple):
        return [_shortened(inner) for inner in one]
    return one


def as_input(arguments: Mapping[str, object]) -> JsonObject:
    """Convert checked arguments to a JSON object; a value that is not JSON becomes its text."""
    return {name: _json(one) for name, one in arguments.items()}


def _json(one: object) -> JsonValue:
    match one:
        case None | str() | int() | float() | bool():
            return one
        case Mapping():
            return {str(name): _json(inner) for name, inner in one.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON by construction
        case list() | tuple():
            return [_json(inner) for inner in one]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - JSON by construction
        case _:
            return str(one)
