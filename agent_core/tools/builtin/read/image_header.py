"""Detection of an image's format and claimed size in pixels from the first bytes of its file: pure."""

import struct

SNIFFED_BYTES = 4_100
"""Within so many bytes an image shows what it is."""
PNG_MARK = b"\x89PNG\r\n\x1a\n"
ANIMATED_PNG = "image/apng"
SIZE_MARKERS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""JPEG segments that hold the size."""
LONE_MARKERS = frozenset({0x01, *range(0xD0, 0xD9)})
"""JPEG markers without a segment."""
OLD_BMP_HEADER_BYTES = 12


def image_kind(data: bytes) -> str | None:
    """Return which kind of image this is, whatever its name says; None: none that is known."""
    if data.startswith(PNG_MARK):
        return ANIMATED_PNG if _is_animated(data[:SNIFFED_BYTES]) else "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"BM") and data[6:10] == bytes(4):
        return "image/bmp"
    return None


def image_size(data: bytes, kind: str) -> tuple[int, int] | None:
    """Read width and height in pixels; None: the header is broken."""
    try:
        match kind:
            case "image/png" | "image/apng":
                size = _png_size(data)
            case "image/jpeg":
                size = _jpeg_size(data)
            case "image/gif":
                size = _pair("<HH", data, 6)
            case "image/webp":
                size = _webp_size(data)
            case _:
                size = _bmp_size(data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and min(size) > 0 else None


def is_whole(data: bytes, kind: str) -> bool:
    """Return whether the end of an image is there, as far as its format shows that without decoding."""
    match kind:
        case "image/png" | "image/apng":
            return b"IEND" in data
        case "image/jpeg":
            return b"\xff\xd9" in data[2:]
        case "image/gif":
            return b"\x3b" in data[13:]
        case "image/webp":
            return int.from_bytes(data[4:8], "little") + 8 <= len(data)
        case _:
            return int.from_bytes(data[2:6], "little") <= len(data)


def _pair(form: str, data: bytes, at: int) -> tuple[int, int]:
    width, height = struct.unpack_from(form, data, at)  # pyright: ignore[reportAny] - both are integers by the format
    return int(width), abs(int(height))  # pyright: ignore[reportAny] - the same; a BMP that begins at its top has a negative height


def _png_size(data: bytes) -> tuple[int, int] | None:
    return _pair(">II", data, 16) if data[12:16] == b"IHDR" else None


def _is_animated(data: bytes) -> bool:
    """Look for the chunk that makes a PNG an animation; it stands before the pixels."""
    at = len(PNG_MARK)
    while at + 8 <= len(data):
        name = data[at + 4 : at + 8]
        if name in {b"acTL", b"IDAT"}:
            return name == b"acTL"
        at += int.from_bytes(data[at : at + 4], "big") + 12
    return False


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    at = 2
    while at < len(data):
        if data[at] != 0xFF:  # noqa: PLR2004 - every marker begins so
            return None
        marker = data[at + 1]
        if marker == 0xFF:  # noqa: PLR2004 - a filler
            at += 1
        elif marker in LONE_MARKERS:
            at += 2
        elif marker in SIZE_MARKERS:
            height, width = _pair(">HH", data, at + 5)
            return width, height
        else:
            at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None


def _webp_size(data: bytes) -> tuple[int, int] | None:
    match data[12:16]:
        case b"VP8 ":
            width, height = _pair("<HH", data, 26)
            return width & 0x3FFF, height & 0x3FFF
        case b"VP8L":
            bits = int.from_bytes(data[21:25], "little")
            return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        case b"VP8X" if len(data) >= 30:  # noqa: PLR2004 - where the size ends
            width, height = data[24:27], data[27:30]
            return int.from_bytes(width, "little") + 1, int.from_bytes(height, "little") + 1
        case _:
            return None


def _bmp_size(data: bytes) -> tuple[int, int]:
    header_bytes = int.from_bytes(data[14:18], "little")
    return _pair("<HH" if header_bytes == OLD_BMP_HEADER_BYTES else "<ii", data, 18)
