"""Result of `read` for a file that is no text: an image for the model, or a message about the file."""

import shlex

from anyio import CapacityLimiter, to_thread

from agent_core.kernel.errors import NotText
from agent_core.kernel.text import format_size
from agent_core.tools.builtin.read.image import ImageRules, image_result
from agent_core.tools.builtin.read.image_header import image_kind
from agent_core.tools.port import ToolResult
from agent_core.workspace import FileBytes


async def bytes_result(
    said: str, file: FileBytes, *, rules: ImageRules, room: CapacityLimiter
) -> ToolResult:
    """Return an image as a tool result.

    Args:
        said: The path as the model wrote it, for messages.
        file: The file with its content.
        rules: The settings of images.
        room: Limiter of images that are processed at a time: each needs much memory.

    Raises:
        NotText: The file is no image, or one that cannot be shown.
    """
    kind = image_kind(file.data)
    if kind is None:
        raise NotText(about_binary(said, len(file.data)))
    # A thread that nobody waits for any more harms nobody: it only computes, for seconds at the most.
    return await to_thread.run_sync(
        lambda: image_result(said, file, kind=kind, rules=rules),
        limiter=room,
        abandon_on_cancel=True,
    )


def about_binary(said: str, size: int) -> str:
    """Return the message to the model that a file is binary, with commands to inspect it.

    Args:
        said: The path as the model wrote it.
        size: In bytes.
    """
    name = shlex.quote(said)
    return f"{said} is a binary file ({format_size(size)}), not text. Use bash: `file {name}` tells what it is, `xxd {name} | head` shows bytes, `strings {name}` its words."
