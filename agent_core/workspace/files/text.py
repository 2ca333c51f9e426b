"""Bytes to text and back so that nothing is lost: encoding, byte order mark, line endings, hash; small files."""

import codecs
import hashlib
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

from agent_core.kernel.errors import NotText
from agent_core.kernel.values import Value


def read_plain(path: Path, *, most_bytes: int, follows_links: bool = False) -> bytes:
    """Return the content of a regular file. A pipe in its place is not waited for.

    Raises:
        OSError: It is not there, or it is a link and links are not followed.
        ValueError: It is no regular file, or has more bytes than that.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follows_links else os.O_NOFOLLOW)
    with open(os.open(path, flags), "rb") as file:  # noqa: PTH123 - a descriptor
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            message = f"{str(path)!r} is no plain file"
            raise ValueError(message)
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        message = f"{str(path)!r} has more than {most_bytes:,} bytes"
        raise ValueError(message)
    return content


GUESS_LIMIT_BYTES = 16 * 1024 * 1024
"""Up to this size an unknown encoding is guessed; a larger file counts as binary."""
HASH_BESIDE_BYTES = 1_048_576
"""From this size on a thread of its own is cheaper than waiting."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class DecodedText(Value, frozen=True, kw_only=True):
    """Text, and how to turn it into the same bytes again."""

    text: str
    """Without a byte order mark."""
    encoding: str
    bom: bool


def decode_text(data: bytes) -> DecodedText | None:
    """Read bytes as text: UTF-8, UTF-16 with its mark, else a guess; None when they are no text.

    The result always encodes to the same bytes.
    """
    for mark, encoding in MARKS:
        if data.startswith(mark):
            return _strict(data[len(mark) :], encoding=encoding, bom=True)
    if b"\0" in data:
        return None
    return _strict(data, encoding="utf-8", bom=False) or _guessed(data)


def encode_text(text: str, *, encoding: str, bom: bool) -> bytes:
    """Write text as bytes.

    Raises:
        NotText: The encoding has no bytes for some character; the text says which.
    """
    mark = b""
    if bom:
        mark = next((mark for mark, name in MARKS if name == encoding), b"")
    try:
        return mark + text.encode(encoding)
    except UnicodeEncodeError as error:
        bad = text[error.start]
        message = (
            f"the character {bad!r} cannot be written in the file's encoding {encoding}; "
            "use characters of that encoding, or convert the file to UTF-8 first"
        )
        raise NotText(message) from error


def sha256_of(data: bytes) -> str:
    """Return the hash that preconditions are made of, in hex."""
    return hashlib.sha256(data, usedforsecurity=False).hexdigest()


def hashing(data: bytes) -> Callable[[], str]:
    """Start to hash; the returned function waits for the hash. Large data is hashed while the caller continues."""
    if len(data) < HASH_BESIDE_BYTES:
        digest = sha256_of(data)
        return lambda: digest
    digests: list[str] = []
    thread = threading.Thread(target=lambda: digests.append(sha256_of(data)), daemon=True)
    thread.start()

    def wait() -> str:
        thread.join()
        return digests[0]

    return wait


def _strict(data: bytes, *, encoding: str, bom: bool) -> DecodedText | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else DecodedText(text=text, encoding=encoding, bom=bom)


def _guessed(data: bytes) -> DecodedText | None:
    if len(data) > GUESS_LIMIT_BYTES:
        return None
    # Imported here: it takes a while, and most workspaces never need it.
    import charset_normalizer  # noqa: PLC0415 - see above

    best = charset_normalizer.from_bytes(data).best()
    if best is None or best.encoding == "utf_8":
        return None
    decoded = _strict(data, encoding=best.encoding, bom=False)
    if decoded is None or decoded.text.encode(best.encoding, "replace") != data:
        return None
    return decoded
