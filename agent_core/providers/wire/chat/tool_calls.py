"""The tool calls of Chat Completions, told apart though some servers number them badly."""

from agent_core.kernel import JsonObject, JsonValue, json
from agent_core.providers.messages.builder import MessageBuilder, OpenCall, is_whole_object


class StreamedCalls:
    """Assembler of an answer's tool calls from their pieces."""

    def __init__(self, builder: MessageBuilder) -> None:
        self._builder = builder
        self._by_index: dict[int, OpenCall] = {}
        self._last: OpenCall | None = None

    def read(self, delta: JsonObject) -> None:
        """Read a piece of a call: a new one, or more of an open one."""
        function = json.as_object(delta.get("function"))
        name = function.get("name")
        call_id = delta.get("id")
        call = self._call(
            delta,
            call_id=call_id if isinstance(call_id, str) else "",
            name=name if isinstance(name, str) else "",
        )
        if call is None:
            return
        google = json.as_object(json.as_object(delta.get("extra_content")).get("google"))
        signature = google.get("thought_signature")
        if isinstance(signature, str) and signature:
            call.signature = signature
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            self._builder.grow(call, arguments)
        elif json.is_object(arguments):
            self._builder.grow(call, json.encode(arguments).decode())

    def _call(self, delta: JsonObject, *, call_id: str, name: str) -> OpenCall | None:
        index = delta.get("index")
        call = self._by_index.get(index) if isinstance(index, int) else self._last
        arguments = json.as_object(delta.get("function")).get("arguments")
        if call is not None and _is_new(call, arguments, call_id=call_id, name=name):
            call = None
        if call is None:
            if not call_id and not name and not arguments:
                return None
            call = self._builder.open_call(id=call_id, name=name)
        if call_id and not call.id:
            call.id = call_id
        if name:
            self._builder.name_call(call, name)
        if isinstance(index, int):
            self._by_index[index] = call
        self._last = call
        return call


def _is_new(call: OpenCall, arguments: JsonValue, *, call_id: str, name: str) -> bool:
    """Return whether a piece begins a second call: Copilot sends the index 0 for both, other servers send none."""
    if call_id and call.id:
        return call_id != call.id
    # Without ids, a name behind whole arguments can only begin another call: Gemini's ids are all "".
    if call_id or not name or not call.name or not call.pieces:
        return False
    goes_on = isinstance(arguments, str) and arguments.lstrip()[:1] not in ("", "{")
    if goes_on or not call.pieces[-1].rstrip().endswith("}"):
        return False
    return is_whole_object("".join(call.pieces))
