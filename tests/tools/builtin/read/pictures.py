"""Pictures in every format, for tests, and what a model sees of them."""

import base64
import random
import struct
import sys
import zlib
from io import BytesIO
from typing import Any

import pytest
from PIL import Image as Pillow, ImageDraw

from agent_core.messages import Image
from agent_core.tools.runner import ToolOutcome


def drawn(width: int, height: int, mode: str = "RGB") -> Pillow.Image:
    """A picture whose parts can be told apart: a red corner at the top left."""
    picture = Pillow.new(mode, (width, height), "white" if mode != "RGBA" else (0, 0, 0, 0))
    ImageDraw.Draw(picture).rectangle((0, 0, width // 4, height // 4), fill="red")
    return picture


def noise(width: int, height: int) -> Pillow.Image:
    """A picture that no format makes small."""
    chance = random.Random(7)  # noqa: S311 - a test, the same each time
    return Pillow.frombytes("RGB", (width, height), chance.randbytes(width * height * 3))


def stored(picture: Pillow.Image, form: str, **options: Any) -> bytes:
    target = BytesIO()
    picture.save(target, form, **options)
    return target.getvalue()


def png_that_claims(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(1_000))), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in chunks
    )


def sent(outcome: ToolOutcome) -> Image:
    """Give the picture that is sent."""
    shown = outcome.result.content[1]
    assert isinstance(shown, Image)
    return shown


def colour_at(picture: Pillow.Image, x: int, y: int) -> tuple[int, ...]:
    """Give red, green and blue of one pixel."""
    return tuple(picture.convert("RGB").crop((x, y, x + 1, y + 1)).tobytes())


def seen(outcome: ToolOutcome) -> Pillow.Image:
    """Decode what the model sees."""
    shown = sent(outcome)
    picture = Pillow.open(BytesIO(base64.b64decode(shown.data)))
    assert Pillow.MIME[str(picture.format)] == shown.mime
    picture.load()
    return picture


def without_pillow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PIL", "PIL.Image"):
        monkeypatch.setitem(sys.modules, name, None)


def frames_of(form: str) -> bytes:
    frames = [Pillow.new("RGB", (40, 30), colour) for colour in ("red", "blue")]
    return stored(frames[0], form, save_all=True, append_images=frames[1:])


SMALL = {
    "png": (stored(drawn(40, 30), "PNG"), "image/png"),
    "transparent png": (stored(drawn(40, 30, "RGBA"), "PNG"), "image/png"),
    "jpeg": (stored(drawn(40, 30), "JPEG"), "image/jpeg"),
    "progressive jpeg": (stored(drawn(40, 30), "JPEG", progressive=True), "image/jpeg"),
    "gif": (stored(drawn(40, 30), "GIF"), "image/gif"),
    "animated gif": (frames_of("GIF"), "image/gif"),
    "webp": (stored(drawn(40, 30), "WEBP"), "image/webp"),
    "lossless webp": (stored(drawn(40, 30, "RGBA"), "WEBP", lossless=True), "image/webp"),
    "animated webp": (frames_of("WEBP"), "image/webp"),
}
