"""A request in Gemini's words, for both of its servers: pure."""

import re
from collections.abc import Mapping, Sequence
from typing import assert_never

from agent_core.events import ThinkingLevel
from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    File,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.providers.messages.request_options import (
    LEAST_ANSWER,
    LEVEL_MAP,
    TurnMessage,
    clamp,
    effort,
    measured,
    normalise_messages,
    output_limit,
    result_text,
    sampling_fields,
)
from agent_core.providers.model import ModelInfo, ModelRequest, ToolDeclaration
from agent_core.providers.wire.gemini.schema import gemini_schema

ID_LIMIT = 64
EMPTY = "<empty>"
"""Text of a request without content, which would be refused."""
PICTURES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
IMAGES_LEAD = "Tool result image:"
UNSIGNED = "skip_thought_signature_validator"
"""Google's own word for a call that was never signed: another model made it, or its thoughts are left out."""

_ID_REFUSED = re.compile(r"[^A-Za-z0-9_-]")
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
BASE64_STEP = 4
_Json = dict[str, JsonValue]

DYNAMIC = -1
"""The model decides by itself."""
LEVELS: Mapping[ThinkingLevel, str] = {
    "off": "MINIMAL",
    "minimal": "MINIMAL",
    "low": "LOW",
    "medium": "MEDIUM",
    "high": "HIGH",
    "xhigh": "HIGH",
    "max": "HIGH",
}
PRO_LEVELS: Mapping[ThinkingLevel, str] = {**LEVELS, "off": "LOW", "minimal": "LOW"}
"""Only a Flash can do nearly without thinking."""
FIRST_PRO_LEVELS: Mapping[ThinkingLevel, str] = {**PRO_LEVELS, "medium": "HIGH"}
"""The first of them had two levels only."""
GEMMA_LEVELS: Mapping[ThinkingLevel, str] = {**LEVELS, "low": "MINIMAL", "medium": "HIGH"}
_ORDER: tuple[ThinkingLevel, ...] = ("minimal", "low", "medium", "high", "xhigh", "max")


def _budgets(*tokens: int) -> Mapping[ThinkingLevel, int]:
    return dict(zip(_ORDER, (*tokens, tokens[-1], tokens[-1]), strict=True))


PRO_BUDGETS = _budgets(128, 2_048, 8_192, 32_768)
FLASH_BUDGETS = _budgets(128, 2_048, 8_192, 24_576)
LITE_BUDGETS = _budgets(512, 2_048, 8_192, 24_576)
LEAST_PRO = 128
"""A 2.5 Pro refuses to think less."""

_GENERATION = re.compile(r"gemini-(\d+)")
_NEWEST = re.compile(r"gemini-(?:pro|flash|flash-lite)-latest")
_GEMMA = re.compile(r"gemma-?4")
_FIRST_PRO = re.compile(r"gemini-3-pro")
NEW_GENERATION = 3


def _is_new_gemini(model: str) -> bool:
    """Return whether a model is a Gemini of generation 3 or later."""
    found = _GENERATION.search(model)
    if found:
        return int(found[1]) >= NEW_GENERATION
    return _NEWEST.search(model) is not None


def _thinking_config(
    level: ThinkingLevel, model: ModelInfo, *, max_tokens: int
) -> JsonObject | None:
    """Return the `thinkingConfig` for a level that the model has; None for a model that does not think."""
    if not model.reasoning:
        return None
    asked: JsonObject = {"includeThoughts": True} if level != "off" else {}
    if _is_new_gemini(model.id) or _GEMMA.search(model.id):
        return {**asked, "thinkingLevel": _level(level, model)}
    return {**asked, "thinkingBudget": _budget(level, model.id, max_tokens=max_tokens)}


def _level(level: ThinkingLevel, model: ModelInfo) -> str:
    if isinstance(json.as_object(model.compat.get(LEVEL_MAP)).get(level), str):
        return effort(level, model).upper()
    if _GEMMA.search(model.id):
        return GEMMA_LEVELS[level]
    if _FIRST_PRO.search(model.id):
        return FIRST_PRO_LEVELS[level]
    return (LEVELS if "flash" in model.id else PRO_LEVELS)[level]


def _budget(level: ThinkingLevel, model: str, *, max_tokens: int) -> int:
    is_pro = "2.5-pro" in model
    if level == "off":
        return LEAST_PRO if is_pro else 0
    room = max_tokens - LEAST_ANSWER
    if is_pro:
        return max(min(PRO_BUDGETS[level], room), LEAST_PRO)
    for name, budgets in (("2.5-flash-lite", LITE_BUDGETS), ("2.5-flash", FLASH_BUDGETS)):
        if name in model:
            tokens = min(budgets[level], room)
            return tokens if tokens >= budgets["minimal"] else 0
    return DYNAMIC


def request_body(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Return the body to send."""
    turns = normalise_messages(
        request.messages,
        model,
        call_id=_call_id,
        without_thoughts=request.without_thoughts,
    )
    max_tokens = output_limit(request, measured(turns), model)
    generation: _Json = {
        "maxOutputTokens": max_tokens,
        **sampling_fields(model, top_p="topP", stop="stopSequences"),
    }
    thinking = _thinking_config(clamp(request.thinking, model), model, max_tokens=max_tokens)
    if thinking is not None:
        generation["thinkingConfig"] = thinking
    body: _Json = {
        "contents": _Contents(model).of(turns),
        "generationConfig": generation,
    }
    if request.system.strip():
        body["systemInstruction"] = {"parts": [{"text": request.system}]}
    if request.tools:
        body["tools"] = [{"functionDeclarations": [_tool(tool) for tool in request.tools]}]
    return body


def _call_id(raw: str) -> str:
    return _ID_REFUSED.sub("_", raw)[:ID_LIMIT]


class _Contents:
    """Builder of contents from turns: one for consecutive user messages, one for all results of an answer."""

    def __init__(self, facts: ModelInfo) -> None:
        model = facts.id
        self._is_new = _is_new_gemini(model)
        self._takes_ids = self._is_new or model.startswith(("claude-", "gpt-oss-"))
        self._contents: list[JsonValue] = []
        self._said: list[JsonValue] = []
        self._results: list[JsonValue] = []
        self._shown: list[JsonValue] = []
        self._named: dict[str, str] = {}
        """The calls' names by their ids: a result must have the name of its call."""
        self._answer: list[JsonValue] | None = None
        """The last content, while it is an answer: two answers in a row are one."""

    def of(self, turns: Sequence[TurnMessage]) -> list[JsonValue]:
        """Return the contents."""
        last_word = max(
            (at for at, turn in enumerate(turns) if isinstance(turn, UserMessage)), default=-1
        )
        for at, turn in enumerate(turns):
            match turn:
                case UserMessage(content=content):
                    self._close_results()
                    self._said.extend(_user_parts(content))
                case ToolResultMessage():
                    self._close_said()
                    self._add_result(turn)
                case AssistantMessage():
                    self._close_results()
                    self._close_said()
                    self._add_answer(turn, in_turn=at > last_word)
                case _:
                    assert_never(turn)
        self._close_results()
        self._close_said()
        return self._contents or [{"role": "user", "parts": [{"text": EMPTY}]}]

    def _close_said(self) -> None:
        if self._said:
            self._ask(self._said)
            self._said = []

    def _close_results(self) -> None:
        if self._results:
            self._ask(self._results)
            self._results = []
        if self._shown:
            # Results and calls must be equally many, so that nothing else may stand among them.
            lead: list[JsonValue] = [{"text": IMAGES_LEAD}]
            self._ask([*lead, *self._shown])
            self._shown = []

    def _ask(self, parts: list[JsonValue]) -> None:
        self._contents.append({"role": "user", "parts": parts})
        self._answer = None

    def _add_result(self, turn: ToolResultMessage) -> None:
        content = _visible(turn.content)
        pictures = [_part(part) for part in content if isinstance(part, Image)]
        text = result_text(content)
        response: _Json = {
            "name": self._named.get(turn.call_id, turn.tool_name),
            "response": {"error" if turn.is_error else "output": text},
        }
        if self._takes_ids:
            response["id"] = turn.call_id
        if pictures and self._is_new:
            response["parts"] = pictures
        else:
            self._shown.extend(pictures)
        self._results.append({"functionResponse": response})

    def _add_answer(self, turn: AssistantMessage, *, in_turn: bool) -> None:
        parts: list[JsonValue] = []
        called = False
        for content in turn.content:
            part = self._said_part(content)
            if part is None:
                continue
            if isinstance(content, ToolCall):
                if self._is_new and in_turn and not called:
                    part.setdefault("thoughtSignature", UNSIGNED)
                called = True
                self._named[content.id] = content.name
            parts.append(part)
        if not parts:
            return
        if self._answer is None:
            self._answer = []
            self._contents.append({"role": "model", "parts": self._answer})
        self._answer.extend(parts)

    def _said_part(self, content: AssistantContent) -> _Json | None:
        signed = _signature(content.signature)
        match content:
            case Text(text=text):
                # An empty text may be there for its signature alone.
                return {"text": text, **signed} if text.strip() or signed else None
            case Thinking(text=text):
                worth = text.strip() or signed
                return {"thought": True, "text": text, **signed} if worth else None
            case ToolCall(id=call_id, name=name, arguments=arguments):
                call: _Json = {"name": name, "args": arguments}
                if self._takes_ids:
                    call["id"] = call_id
                return {"functionCall": call, **signed}


def _signature(signature: str | None) -> _Json:
    """Return a signature as a field of its part; a value that is not base64 is from another API and is left out."""
    if not signature or len(signature) % BASE64_STEP or not _BASE64.fullmatch(signature):
        return {}
    return {"thoughtSignature": signature}


def _user_parts(content: Sequence[UserContent]) -> list[JsonValue]:
    return [
        _part(part) for part in _visible(content) if not isinstance(part, Text) or part.text.strip()
    ]


def _visible(content: Sequence[UserContent]) -> tuple[UserContent, ...]:
    """Replace images of types that Gemini refuses with text: one of them would make every later request fail."""
    return tuple(
        Text(text=f"(image omitted: Gemini takes no {part.mime})")
        if isinstance(part, Image) and part.mime not in PICTURES
        else part
        for part in content
    )


def _part(part: UserContent) -> JsonValue:
    match part:
        case Text(text=text):
            return {"text": text}
        case Image(mime=mime, data=data) | File(mime=mime, data=data):
            return {"inlineData": {"mimeType": mime, "data": data}}


def _tool(tool: ToolDeclaration) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": gemini_schema(tool.parameters),
    }
