"""The output items of one response, put together from their pieces."""

from collections.abc import Iterable

from msgspec import Struct

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.providers.messages.builder import (
    MessageBuilder,
    OpenBlock,
    OpenCall,
    OpenText,
    OpenThinking,
)
from agent_core.providers.wire.responses.replay import (
    CUSTOM,
    CUSTOM_INPUT,
    text_signature,
    thought_signature,
)

CALLS = ("function_call", "custom_tool_call")
PARAGRAPH = "\n\n"


class OpenItem(Struct):
    """An item that may still grow; the kinds that are of no use to an agent have no block."""

    kind: str
    call_id: str = ""
    block: OpenBlock | None = None
    thought_part: tuple[str, int] | None = None
    whole: bool = False


class ResponseItems:
    """Tracker of the items of a response; some servers send unreliable ids or indexes."""

    def __init__(self, builder: MessageBuilder) -> None:
        self._builder = builder
        self._by_id: dict[str, OpenItem] = {}
        self._by_index: dict[int, OpenItem] = {}
        self._calls: list[OpenItem] = []

    @property
    def has_unfinished_call(self) -> bool:
        """Return whether a tool call began and nothing said that it is whole."""
        return not all(item.whole for item in self._calls)

    def begin(self) -> None:
        """Forget the items of the response before, whose numbers now mean others."""
        self._by_id.clear()
        self._by_index.clear()

    def open(self, event: JsonObject) -> None:
        """Read the event that begins an item."""
        item = json.as_object(event.get("item"))
        open_item = self._by_id.get(json.as_text(item.get("id"))) or self._opened(item, event)
        self._learn(open_item, item)

    def close(self, event: JsonObject) -> None:
        """Read a complete item; content that its pieces lacked is added."""
        item = json.as_object(event.get("item"))
        open_item = self._find(event) or self._opened(item, event)
        self._fill(open_item, item)

    def append_text(self, event: JsonObject) -> None:
        """Append text to a message."""
        block = self._of(event, "message").block
        if isinstance(block, OpenText):
            self._grow(block, event.get("delta"))

    def think(self, event: JsonObject) -> None:
        """Append text to a thought; its parts become paragraphs."""
        item = self._of(event, "reasoning")
        block = item.block
        delta = event.get("delta")
        if not isinstance(block, OpenThinking) or not isinstance(delta, str) or not delta:
            return
        for kind in ("summary_index", "content_index"):
            number = event.get(kind)
            if not isinstance(number, int):
                continue
            if item.thought_part not in (None, (kind, number)) and block.pieces:
                self._builder.grow(block, PARAGRAPH)
            item.thought_part = (kind, number)
            break
        self._builder.grow(block, delta)

    def argue(self, event: JsonObject) -> None:
        """Append text to a call's arguments."""
        block = self._of(event, "function_call").block
        if isinstance(block, OpenCall):
            self._grow(block, event.get("delta"))

    def argued(self, event: JsonObject) -> None:
        """Read the complete arguments of a call."""
        kind = "custom_tool_call" if CUSTOM_INPUT in event else "function_call"
        self._fill(self._of(event, kind), event)

    def complete(self, output: JsonValue) -> None:
        """Read the items that the final event repeats; content that the stream lacked is added."""
        items = [json.as_object(item) for item in output] if isinstance(output, list) else []
        nothing_came = self._builder.is_empty
        by_call = {call.call_id: call for call in self._calls if call.call_id}
        for item in items:
            open_item = self._by_id.get(json.as_text(item.get("id"))) or by_call.get(
                json.as_text(item.get("call_id"))
            )
            # Items of unknown names are as a rule those of the stream, renamed on the way.
            if open_item is None and nothing_came:
                open_item = self._opened(item, {})
            if open_item is not None:
                self._fill(open_item, item)

    def _of(self, event: JsonObject, kind: str) -> OpenItem:
        """Find what an event is about; a piece can come before its item was begun."""
        found = self._find(event)
        return found or self._opened({"type": kind, "id": event.get("item_id")}, event)

    def _find(self, event: JsonObject) -> OpenItem | None:
        item_id = event.get("item_id") or json.as_object(event.get("item")).get("id")
        found = self._by_id.get(json.as_text(item_id))
        if found is not None:
            return found
        # Copilot gives an item a new id with every event; the index stays.
        index = event.get("output_index")
        found = self._by_index.get(index) if isinstance(index, int) else None
        kind = json.as_object(event.get("item")).get("type")
        return found if found is None or kind in (None, found.kind) else None

    def _opened(self, item: JsonObject, event: JsonObject) -> OpenItem:
        kind = json.as_text(item.get("type"))
        made = OpenItem(kind=kind)
        if kind == "message":
            made.block = self._builder.open_text()
        elif kind == "reasoning":
            made.block = self._builder.open_thinking()
        elif kind in CALLS:
            made.call_id = json.as_text(item.get("call_id"))
            made.block = self._builder.open_call(
                id=made.call_id, name=json.as_text(item.get("name"))
            )
            self._calls.append(made)
        item_id = json.as_text(item.get("id"))
        if item_id:
            self._by_id[item_id] = made
        index = event.get("output_index")
        if isinstance(index, int):
            self._by_index[index] = made
        return made

    def _learn(self, open_item: OpenItem, item: JsonObject) -> None:
        """Store the ids and the name of a call."""
        block = open_item.block
        if not isinstance(block, OpenCall):
            return
        open_item.call_id = open_item.call_id or json.as_text(item.get("call_id"))
        block.id = block.id or open_item.call_id
        item_id = json.as_text(item.get("id"))
        if open_item.kind == "custom_tool_call" and not item_id.startswith(CUSTOM):
            item_id = f"{CUSTOM}{item_id}"
        block.signature = block.signature or item_id or None
        self._builder.name_call(block, json.as_text(item.get("name")))

    def _fill(self, open_item: OpenItem, item: JsonObject) -> None:
        block = open_item.block
        match block:
            case OpenText():
                self._complete(block, "".join(_texts(item.get("content"))))
                if block.pieces:
                    block.signature = text_signature(item) or block.signature
            case OpenThinking():
                thoughts = (*_texts(item.get("summary")), *_texts(item.get("content")))
                self._complete(block, PARAGRAPH.join(thoughts))
                block.signature = thought_signature(item) or block.signature
            case OpenCall():
                self._learn(open_item, item)
                self._fill_call(open_item, block, item)
            case None:
                pass

    def _fill_call(self, open_item: OpenItem, block: OpenCall, item: JsonObject) -> None:
        text = item.get("arguments")
        if open_item.kind == "custom_tool_call" and isinstance(item.get("input"), str):
            text = json.encode({CUSTOM_INPUT: item["input"]}).decode()
        elif json.is_object(text):
            text = json.encode(text).decode()
        if not isinstance(text, str):
            return
        open_item.whole = True
        if not self._complete(block, text):
            # What is run is what the provider says was meant in the end.
            block.pieces = [text]

    def _complete(self, block: OpenBlock, text: str) -> bool:
        """Add what is missing of a text whose beginning has come; False when it is another text."""
        came = "".join(block.pieces)
        fits = text.startswith(came)
        if fits:
            self._builder.grow(block, text[len(came) :])
        return fits

    def _grow(self, block: OpenBlock, delta: JsonValue) -> None:
        if isinstance(delta, str):
            self._builder.grow(block, delta)


def _texts(parts: JsonValue) -> Iterable[str]:
    """Return the texts of content parts; a refusal is words too."""
    for part in parts if isinstance(parts, list) else ():
        found = json.as_object(part)
        text = found.get("text") or found.get("refusal")
        if isinstance(text, str):
            yield text
