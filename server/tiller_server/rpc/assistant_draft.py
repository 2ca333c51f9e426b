"""An answer of the model as it grows: its blocks, and the records that report each change."""

from collections.abc import Mapping, Sequence
from typing import Final, Literal

from agent_core.events import MessageEnded
from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object, decode, is_object
from agent_core.messages import text_of
from tiller_server.rpc.records import UNKNOWN, PiRelease, split_model, usage_record

JsonRecord = dict[str, JsonValue]
STOP_REASONS: Final[Mapping[str, str]] = {"tool_use": "toolUse"}
FAILED: Final = frozenset({"error", "aborted"})


class Block:
    """A text, a thought or a tool call of an answer."""

    def __init__(self, kind: Literal["text", "thinking", "toolcall"], *, index: int) -> None:
        self.kind: Literal["text", "thinking", "toolcall"] = kind
        self.index = index
        self.item = ""
        self.call = ""
        self.name = ""
        self.arguments: JsonObject | None = None
        """Arguments that the call runs with; None: only `pieces` are known."""
        self.pieces: list[str] = []
        self.is_ended = False

    @property
    def text(self) -> str:
        """All text so far; of a call, its raw arguments."""
        return "".join(self.pieces)

    def record(self) -> JsonRecord:
        """Return it as content of a message."""
        if self.kind == "text":
            return {"type": "text", "text": self.text}
        if self.kind == "thinking":
            return {"type": "thinking", "thinking": self.text}
        return {
            "type": "toolCall",
            "id": self.call,
            "name": self.name,
            "arguments": self.input(),
        }

    def input(self) -> JsonObject:
        """Return the arguments; empty where they are unknown or no JSON object."""
        if self.arguments is not None:
            return self.arguments
        try:
            value = decode(self.text)
        except ValueError:
            return {}
        return value if is_object(value) else {}


class AssistantDraft:
    """An answer of the model in the form of pi's assistant message."""

    def __init__(self, model: str | None, *, at_ms: int, compat: PiRelease) -> None:
        self.blocks: list[Block] = []
        self.stop: str | None = None
        """Why it ended; None: it has not."""
        self.error: str | None = None
        self._provider, self._model = split_model(model)
        self._at_ms = at_ms
        self._compat: PiRelease = compat
        self._usage: JsonObject = usage_record(None)

    def record(self) -> JsonRecord:
        """Return the message as it is now."""
        pending = "pending" if self._compat == "1.5" else "stop"
        out: JsonRecord = {
            "role": "assistant",
            "content": [one.record() for one in self.blocks],
            "api": UNKNOWN,
            "provider": self._provider,
            "model": self._model,
            "usage": self._usage,
            "stopReason": pending if self.stop is None else STOP_REASONS.get(self.stop, self.stop),
            "timestamp": self._at_ms,
        }
        return out if self.error is None else {**out, "errorMessage": self.error}

    def append(
        self, kind: Literal["text", "thinking"], item: str, text: str
    ) -> Sequence[JsonObject]:
        """Append text to the block that grows, or begin another; return the updates."""
        last = self.blocks[-1] if self.blocks else None
        out: list[JsonObject] = []
        if last is None or last.kind != kind or (kind == "thinking" and last.item != item):
            out += self._end(last)
            last = self._new(kind, item)
            out.append(self._update(f"{kind}_start", last))
        if text:
            last.pieces.append(text)
            out.append(self._update(f"{kind}_delta", last, delta=text))
        return out

    def begin_call(self, item: str, call: str, name: str) -> Sequence[JsonObject]:
        """Begin a tool call; return the updates."""
        out = list(self._end(self.blocks[-1] if self.blocks else None))
        block = self._new("toolcall", item)
        block.call, block.name = call, name
        named: JsonRecord = {"id": call, "toolName": name} if self._compat == "1.5" else {}
        return [*out, self._update("toolcall_start", block, **named)]

    def append_input(self, item: str, text: str) -> Sequence[JsonObject]:
        """Append raw arguments to a call; return the updates."""
        block = self.call_of(item)
        if block is None or not text:
            return ()
        block.pieces.append(text)
        return [self._update("toolcall_delta", block, delta=text)]

    def call_of(self, item: str) -> Block | None:
        """Return the call of an item."""
        calls = (one for one in self.blocks if one.kind == "toolcall" and one.item == item)
        return next(calls, None)

    def end(self, ended: MessageEnded) -> Sequence[JsonObject]:
        """End the answer with what was stored; return the updates."""
        out = self._end(self.blocks[-1] if self.blocks else None)
        self._settle_texts(text_of(ended.content))
        self.stop = ended.stop_reason or "stop"
        self._usage = usage_record(ended.usage.tokens if ended.usage else None)
        if self.stop in FAILED:
            # A call that was not finished is never executed; the stored message does not have it either.
            self.blocks = [one for one in self.blocks if one.kind != "toolcall"]
        return out

    def _settle_texts(self, text: str) -> None:
        """Use the stored text where a hook has replaced what was streamed."""
        texts = [one for one in self.blocks if one.kind == "text"]
        if "".join(one.text for one in texts) == text:
            return
        if not texts:
            texts = [self._new("text", "")]
        texts[0].pieces = [text]
        self.blocks = [one for one in self.blocks if one not in texts[1:]]

    def _new(self, kind: Literal["text", "thinking", "toolcall"], item: str) -> Block:
        block = Block(kind, index=len(self.blocks))
        block.item = item
        self.blocks.append(block)
        return block

    def _end(self, block: Block | None) -> Sequence[JsonObject]:
        if block is None or block.is_ended:
            return ()
        block.is_ended = True
        if block.kind == "toolcall":
            return [self._update("toolcall_end", block, toolCall=block.record())]
        return [self._update(f"{block.kind}_end", block, content=block.text)]

    def _update(self, kind: str, block: Block, **fields: JsonValue) -> JsonObject:
        event: JsonRecord = {"type": kind, "contentIndex": block.index, **fields}
        if self._compat == "1.5":
            return {
                "type": "message_update",
                "usage": self._usage,
                "assistantMessageEvent": event,
            }
        message = self.record()
        return {
            "type": "message_update",
            "assistantMessageEvent": {**event, "partial": message},
            "message": as_object(message),
        }
