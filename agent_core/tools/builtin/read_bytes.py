"""What `read` makes of a file that is no text: an image for the model to see, or words about it."""

import base64
import shlex

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import NotText
from agent_core.kernel.truncation import format_size
from agent_core.messages import Image, Text
from agent_core.tools.port import ToolResult
from agent_core.workspace import FileBytes

IMAGE_LIMIT_BYTES = 4_718_592
"""Of base64: what providers take inline (4.5 MiB)."""
SHOWN_KINDS = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def bytes_result(path: str, file: FileBytes) -> ToolResult:
    """Give an image as it is.

    Args:
        path: As the model wrote it, for messages.
        file: What was read.

    Raises:
        NotText: It is no image that can be shown.
    """
    kind, size = image_kind(file.data), format_size(len(file.data))
    if kind is None:
        raise NotText(_about_binary(path, size))
    data = base64.b64encode(file.data).decode("ascii")
    if kind not in SHOWN_KINDS or len(data) > IMAGE_LIMIT_BYTES:
        message = f"{path} is an image ({kind}, {size}) that cannot be shown: only png, jpeg, gif and webp of at most {format_size(IMAGE_LIMIT_BYTES * 3 // 4)} can. Use bash to convert it to a smaller one."
        raise NotText(message)
    details: dict[str, JsonValue] = {
        "path": str(file.path),
        "source": "disk",
        "sha256": file.sha256,
        "mime": kind,
        "byte_size": len(file.data),
    }
    said = Text(text=f"Read image file [{kind}]")
    return ToolResult(content=(said, Image(mime=kind, data=data)), details=details)


def image_kind(data: bytes) -> str | None:
    """Tell by the first bytes which kind of image this is, whatever its name says."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"BM") and data[6:10] == bytes(4):
        return "image/bmp"
    return None


def _about_binary(path: str, size: str) -> str:
    name = shlex.quote(path)
    return f"{path} is a binary file ({size}), not text. Use bash: `file {name}` tells what it is, `xxd {name} | head` shows bytes, `strings {name}` its words."
