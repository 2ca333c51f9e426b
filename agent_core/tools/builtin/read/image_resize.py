"""Makes an image small enough to be sent to a model, with Pillow. Blocking: it is called in a thread."""

import struct
import zlib
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING

from typing_extensions import override

from agent_core.kernel.values import Value
from agent_core.tools.builtin.read.image_header import ANIMATED_PNG

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from PIL.Image import Image as Picture

MAX_SIDE = 2_000
"""In pixels: providers scale down what is larger, or refuse it."""
MAX_PIXELS = 50_000_000
"""Four bytes each are held while an image is decoded."""
FIRST_QUALITY = 80
# Quality 85 is not tried after 80 was too large: it cannot be smaller.
LOWER_QUALITIES = (70, 55, 40)
STEP = 0.75
BROKEN_DATA = (OSError, SyntaxError, ValueError, EOFError, LookupError, TypeError, ArithmeticError)
"""Exceptions that decoders raise on invalid data, besides `zlib.error` and `struct.error`."""
PILLOW_NAMES: Mapping[str, str] = {
    "image/png": "PNG",
    ANIMATED_PNG: "PNG",
    "image/jpeg": "JPEG",
    "image/gif": "GIF",
    "image/webp": "WEBP",
    "image/bmp": "BMP",
}


class ImageBroken(Exception):
    """An image cannot be decoded; the text says why."""


class ImageTooManyPixels(Exception):
    """An image would take too much memory; the text says its size."""


class FittedImage(Value, frozen=True, kw_only=True):
    """An image that can be sent."""

    mime: str
    data: bytes
    width: int
    """Of the original in pixels, standing upright; so are all of these."""
    height: int
    shown_width: int
    shown_height: int


def is_available() -> bool:
    """Return whether Pillow is installed. The first time this takes a while."""
    try:
        import PIL.Image  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport] - an extra, and 20 ms
    except ImportError:
        return False
    return True


def check_image(data: bytes, *, kind: str) -> None:
    """Decode an image to see that it is one.

    Raises:
        ImageBroken: It is not.
        ImageTooManyPixels: It was not decoded.
    """
    with _fence(), _opened(data, kind) as picture:
        _ = picture.load()


def converted(data: bytes, *, kind: str) -> bytes:
    """Write the first frame of an image as PNG, in its own size.

    Raises:
        ImageBroken: It cannot be decoded.
        ImageTooManyPixels: It was not decoded.
    """
    with _fence(), _opened(data, kind) as picture:
        return _encoded(_plain(picture), "PNG", limit_bytes=None) or b""


def fitted(data: bytes, *, kind: str, limit_bytes: int) -> FittedImage | None:
    """Scale the first frame of an image into the limits; None: no size is small enough.

    Args:
        data: The image.
        kind: MIME type detected from its first bytes.
        limit_bytes: The most bytes of the result.

    Raises:
        ImageBroken: The image cannot be decoded.
        ImageTooManyPixels: The image has too many pixels and was not decoded.
    """
    with _fence(), _opened(data, kind) as picture:
        size = picture.size
        # A JPEG is decoded at half or a quarter of its size when that is enough.
        picture.draft("RGB", _inside(size))
        small = _resized(_plain(picture), _inside(size))
        upright = _upright(small)
        # What the camera took upright lies on its side in the file.
        original = size if upright.size == small.size else size[::-1]
        for width, height in _sizes(upright.size):
            made = _smallest(_resized(upright, (width, height)), limit_bytes)
            if made is not None:
                return FittedImage(
                    mime=made[0],
                    data=made[1],
                    width=original[0],
                    height=original[1],
                    shown_width=width,
                    shown_height=height,
                )
    return None


@contextmanager
def _fence() -> Generator[None]:
    """Turn all that Pillow raises on broken data into one error."""
    from PIL import UnidentifiedImageError  # noqa: PLC0415 - an extra
    from PIL.Image import DecompressionBombError, DecompressionBombWarning  # noqa: PLC0415 - an extra

    try:
        yield
    except (DecompressionBombError, DecompressionBombWarning, MemoryError) as error:
        raise ImageTooManyPixels(str(error)) from error
    except UnidentifiedImageError as error:
        # Its text names an object in memory.
        message = "its header is damaged"
        raise ImageBroken(message) from error
    except (*BROKEN_DATA, zlib.error, struct.error) as error:
        raise ImageBroken(str(error) or type(error).__name__) from error


def _opened(data: bytes, kind: str) -> "Picture":
    import PIL.Image  # noqa: PLC0415 - an extra, and 20 ms

    if kind == "image/webp":
        # Pillow loads this format last of all, with dozens of others, unless it is there already.
        import PIL.WebPImagePlugin  # noqa: F401, PLC0415 # pyright: ignore[reportUnusedImport] - see above
    picture = PIL.Image.open(BytesIO(data), formats=(PILLOW_NAMES[kind],))
    width, height = picture.size
    if width * height > MAX_PIXELS:
        picture.close()
        message = f"{width}x{height} pixels"
        raise ImageTooManyPixels(message)
    return picture


def _plain(picture: "Picture") -> "Picture":
    """Return red, green and blue, with transparency where there is any."""
    if picture.mode.startswith("I"):
        # Sixteen bits: a plain conversion would cut off instead of scaling.
        scaled = picture.convert("I").point(lambda value: value / 256)  # pyright: ignore[reportUnknownMemberType] - Pillow's types name numpy
        picture = scaled.convert("L")
    mode = "RGBA" if picture.has_transparency_data else "RGB"
    # A conversion to the same would be a copy, of up to 256 MB.
    return picture if picture.mode == mode else picture.convert(mode)


def _upright(picture: "Picture") -> "Picture":
    """Turn a photo as its camera was held."""
    import PIL.ImageOps  # noqa: PLC0415 - an extra

    return PIL.ImageOps.exif_transpose(picture)


def _inside(size: tuple[int, int]) -> tuple[int, int]:
    """Fit a size into the largest square, keeping its shape; nothing grows."""
    factor = min(1.0, MAX_SIDE / max(size))
    return max(1, round(size[0] * factor)), max(1, round(size[1] * factor))


def _sizes(size: tuple[int, int]) -> Generator[tuple[int, int]]:
    yield size
    while size != (1, 1):
        size = max(1, int(size[0] * STEP)), max(1, int(size[1] * STEP))
        yield size


def _resized(picture: "Picture", size: tuple[int, int]) -> "Picture":
    import PIL.Image  # noqa: PLC0415 - an extra

    if picture.size == size:
        return picture
    return picture.resize(size, PIL.Image.Resampling.LANCZOS)  # pyright: ignore[reportUnknownMemberType] - Pillow's types name numpy


def _smallest(picture: "Picture", limit_bytes: int) -> tuple[str, bytes] | None:
    """Write an image as PNG or JPEG, whichever is smaller, else worse; None: still too large."""
    flat = _flattened(picture)
    jpeg = _encoded(flat, "JPEG", limit_bytes=limit_bytes, quality=FIRST_QUALITY)
    # A photo as PNG takes long: stop when it outgrows the JPEG.
    png = _encoded(picture, "PNG", limit_bytes=limit_bytes if jpeg is None else len(jpeg))
    if png is not None:
        return "image/png", png
    for quality in LOWER_QUALITIES:
        if jpeg is not None:
            break
        jpeg = _encoded(flat, "JPEG", limit_bytes=limit_bytes, quality=quality)
    return None if jpeg is None else ("image/jpeg", jpeg)


def _flattened(picture: "Picture") -> "Picture":
    """Flatten an image onto white, as RGB."""
    import PIL.Image  # noqa: PLC0415 - an extra

    if picture.mode == "RGB":
        return picture
    white = PIL.Image.new("RGBA", picture.size, "white")
    return PIL.Image.alpha_composite(white, picture).convert("RGB")


class _Full(Exception):
    """The image outgrew its limit."""


class _Bounded(BytesIO):
    """Memory that takes only so many bytes."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__()
        self._limit = limit_bytes

    @override
    def write(self, data: "ReadableBuffer", /) -> int:
        written = super().write(data)
        if self.tell() > self._limit:
            raise _Full
        return written


def _encoded(
    picture: "Picture", form: str, *, limit_bytes: int | None, quality: int = FIRST_QUALITY
) -> bytes | None:
    """Write an image; None: it has more bytes than that."""
    target = BytesIO() if limit_bytes is None else _Bounded(limit_bytes)
    try:
        # PNG does not look at the quality, but would keep the colour profile of other kinds of pixels.
        picture.save(target, form, quality=quality, icc_profile=None)
    except _Full:
        return None
    return target.getvalue()
