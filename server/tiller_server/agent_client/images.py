"""The bytes of stored images in messages of the agent, for front ends whose protocol has no names for them."""

from collections.abc import Awaitable, Callable, Iterator

from agent_core.kernel import JsonObject, JsonValue
from agent_core.kernel.json import as_object


async def fill_images(
    message: JsonObject, request: Callable[[str, JsonObject], Awaitable[JsonValue]]
) -> None:
    """Write the base64 of each stored image into its block; one that cannot be read has none.

    Args:
        message: A message of the agent, which is changed.
        request: Sends a request and returns its result.
    """
    for block in _images(message):
        pieces: list[str] = []
        offset: JsonValue = 0
        while isinstance(offset, int):
            piece = as_object(
                await request("agent/blob/read", {"blob": block["blob"], "offset": offset})
            )
            pieces.append(str(piece.get("data", "")))
            offset = piece.get("next")
        block["data"] = "".join(pieces)


def _images(value: JsonValue) -> Iterator[dict[str, JsonValue]]:
    if isinstance(value, list):
        for item in value:
            yield from _images(item)
    elif isinstance(value, dict):
        if value.get("type") == "image" and "blob" in value and "data" not in value:
            yield value
        else:
            for item in value.values():
                yield from _images(item)
