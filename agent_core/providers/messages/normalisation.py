"""Conversion of the transcript to messages that one model accepts. Pure."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256

from msgspec.structs import replace

from agent_core.kernel import ToolCallId
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
    text_of,
)
from agent_core.providers.model import ModelInfo

TurnMessage = UserMessage | AssistantMessage | ToolResultMessage
"""The three kinds of message that every provider knows."""

NO_RESULT = "No result provided"
IMAGE_OMITTED = "(image omitted: model does not support images)"
TOOL_IMAGE_OMITTED = "(tool image omitted: model does not support images)"
NO_OUTPUT = "(no tool output)"
SEE_IMAGE = "(see attached image)"
COMPACTION_LEAD = "The conversation before this point was compacted into this summary:"
BRANCH_LEAD = "This conversation came back from another branch; in short, what happened there:"
ID_TAIL = 8


def normalise_messages(
    messages: Iterable[Message],
    model: ModelInfo,
    *,
    call_id: Callable[[str], str],
    without_thoughts: bool = False,
) -> tuple[TurnMessage, ...]:
    """Return the messages as this model may see them.

    Every tool call of the outcome has exactly one result, right behind the answer that asked, and an id that no
    other call of the request has. Answers that failed or were aborted are left out with their results.

    Args:
        messages: The transcript, oldest first.
        model: The model that will be asked.
        call_id: Makes the id of a tool call into one that this API takes; clashes are resolved here.
        without_thoughts: Treat every answer as another model's, whose thoughts and signatures mean nothing here.
    """
    ids = _CallIds(call_id)
    turns: list[TurnMessage] = []
    for answer, others in _by_answer(messages):
        if answer is None or answer.stop_reason in ("error", "aborted"):
            turns.extend(_said(others, model))
            continue
        own = not without_thoughts and _is_own(answer, model)
        sent = _with_content(answer, _content_for(answer, own=own))
        if ToolCall in map(type, sent.content):
            results = [other for other in others if isinstance(other, ToolResultMessage)]
            sent, answered = ids.pair(sent, results)
            turns.append(sent)
            turns.extend([_visible(result, model) for result in answered])
        elif sent.content:
            turns.append(sent)
        turns.extend(_said(others, model))
    return tuple(turns)


def as_user(message: Message) -> UserMessage | None:
    """Return a message of our own kinds as the user's words; None when the model is not to see it."""
    match message:
        case UserMessage():
            return message
        case CustomMessage(content=content, at_ms=at_ms):
            return UserMessage(content=content, at_ms=at_ms)
        case BashMessage(exclude_from_context=False, at_ms=at_ms):
            return UserMessage(content=(Text(text=bash_text(message)),), at_ms=at_ms)
        case BranchSummaryMessage(summary=summary, at_ms=at_ms):
            return UserMessage(content=(_summary(BRANCH_LEAD, summary),), at_ms=at_ms)
        case CompactionSummaryMessage(summary=summary, at_ms=at_ms):
            return UserMessage(content=(_summary(COMPACTION_LEAD, summary),), at_ms=at_ms)
        case BashMessage() | AssistantMessage() | ToolResultMessage():
            return None


def bash_text(message: BashMessage) -> str:
    """Return a text for a model about a command that the user ran, with its output."""
    output = message.output.rstrip("\n")
    fence = "```"
    while fence in output:
        fence += "`"
    parts = [f"Ran `{message.command}`", f"{fence}\n{output}\n{fence}" if output else "(no output)"]
    text = "\n".join(parts)
    if message.cancelled:
        text += "\n\n(command cancelled)"
    elif message.exit_code:
        text += f"\n\nCommand exited with code {message.exit_code}"
    if message.truncated and message.full_output:
        text += f"\n\n[Output truncated. Full output: {message.full_output}]"
    return text


def without_images(content: Sequence[UserContent], placeholder: str) -> tuple[UserContent, ...]:
    """Replace images with a placeholder text, one for consecutive images."""
    kept: list[UserContent] = []
    for part in content:
        if not isinstance(part, Image):
            kept.append(part)
        elif not kept or kept[-1] != Text(text=placeholder):
            kept.append(Text(text=placeholder))
    return tuple(kept)


def result_text(content: Sequence[UserContent]) -> str:
    """Return the text of a tool's result, for servers that refuse an empty one or take no pictures there."""
    pictured = any(isinstance(part, Image) for part in content)
    return text_of(tuple(content)) or (SEE_IMAGE if pictured else NO_OUTPUT)


class _CallIds:
    """Keeps the ids of tool calls apart within one request, and results with their calls."""

    def __init__(self, normalise: Callable[[str], str]) -> None:
        self._normalise = normalise
        self._taken: set[str] = set()

    def pair(
        self, answer: AssistantMessage, results: Sequence[ToolResultMessage]
    ) -> tuple[AssistantMessage, list[ToolResultMessage]]:
        """Return the answer with its calls' new ids, and one result for each call in source order."""
        waiting: dict[str, deque[ToolResultMessage]] = {}
        for result in results:
            waiting.setdefault(result.call_id, deque()).append(result)
        content: list[AssistantContent] = []
        answered: list[ToolResultMessage] = []
        for part in answer.content:
            if not isinstance(part, ToolCall):
                content.append(part)
                continue
            sent_id = self._fresh(part.id)
            found = waiting.get(part.id)
            result = found.popleft() if found else _missing(part, answer.at_ms)
            same = part.id == sent_id
            content.append(part if same else replace(part, id=sent_id))
            answered.append(result if same else replace(result, call_id=sent_id))
        return _with_content(answer, tuple(content)), answered

    def _fresh(self, raw: str) -> ToolCallId:
        """Some providers number the calls of each answer from 0 again; others refuse an id that comes twice."""
        wanted = self._normalise(raw)
        count = 0
        while wanted in self._taken or not wanted:
            count += 1
            digest = sha256(f"{raw}#{count}".encode("utf-8", "surrogatepass")).hexdigest()
            wanted = self._normalise(f"call{digest[:ID_TAIL]}")
        self._taken.add(wanted)
        return ToolCallId(wanted)


def _by_answer(
    messages: Iterable[Message],
) -> Iterable[tuple[AssistantMessage | None, list[Message]]]:
    """Cut the conversation before each answer: the answer, then all that was said until the next one."""
    answer: AssistantMessage | None = None
    others: list[Message] = []
    for message in messages:
        if not isinstance(message, AssistantMessage):
            others.append(message)
            continue
        yield answer, others
        answer, others = message, []
    yield answer, others


def _said(others: Sequence[Message], model: ModelInfo) -> list[UserMessage]:
    said: list[UserMessage] = []
    for other in others:
        message = as_user(other)
        if message is None:
            continue
        if not model.images and _has_images(message.content):
            message = replace(message, content=without_images(message.content, IMAGE_OMITTED))
        said.append(message)
    return said


def _visible(result: ToolResultMessage, model: ModelInfo) -> ToolResultMessage:
    if model.images or not _has_images(result.content):
        return result
    return replace(result, content=without_images(result.content, TOOL_IMAGE_OMITTED))


def _has_images(content: Sequence[UserContent]) -> bool:
    return Image in map(type, content)


def _with_content(
    answer: AssistantMessage, content: tuple[AssistantContent, ...]
) -> AssistantMessage:
    """Change an answer only when there is a change: of thousands of messages nearly all stay."""
    return answer if content == answer.content else replace(answer, content=content)


def _is_own(answer: AssistantMessage, model: ModelInfo) -> bool:
    same_server = answer.provider == model.provider and answer.api == model.api
    return same_server and answer.model == model.id


def _content_for(answer: AssistantMessage, *, own: bool) -> tuple[AssistantContent, ...]:
    kept = [_own(part) if own else _foreign(part) for part in answer.content]
    return tuple([part for part in kept if part is not None])


def _own(part: AssistantContent) -> AssistantContent | None:
    if isinstance(part, Thinking):
        worth = part.redacted or part.signature is not None or part.text.strip()
        return part if worth else None
    return part


def _foreign(part: AssistantContent) -> AssistantContent | None:
    """Signatures and thoughts of another model are noise at best and an error at worst."""
    if isinstance(part, Thinking):
        return None
    return part if part.signature is None else replace(part, signature=None)


def _missing(call: ToolCall, at_ms: int) -> ToolResultMessage:
    return ToolResultMessage(
        call_id=call.id,
        tool_name=call.name,
        content=(Text(text=NO_RESULT),),
        is_error=True,
        at_ms=at_ms,
    )


def _summary(lead: str, summary: str) -> Text:
    return Text(text=f"{lead}\n\n<summary>\n{summary}\n</summary>")
