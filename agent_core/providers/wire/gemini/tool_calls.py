"""The tool calls of a Gemini stream: whole ones, and those whose arguments come leaf by leaf."""

from agent_core.kernel import JsonObject, json
from agent_core.kernel.errors import ProviderError
from agent_core.providers.messages.builder import MessageBuilder, OpenCall
from agent_core.providers.model import ModelInfo
from agent_core.providers.wire.gemini.arguments import PartialArguments


class GeminiCalls:
    """Opens calls and ends them."""

    def __init__(self, builder: MessageBuilder, model: ModelInfo) -> None:
        self._builder = builder
        self._model = model
        self._open: tuple[OpenCall, PartialArguments] | None = None

    def read(self, call: JsonObject, *, signature: str | None) -> None:
        """Read a call, or more of the open one: that has no name, and an empty object ends it."""
        name = call.get("name")
        leaves = call.get("partialArgs")
        goes_on = call.get("willContinue") is True
        if isinstance(name, str) and name:
            self.close()
            self._begin(call, name, goes_on=goes_on or bool(leaves), signature=signature)
        elif self._open is None:
            if call.get("args") or leaves:
                raise self._broken("arguments of no call")
            return
        elif signature is not None:
            self._open[0].signature = signature
        for leaf in leaves if isinstance(leaves, list) else ():
            self._add(json.as_object(leaf))
        if not goes_on:
            self._end()

    def close(self) -> None:
        """End what was never ended: its arguments are not whole, and are written so that nobody takes them for it."""
        if self._open is not None:
            call, arguments = self._open
            self._open = None
            begun = json.encode(self._checked(arguments)).decode()
            self._builder.grow(call, begun.removesuffix("}") or begun)

    def _begin(self, call: JsonObject, name: str, *, goes_on: bool, signature: str | None) -> None:
        call_id = call.get("id")
        opened = self._builder.open_call(id=call_id if isinstance(call_id, str) else "", name=name)
        opened.signature = signature
        if goes_on:
            self._open = opened, PartialArguments()
            return
        self._builder.grow(opened, json.encode(json.as_object(call.get("args"))).decode())

    def _add(self, leaf: JsonObject) -> None:
        if self._open is None:
            return
        try:
            self._open[1].add(leaf)
        except ValueError as error:
            raise self._unfitting(error) from None

    def _end(self) -> None:
        if self._open is None:
            return
        call, arguments = self._open
        if not arguments.is_whole:
            self.close()
            return
        self._open = None
        self._builder.grow(call, json.encode(self._checked(arguments)).decode())

    def _checked(self, arguments: PartialArguments) -> JsonObject:
        try:
            return arguments.so_far()
        except ValueError as error:
            raise self._unfitting(error) from None

    def _unfitting(self, error: ValueError) -> ProviderError:
        what = f"arguments that do not fit together ({error})"
        return self._broken(what)

    def _broken(self, what: str) -> ProviderError:
        message = f"{self._model.ref} sent {what}; try again"
        return ProviderError(message, reason="protocol", provider=self._model.provider)
