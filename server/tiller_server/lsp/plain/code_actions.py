"""The code actions that are there without any extension; pure."""

from collections.abc import Sequence
from typing import Final, cast

from agent_core.events import TaskInfo
from agent_core.kernel import JsonValue
from agent_core.kernel.values import Value
from tiller_server.lsp.jsonrpc.messages import as_array, as_object
from tiller_server.lsp.plain.commands.arguments import lines_of
from tiller_server.lsp.plain.comment_requests import CommentRequest
from tiller_server.lsp.plain.task_prompts import MOST_PROBLEMS, problem_of

FIX: Final = "quickfix.tiller"
DO: Final = "refactor.tiller"
DIAGNOSTIC_FIELDS: Final = frozenset({"range", "message", "source", "code"})
OURS: Final = "tiller"
"""The source of our own diagnostics, which nobody needs to fix."""

PlainCodeAction = dict[str, JsonValue]


class CodeActionRequest(Value, frozen=True, kw_only=True):
    """Place and diagnostics for which an editor requests code actions."""

    uri: str
    lines0: tuple[int, int]
    diagnostics: tuple[dict[str, JsonValue], ...] = ()
    only: tuple[str, ...] | None = None
    """Kinds that are wanted; None: all."""


class CodeActionState(Value, frozen=True, kw_only=True):
    """State of the session that decides which actions are offered."""

    is_running: bool = False
    has_changes: bool = False
    """Something waits for the user's word."""
    has_task_changes: bool = False
    """A task that has ended left changes in a worktree."""
    lacks_model: bool = False
    """There is no model that could be asked."""
    requests: Sequence[CommentRequest] = ()
    """Comments that ask for something, on the lines that are meant."""


def read_code_action_request(params: dict[str, object]) -> CodeActionRequest | None:
    """Read the params of `textDocument/codeAction`; None: they make no sense."""
    uri = (as_object(params.get("textDocument")) or {}).get("uri")
    lines0 = lines_of(params.get("range"))
    if not isinstance(uri, str) or lines0 is None:
        return None
    context = as_object(params.get("context")) or {}
    only = as_array(context.get("only"))
    listed = (as_object(one) for one in as_array(context.get("diagnostics")) or ())
    return CodeActionRequest(
        uri=uri,
        lines0=lines0,
        diagnostics=tuple(
            cast("dict[str, JsonValue]", one)  # sent as JSON
            for one in listed
            if one is not None and one.get("source") != OURS and problem_of(one) is not None
        )[:MOST_PROBLEMS],
        only=None if only is None else tuple(one for one in only if isinstance(one, str)),
    )


def in_file(asked: CodeActionRequest, now: CodeActionState) -> list[PlainCodeAction]:
    """Return what can be asked for at a place in a file."""
    first, last = asked.lines0
    place: dict[str, JsonValue] = {
        "uri": asked.uri,
        "range": {
            "start": {"line": first, "character": 0},
            "end": {"line": last + 1, "character": 0},
        },
    }
    found: list[PlainCodeAction] = []
    if now.requests:
        found.append(action("Do what this comment asks", "comment", FIX, place))
    if asked.diagnostics:
        diagnostics: list[JsonValue] = [_short(one) for one in asked.diagnostics]
        fixed = action("Fix diagnostics here", "fix", FIX, {**place, "diagnostics": diagnostics})
        found.append({**fixed, "diagnostics": [*asked.diagnostics]})
    where = "this" if first == last else "the selection"
    found += [
        action(f"Implement {where}", "implement", DO, place),
        action(f"Explain {where}", "explain", DO, place),
        action("Review this file", "review", DO, {"uri": asked.uri}),
        *_at_any_time(now),
        action("Open the chat file", "chat", DO),
    ]
    return wanted(found, asked.only)


def in_chat(
    asked: CodeActionRequest, now: CodeActionState, own: Sequence[PlainCodeAction]
) -> list[PlainCodeAction]:
    """Return the code actions of the chat file.

    Args:
        asked: The request.
        now: State of the session.
        own: Actions of the chat file itself at that place, such as the answers to a question.
    """
    found = [*own]
    if not _has(own, "tiller.send"):
        found.append(action("Send", "send", DO))
    found += [one for one in _at_any_time(now) if not _has(own, _command(one))]
    if now.has_changes:
        found += [
            action("Keep all changes", "accept", DO),
            action("Reject all changes", "reject", DO),
        ]
    if now.has_task_changes:
        found.append(action("Merge the changes of a task", "mergeTask", DO))
    if not now.lacks_model:
        found += [action("Choose a model", "model", DO), action("Sign in", "signIn", DO)]
    found += [
        action("Begin a new session", "new", DO),
        action("Summarise the conversation", "compact", DO),
        action("Take back what the last run changed", "restore", DO),
        action("Show the status", "status", DO),
    ]
    return wanted(found, asked.only)


def mergeable(tasks: Sequence[TaskInfo]) -> list[TaskInfo]:
    """Return the tasks that have ended and left changes in a worktree."""
    return [one for one in tasks if one.worktree is not None and one.is_ended]


def wanted(actions: Sequence[PlainCodeAction], only: Sequence[str] | None) -> list[PlainCodeAction]:
    """Leave out what is of no kind that was asked for."""
    if only is None:
        return [*actions]
    return [one for one in actions if any(is_above(kind, str(one.get("kind"))) for kind in only)]


def is_above(asked: str, kind: str) -> bool:
    """Return whether a kind that was asked for has another in it."""
    return not asked or f"{kind}.".startswith(f"{asked}.")


def action(
    title: str, command: str, kind: str, argument: dict[str, JsonValue] | None = None
) -> PlainCodeAction:
    """Make an action that runs one of our commands."""
    titled = f"Tiller: {title}"
    run: dict[str, JsonValue] = {"title": titled, "command": f"tiller.{command}"}
    if argument is not None:
        run["arguments"] = [argument]
    return {"title": titled, "kind": kind, "command": run}


def _short(diagnostic: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Leave out what nobody reads: some servers hang kilobytes of their own to a diagnostic."""
    return {name: one for name, one in diagnostic.items() if name in DIAGNOSTIC_FIELDS}


def _at_any_time(now: CodeActionState) -> list[PlainCodeAction]:
    found: list[PlainCodeAction] = []
    if now.is_running:
        found.append(action("Stop", "stop", DO))
    if now.lacks_model:
        found += [action("Choose a model", "model", DO), action("Sign in", "signIn", DO)]
    if now.has_changes:
        found.append(action("Show the changes as a diff", "changes", DO))
    return found


def _command(one: PlainCodeAction) -> object:
    return (as_object(one.get("command")) or {}).get("command")


def _has(actions: Sequence[PlainCodeAction], command: object) -> bool:
    return any(_command(one) == command for one in actions)
