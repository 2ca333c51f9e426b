"""Shows an image to the model: as it is, made to fit, or not at all with the reason."""

import base64
import shlex
from collections.abc import Mapping

from agent_core.kernel import JsonValue
from agent_core.kernel.errors import NotText
from agent_core.kernel.text import format_size
from agent_core.kernel.values import Value
from agent_core.messages import Image, Text
from agent_core.tools.builtin.read.image_header import image_size, is_whole
from agent_core.tools.builtin.read.image_resize import (
    MAX_PIXELS,
    MAX_SIDE,
    FittedImage,
    ImageBroken,
    ImageTooManyPixels,
    check_image,
    converted,
    fitted,
    is_available,
)
from agent_core.tools.port import ToolResult, text_result
from agent_core.workspace import FileBytes

SENDABLE = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""MIME types that providers accept."""
MAX_BASE64_BYTES = 4_718_592
"""Limit of inline data that providers accept (4.5 MiB as base64), unless the settings change it."""
READ_LIMIT_BYTES = 64 * 1024 * 1024
"""A larger image is not read."""
OMITTED = "[Image omitted: could not be resized below the inline image size limit.]"


class ImageRules(Value, frozen=True, kw_only=True):
    """Settings of images."""

    resizes: bool = True
    blocks: bool = False
    max_base64_bytes: int = MAX_BASE64_BYTES
    """An image is sent when it has fewer, as base64."""

    @property
    def limit_bytes(self) -> int:
        """The most bytes that an image may have before it becomes base64."""
        return max(0, (self.max_base64_bytes - 1) // 4 * 3)


def image_rules(options: Mapping[str, JsonValue]) -> ImageRules:
    """Read the rules from the tool's settings, which have been checked where they came in."""
    limit = options.get("maxBytes")
    return ImageRules(
        resizes=options.get("autoResize") is not False,
        blocks=options.get("blockImages") is True,
        max_base64_bytes=limit if isinstance(limit, int) else MAX_BASE64_BYTES,
    )


def image_result(said: str, file: FileBytes, *, kind: str, rules: ImageRules) -> ToolResult:
    """Return an image to the model. Blocking and slow: it is called in a thread.

    Args:
        said: The path as the model wrote it, for messages.
        file: The image.
        kind: MIME type detected from its first bytes.
        rules: The settings.

    Raises:
        NotText: The image cannot be shown; the text says why, and what helps.
    """
    size = image_size(file.data, kind)
    if rules.blocks:
        note = "[Image not shown: the setting images.blockImages keeps images from models.]"
        return _omitted(note, file, kind=kind, size=size)
    if size is None or not is_whole(file.data, kind):
        raise _refusal(
            said, file, kind, "its header is damaged" if size is None else "its end is missing"
        )
    if size[0] * size[1] > MAX_PIXELS:
        raise _too_many(said, file, kind, size)
    try:
        shown = _shown(said, file, kind=kind, size=size, rules=rules)
    except ImageBroken as error:
        raise _refusal(said, file, kind, str(error)) from error
    except ImageTooManyPixels as error:
        raise _too_many(said, file, kind, size) from error
    if shown is None:
        return _omitted(OMITTED, file, kind=kind, size=size)
    return _result(file, shown, kind=kind)


def _shown(
    said: str, file: FileBytes, *, kind: str, size: tuple[int, int], rules: ImageRules
) -> FittedImage | None:
    data, limit_bytes = file.data, rules.limit_bytes
    is_small = max(size) <= MAX_SIDE or not rules.resizes
    if kind in SENDABLE and is_small and len(data) <= limit_bytes:
        if is_available():
            # A broken image would be refused by the provider, in this request and all later ones.
            check_image(data, kind=kind)
        return _as_it_is(data, kind, size)
    if not is_available():
        raise _refusal(
            said,
            file,
            kind,
            f"it must be converted or made smaller first, and Pillow, which does that, is not installed (the user can: pip install 'tillerd[images]'). Or use bash: `convert {shlex.quote(said)} -resize 2000x2000 smaller.png`",
        )
    if kind not in SENDABLE and is_small:
        png = converted(data, kind=kind)
        if len(png) <= limit_bytes:
            return _as_it_is(png, "image/png", size)
    return fitted(data, kind=kind, limit_bytes=limit_bytes) if rules.resizes else None


def _as_it_is(data: bytes, mime: str, size: tuple[int, int]) -> FittedImage:
    width, height = size
    return FittedImage(
        mime=mime, data=data, width=width, height=height, shown_width=width, shown_height=height
    )


def _result(file: FileBytes, shown: FittedImage, *, kind: str) -> ToolResult:
    resized = (shown.width, shown.height) != (shown.shown_width, shown.shown_height)
    lines = [f"Read image file [{shown.mime}]"]
    if kind not in SENDABLE:
        lines.append(f"[Image converted from {kind} to {shown.mime}.]")
    if resized:
        factor = shown.width / shown.shown_width
        lines.append(
            f"[Image: original {shown.width}x{shown.height}, displayed at {shown.shown_width}x{shown.shown_height}. Multiply coordinates by {factor:.2f} to map to original image.]"
        )
    details = {
        **_facts(file, mime=shown.mime, size=(shown.width, shown.height)),
        "shown_width": shown.shown_width,
        "shown_height": shown.shown_height,
        "resized": resized,
        "converted_from": None if kind == shown.mime else kind,
    }
    image = Image(mime=shown.mime, data=base64.b64encode(shown.data).decode("ascii"))
    return ToolResult(content=(Text(text="\n".join(lines)), image), details=details)


def _omitted(note: str, file: FileBytes, *, kind: str, size: tuple[int, int] | None) -> ToolResult:
    return text_result(
        f"Read image file [{kind}]\n{note}", details=_facts(file, mime=kind, size=size)
    )


def _facts(file: FileBytes, *, mime: str, size: tuple[int, int] | None) -> dict[str, JsonValue]:
    width, height = size or (None, None)
    return {
        "path": str(file.path),
        "source": "disk",
        "sha256": file.sha256,
        "mime": mime,
        "byte_size": len(file.data),
        "width": width,
        "height": height,
    }


def _refusal(said: str, file: FileBytes, kind: str, why: str) -> NotText:
    size = format_size(len(file.data))
    return NotText(f"{said} is an image ({kind}, {size}) that cannot be shown: {why.rstrip('.')}.")


def _too_many(said: str, file: FileBytes, kind: str, size: tuple[int, int]) -> NotText:
    millions = MAX_PIXELS // 1_000_000
    why = f"it claims {size[0]}x{size[1]} pixels, and more than {millions} million are not decoded. Use bash to make a smaller copy, if you trust it"
    return _refusal(said, file, kind, why)
