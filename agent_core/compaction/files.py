"""Which files a conversation read and changed."""

from collections.abc import Iterable, Mapping, Sequence

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.values import Value
from agent_core.messages import AssistantMessage, Message, ToolCall, ToolResultMessage

READERS = frozenset({"read"})
WRITERS = frozenset({"write", "edit"})


class TouchedFiles(Value, frozen=True, kw_only=True):
    """Paths as the tools were given them, sorted; a path is in one list only."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()

    def details(self) -> JsonObject:
        """Return the form that compaction entries carry."""
        return {"readFiles": list(self.read), "modifiedFiles": list(self.modified)}


def touched_files(messages: Sequence[Message], *, before: JsonValue = None) -> TouchedFiles:
    """Collect the paths of the file tools' calls that did not fail.

    Args:
        messages: In order; results follow their calls.
        before: The details of an earlier compaction; its paths are carried on.
    """
    read, modified = set(_listed(before, "readFiles")), set(_listed(before, "modifiedFiles"))
    for call in _calls(messages):
        path = call.arguments.get("path")
        if not isinstance(path, str) or not path:
            continue
        if call.name in WRITERS:
            modified.add(path)
        elif call.name in READERS:
            read.add(path)
    return TouchedFiles(read=tuple(sorted(read - modified)), modified=tuple(sorted(modified)))


def _calls(messages: Sequence[Message]) -> Iterable[ToolCall]:
    # Ids are unique within one answer only, so a failure is looked up among the results that follow it.
    for place, message in enumerate(messages):
        if isinstance(message, AssistantMessage) and message.tool_calls:
            failed = _failed_after(messages, place)
            yield from (call for call in message.tool_calls if call.id not in failed)


def _failed_after(messages: Sequence[Message], place: int) -> frozenset[str]:
    failed: set[str] = set()
    for later in range(place + 1, len(messages)):
        message = messages[later]
        if isinstance(message, AssistantMessage):
            break
        if isinstance(message, ToolResultMessage) and message.is_error:
            failed.add(message.call_id)
    return frozenset(failed)


def _listed(details: JsonValue, key: str) -> tuple[str, ...]:
    if not isinstance(details, Mapping):
        return ()
    paths = details.get(key)
    if not isinstance(paths, Sequence) or isinstance(paths, str):
        return ()
    return tuple(path for path in paths if isinstance(path, str))
