"""A request in Gemini's words, for both of its servers: pure."""

import re
from collections.abc import Sequence
from typing import assert_never

from agent_core.kernel import JsonObject, JsonValue
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    Image,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    UserMessage,
)
from agent_core.providers.messages.normalisation import TurnMessage, normalise_messages, result_text
from agent_core.providers.messages.output_limit import output_limit
from agent_core.providers.messages.thinking_level import clamp
from agent_core.providers.model import ModelInfo, ModelRequest, ToolDeclaration
from agent_core.providers.wire.gemini.schema import gemini_schema
from agent_core.providers.wire.gemini.thinking_config import is_new_gemini, thinking_config

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


def request_body(request: ModelRequest, model: ModelInfo) -> JsonObject:
    """Return the body to send."""
    turns = normalise_messages(
        request.messages,
        model,
        call_id=_call_id,
        without_thoughts=request.without_thoughts,
    )
    max_tokens = output_limit(request, turns, model)
    generation: _Json = {"maxOutputTokens": max_tokens}
    thinking = thinking_config(clamp(request.thinking, model), model, max_tokens=max_tokens)
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
        self._is_new = is_new_gemini(model)
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
        case Image(mime=mime, data=data):
            return {"inlineData": {"mimeType": mime, "data": data}}


def _tool(tool: ToolDeclaration) -> JsonObject:
    return {
        "name": tool.name,
        "description": tool.description,
        "parametersJsonSchema": gemini_schema(tool.parameters),
    }
