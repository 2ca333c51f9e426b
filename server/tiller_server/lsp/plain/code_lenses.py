"""The code lenses that are there without any extension; pure."""

from collections.abc import Mapping, Sequence

from agent_core.kernel import JsonValue
from tiller_server.lsp.changes.diagnostics import Hint
from tiller_server.lsp.jsonrpc.messages import as_object
from tiller_server.lsp.plain.code_actions import CodeActionState

Lens = dict[str, JsonValue]


def chat_lenses(now: CodeActionState, own: Sequence[Lens]) -> list[Lens]:
    """Return the lenses of the chat file.

    Args:
        now: State of the session.
        own: Lenses of the chat file itself, such as the answers to a question; they keep their places.
    """
    there = {(as_object(one.get("command")) or {}).get("command") for one in own}
    found = [*own]
    if "tiller.send" not in there:
        found.append(lens(0, "Send", "send"))
    if now.is_running and "tiller.stop" not in there:
        found.append(lens(0, "Stop", "stop"))
    if now.has_changes:
        found += [lens(0, "Keep all", "accept"), lens(0, "Reject all", "reject")]
    if now.has_task_changes:
        found.append(lens(0, "Merge task", "mergeTask"))
    return found


def file_lenses(now: CodeActionState, hints: Sequence[Hint]) -> list[Lens]:
    """Return the lenses of a document: a stop while something runs, and the word on what was changed in it."""
    found = [lens(0, "Stop", "stop")] if now.is_running else []
    for hint in hints[:1]:
        about: dict[str, JsonValue] = {"session": hint.session, "file": hint.file}
        line0 = min(one.start[0] for one in hints)
        found += [
            lens(line0, "Keep all in file", "accept", about),
            lens(line0, "Reject all in file", "reject", about),
        ]
    return found


def lens(
    line0: int, title: str, command: str, argument: Mapping[str, JsonValue] | None = None
) -> Lens:
    """Make a lens that runs one of our commands."""
    at: dict[str, JsonValue] = {"line": line0, "character": 0}
    run: dict[str, JsonValue] = {"title": f"Tiller: {title}", "command": f"tiller.{command}"}
    if argument is not None:
        run["arguments"] = [dict(argument)]
    return {"range": {"start": at, "end": at}, "command": run}
