"""Bytes become text only when the text becomes the same bytes again."""

import pytest
from hypothesis import given, strategies as st

from agent_core.kernel.errors import NotText
from agent_core.workspace.files.text import (
    HASH_BESIDE_BYTES,
    DecodedText,
    decode_text,
    encode_text,
    hashing,
    sha256_of,
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", DecodedText(text="", encoding="utf-8", bom=False)),
        ("grün 🌍".encode(), DecodedText(text="grün 🌍", encoding="utf-8", bom=False)),
        (b"\xef\xbb\xbfa\r\n", DecodedText(text="a\r\n", encoding="utf-8", bom=True)),
        (b"\xff\xfea\0b\0", DecodedText(text="ab", encoding="utf-16-le", bom=True)),
        (b"\xfe\xff\0a\0b", DecodedText(text="ab", encoding="utf-16-be", bom=True)),
        (b"a\0b", None),
        (b"\x89PNG\r\n\x1a\n\0\0", None),
        (b"\xff\xfe\0\xd8", None),
    ],
)
def test_bytes_are_read_as_what_they_are(data, expected) -> None:
    assert decode_text(data) == expected


def test_a_legacy_encoding_is_guessed_and_kept() -> None:
    data = ("Größe: fünf Äpfel, süße Öle, weiß und heiß.\n" * 20).encode("cp1252")
    decoded = decode_text(data)
    assert decoded is not None
    assert "fünf Äpfel" in decoded.text
    assert encode_text(decoded.text, encoding=decoded.encoding, bom=decoded.bom) == data


def test_a_character_that_the_encoding_lacks_is_named() -> None:
    with pytest.raises(NotText, match="'🌍' cannot be written in the file's encoding cp1252"):
        encode_text("a 🌍", encoding="cp1252", bom=False)


def test_the_hash_is_sha256() -> None:
    assert sha256_of(b"").startswith("e3b0c44298fc1c14")


@given(st.binary(max_size=200))
def test_what_is_text_comes_back_as_the_same_bytes(data: bytes) -> None:
    decoded = decode_text(data)
    if decoded is not None:
        assert encode_text(decoded.text, encoding=decoded.encoding, bom=decoded.bom) == data


@pytest.mark.parametrize("size", [0, 1, HASH_BESIDE_BYTES, 3 * HASH_BESIDE_BYTES])
def test_a_hash_made_beside_other_work_is_the_same(size: int) -> None:
    data = bytes(range(256)) * (size // 256 + 1)
    wait = hashing(data[:size])
    assert wait() == wait() == sha256_of(data[:size])
