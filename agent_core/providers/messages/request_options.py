"""Options of a request: thinking, the limit of the output, the retention of the cache."""

import math
import re
from base64 import b64decode
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256

from msgspec.structs import replace

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, JsonValue, ToolCallId, json
from agent_core.kernel.text import for_model, one_line
from agent_core.kernel.values import Value
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
    CustomMessage,
    File,
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
from agent_core.providers.model import CacheRetention, ModelInfo, ModelRequest

LEVELS: tuple[ThinkingLevel, ...] = (
    "off",
    "minimal",
    "low",
    "medium",
    "high",
    "xhigh",
    "max",
)
ONLY_WHEN_MAPPED = ("xhigh", "max")
LEVEL_MAP = "thinkingLevelMap"
"""The key in `compat` for a model's own words; null: the model has no such level."""
BUDGETS: Mapping[ThinkingLevel, int] = {
    "minimal": 1_024,
    "low": 2_048,
    "medium": 8_192,
    "high": 16_384,
    "xhigh": 16_384,
    "max": 16_384,
}
"""Tokens of thought, for models that count."""
LEAST_BUDGET = 1_024
LEAST_ANSWER = 1_024


def supported(model: ModelInfo) -> tuple[ThinkingLevel, ...]:
    """List the levels that a model has, weakest first."""
    if not model.reasoning:
        return ("off",)
    level_map = json.as_object(model.compat.get(LEVEL_MAP))
    return tuple(level for level in LEVELS if _has(level, level_map))


def clamp(level: ThinkingLevel, model: ModelInfo) -> ThinkingLevel:
    """Return the nearest level that the model has: upwards first, then downwards."""
    return nearest(level, supported(model))


def nearest(level: ThinkingLevel, has: Sequence[ThinkingLevel]) -> ThinkingLevel:
    """Return the nearest of some levels, weakest first: upwards first, then downwards; `off` without any."""
    if level in has:
        return level
    wanted = LEVELS.index(level)
    above: list[ThinkingLevel] = [other for other in has if LEVELS.index(other) > wanted]
    if above:
        return above[0]
    below: list[ThinkingLevel] = [other for other in has if LEVELS.index(other) < wanted]
    return below[-1] if below else "off"


def effort(level: ThinkingLevel, model: ModelInfo) -> str:
    """Return the provider's word for a level that the model has."""
    word = json.as_object(model.compat.get(LEVEL_MAP)).get(level)
    return word if isinstance(word, str) else level


def _has(level: ThinkingLevel, level_map: JsonObject) -> bool:
    is_mapped = level in level_map
    return level_map[level] is not None if is_mapped else level not in ONLY_WHEN_MAPPED


def budget(level: ThinkingLevel, *, max_tokens: int) -> int:
    """Return how many tokens may be thought, so that some are left for the answer; 0: none at all."""
    tokens = min(BUDGETS.get(level, 0), max_tokens - LEAST_ANSWER)
    return tokens if tokens >= LEAST_BUDGET else 0


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
_FILE_MARK = re.compile(r"<(?=\s*/?\s*file\b)", re.IGNORECASE)


def normalise_messages(
    messages: Iterable[Message],
    model: ModelInfo,
    *,
    call_id: Callable[[str], str],
    without_thoughts: bool = False,
    taken_ids: set[str] | None = None,
) -> tuple[TurnMessage, ...]:
    """Return the messages as this model may see them.

    Every tool call of the outcome has exactly one result, right behind the answer that asked, and an id that no
    other call of the request has. Answers that failed or were aborted are left out with their results.

    Args:
        messages: The transcript, oldest first.
        model: The model that will be asked.
        call_id: Makes the id of a tool call into one that this API takes; clashes are resolved here.
        without_thoughts: Treat every answer as another model's, whose thoughts and signatures mean nothing here.
        taken_ids: Ids of the calls in messages before these; those of the outcome are added to them.
    """
    ids = _CallIds(call_id, set() if taken_ids is None else taken_ids)
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


def file_text(name: str, data: bytes) -> Text:
    """Return the text of a file as a model reads it, between marks that it cannot close."""
    text = _FILE_MARK.sub(r"<\\", for_model(data.decode("utf-8-sig", "replace")))
    quoted = one_line(name).replace('"', "'")
    return Text(text=f'<file name="{quoted}">\n{text}\n</file>')


def _file(file: File, model: ModelInfo) -> UserContent:
    if file.is_text:
        return file_text(file.name, b64decode(file.data))
    if model.takes_pdf:
        return file
    return Text(text=f"(file {file.name} omitted: model does not support {file.mime})")


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

    def __init__(self, normalise: Callable[[str], str], taken: set[str]) -> None:
        self._normalise = normalise
        self._taken = taken

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
        if File in map(type, message.content):
            shown = [_file(one, model) if isinstance(one, File) else one for one in message.content]
            message = replace(message, content=tuple(shown))
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


CHARS_PER_TOKEN = 3.5
"""Deliberately fewer than the usual four: code and CJK are denser."""
IMAGE_TOKENS = 1_200
SPARE_TOKENS = 4_096
SPARE_SHARE = 0.15
SMALL_WINDOW_SHARE = 4
"""The fixed margin is never more than this part of the window."""
USUAL_OUTPUT = 32_768


def sampling_fields(
    model: ModelInfo, *, top_p: str = "top_p", stop: str | None = "stop", with_thinking: bool = True
) -> dict[str, JsonValue]:
    """Return the fields of a request that say how tokens are chosen; empty unless the user set some.

    Args:
        model: The model.
        top_p: Name of the field.
        stop: Name of the field; None: the API has none.
        with_thinking: Whether temperature and `top_p` are accepted in this request: Claude refuses them while it thinks.
    """
    sampling = model.sampling
    fields: dict[str, JsonValue] = {}
    if with_thinking and sampling.temperature is not None:
        fields["temperature"] = sampling.temperature
    if with_thinking and sampling.top_p is not None:
        fields[top_p] = sampling.top_p
    if stop is not None and sampling.stop:
        fields[stop] = list(sampling.stop)
    return fields


class InputSize(Value, frozen=True, kw_only=True):
    """Characters and images of a conversation."""

    chars: int = 0
    images: int = 0


def output_limit(request: ModelRequest, size: InputSize, model: ModelInfo) -> int:
    """Return the output limit to send: the requested one, at most the model's and the room that the input leaves."""
    wanted = model.max_tokens
    if request.max_tokens is not None:
        wanted = min(request.max_tokens, model.max_tokens)
    if model.context_window <= 0:
        return max(wanted, 1)
    tokens = estimate_input(request, size)
    return clamp_output(wanted, context_window=model.context_window, input_tokens=tokens)


def clamp_output(wanted: int, *, context_window: int, input_tokens: int) -> int:
    """Keep the output inside the window, with a margin for the error of the estimate; at least 1."""
    fixed = min(SPARE_TOKENS, context_window // SMALL_WINDOW_SHARE)
    room = context_window - input_tokens - max(fixed, math.ceil(input_tokens * SPARE_SHARE))
    if room < USUAL_OUTPUT:
        room = min(USUAL_OUTPUT, context_window - input_tokens - fixed)
    return max(1, min(wanted, room))


def estimate_input(request: ModelRequest, size: InputSize) -> int:
    """Estimate the tokens of a request from its characters."""
    chars = len(request.system) + size.chars
    for tool in request.tools:
        chars += len(tool.name) + len(tool.description)
    chars += len(json.encode([tool.parameters for tool in request.tools]))
    return math.ceil(chars / CHARS_PER_TOKEN) + size.images * IMAGE_TOKENS


def measured(turns: Sequence[TurnMessage]) -> InputSize:
    """Return the size of turns."""
    chars = images = 0
    for turn in turns:
        for part in turn.content:
            if isinstance(part, Image):
                images += 1
            elif isinstance(part, File):
                chars += math.ceil(part.tokens * CHARS_PER_TOKEN)
            elif isinstance(part, ToolCall):
                chars += len(part.name) + len(json.encode(part.arguments))
            else:
                chars += len(part.text)
    return InputSize(chars=chars, images=images)


LONG_SUPPORTED = "supportsLongCacheRetention"
"""The key in `compat` that says whether `long` may be asked for."""
OPENAI_LONG = "24h"

_RETENTIONS: Mapping[str, CacheRetention] = {"none": "none", "short": "short", "long": "long"}
# OpenAI's other models refuse the whole request: the older ones keep nothing for long, the newer ones
# have one lifetime for all.
_OPENAI_LONG = re.compile(r"gpt-5(?:\.[1-5])?(?!-mini|-nano)(?:-.*)?")


def configured_retention(model: ModelInfo) -> CacheRetention | None:
    """Return what models.json wants for this model; None: nothing, or no word that is known."""
    word = model.compat.get("cacheRetention")
    return _RETENTIONS.get(word) if isinstance(word, str) else None


def retention(request: ModelRequest, configured: CacheRetention | None) -> CacheRetention:
    """Return what holds for a request. Words that are never sent again stay uncached, whatever the model is told."""
    return "none" if request.cache == "none" else configured or request.cache


def takes_long(model: ModelInfo, *, default: bool) -> bool:
    """Return whether `long` may be requested; models.json has precedence."""
    setting = model.compat.get(LONG_SUPPORTED)
    return setting if isinstance(setting, bool) else default


def openai_keeps_long(model: ModelInfo) -> bool:
    """Return whether OpenAI keeps what this model was sent for a day: it is known to, or models.json counts on it."""
    return configured_retention(model) == "long" or _OPENAI_LONG.fullmatch(model.id) is not None


def cache_control(kept: CacheRetention, *, long: bool) -> JsonObject | None:
    """Return Anthropic's `cache_control` mark for content to cache; None: no mark.

    Args:
        kept: The requested retention.
        long: Whether the server supports the longer retention; otherwise `long` is treated as `short`.
    """
    if kept == "none":
        return None
    if kept == "long" and long:
        return {"type": "ephemeral", "ttl": "1h"}
    return {"type": "ephemeral"}
