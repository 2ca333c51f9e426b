"""Contents of messages as the JSON schemas of the conventions have them: without secrets, and with a bound."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import encode
from agent_core.kernel.redaction.redactor import TextRedactor
from agent_core.messages import (
    AssistantContent,
    AssistantMessage,
    File,
    Image,
    Message,
    Text,
    Thinking,
    ToolCall,
    ToolResultMessage,
    UserContent,
    text_of,
)
from agent_core.messages.values import (
    BashMessage,
    BranchSummaryMessage,
    CompactionSummaryMessage,
)
from agent_core.providers import ModelRequest
from agent_core.telemetry import names
from agent_core.telemetry.values import Attributes

TEXT_CHARS: Final = 8_192
"""Characters of one text; a longer one loses its end."""
ATTRIBUTE_CHARS: Final = 65_536
"""Characters of one attribute; of longer conversations the oldest messages are left out."""


class MessageWriter:
    """Writes messages without secrets. Texts are cut after they were looked through: half a secret is not found."""

    def __init__(self, redactor: TextRedactor) -> None:
        self._redactor = redactor

    def call(self, request: ModelRequest, answer: AssistantMessage | None) -> Attributes:
        """Return what a model was sent and what it answered."""
        tools: JsonValue = [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            }
            for tool in request.tools
        ]
        found = {
            names.SYSTEM_INSTRUCTIONS: _encoded([self._text(request.system)]),
            names.TOOL_DEFINITIONS: _encoded(self._redactor.json(tools)),
            names.INPUT_MESSAGES: self._newest(request.messages),
        }
        if answer is not None:
            whole = {**self._message(answer), "finish_reason": names.finish_reason(answer)}
            found[names.OUTPUT_MESSAGES] = _encoded([whole])
        return found

    def tool(self, arguments: JsonObject, result: Sequence[UserContent]) -> Attributes:
        """Return the arguments and the result of a tool call."""
        text = self._redactor.text(text_of(tuple(result)))
        return {
            names.TOOL_ARGUMENTS: _encoded(self._redactor.json(arguments))[:ATTRIBUTE_CHARS],
            names.TOOL_RESULT: text[:ATTRIBUTE_CHARS],
        }

    def _newest(self, messages: Sequence[Message]) -> str:
        kept: list[JsonValue] = []
        size = 0
        for message in reversed(messages):
            written = self._message(message)
            size += len(_encoded(written))
            if kept and size > ATTRIBUTE_CHARS:
                break
            kept.append(written)
        return _encoded(kept[::-1])

    def _message(self, message: Message) -> JsonObject:
        match message:
            case ToolResultMessage():
                response: JsonObject = {
                    "type": "tool_call_response",
                    "id": message.call_id,
                    "response": self._clean(text_of(message.content)),
                }
                return {"role": "tool", "parts": [response]}
            case BashMessage():
                return _of("user", [self._text(f"{message.command}\n{message.output}")])
            case BranchSummaryMessage() | CompactionSummaryMessage():
                return _of("user", [self._text(message.summary)])
            case AssistantMessage():
                return _of("assistant", map(self._part, message.content))
            case _:
                return _of("user", map(self._part, message.content))

    def _part(self, part: UserContent | AssistantContent) -> JsonObject:
        match part:
            case Text():
                return self._text(part.text)
            case Thinking():
                return {"type": "reasoning", "content": self._clean(part.text)}
            case ToolCall():
                return {
                    "type": "tool_call",
                    "id": part.id,
                    "name": part.name,
                    "arguments": self._redactor.json(part.arguments),
                }
            case Image():
                return {"type": "blob", "modality": "image", "mime_type": part.mime}
            case File():
                return {"type": "blob", "modality": "file", "mime_type": part.mime}

    def _text(self, text: str) -> JsonObject:
        return {"type": "text", "content": self._clean(text)}

    def _clean(self, text: str) -> str:
        return self._redactor.text(text)[:TEXT_CHARS]


def _of(role: Literal["user", "assistant"], parts: Iterable[JsonObject]) -> JsonObject:
    return {"role": role, "parts": list(parts)}


def _encoded(value: JsonValue) -> str:
    return encode(value).decode()
