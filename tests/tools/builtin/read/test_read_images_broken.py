"""The tool read on images that lie or are damaged: a clear sentence, and nothing breaks."""

import random
import struct

import pytest

from agent_core.tools.builtin.read.image_header import image_kind, image_size
from tests.support.harness.sizes import at_size
from tests.tools.builtin.read.pictures import (
    SMALL,
    drawn,
    noise,
    png_that_claims,
    stored,
    without_pillow,
)
from tests.tools.conftest import Bench, words


@pytest.mark.parametrize("pillow", ["with pillow", "without pillow"])
@pytest.mark.parametrize("form", ["PNG", "GIF", "WEBP", "BMP"])
async def test_a_bomb_is_never_decoded(bench: Bench, monkeypatch, form, pillow) -> None:
    match form:
        case "PNG":
            data = png_that_claims(50_000, 50_000)
        case "GIF":
            data = bytearray(SMALL["gif"][0])
            data[6:10] = struct.pack("<HH", 50_000, 50_000)
        case "WEBP":
            size = (49_999).to_bytes(3, "little")
            body = b"VP8X" + struct.pack("<I", 10) + bytes(4) + size + size
            data = b"RIFF" + struct.pack("<I", len(body) + 4) + b"WEBP" + body
        case _:
            data = bytearray(stored(drawn(4, 4), "BMP"))
            data[18:26] = struct.pack("<ii", 50_000, -50_000)
    bench.put("a", bytes(data))
    if pillow == "without pillow":
        without_pillow(monkeypatch)
    outcome = await bench.run("read", path="a")
    assert outcome.status == "error"
    assert "it claims 50000x50000 pixels, and more than 50 million are not decoded" in words(
        outcome
    )


@pytest.mark.parametrize("pillow", ["with pillow", "without pillow"])
@pytest.mark.parametrize("name", ["png", "jpeg", "gif", "lossless webp"])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
async def test_half_an_image_is_told(bench: Bench, monkeypatch, name, share, pillow) -> None:
    data = SMALL[name][0]
    bench.put("a", data[: max(16, int(len(data) * share))])
    if pillow == "without pillow":
        without_pillow(monkeypatch)
    outcome = await bench.run("read", path="a")
    assert outcome.status == "error"
    assert "that cannot be shown: " in words(outcome) or "is a binary file" in words(outcome)


async def test_damage_inside_an_image_is_told_before_a_provider_finds_it(bench: Bench) -> None:
    data = bytearray(stored(noise(60, 60), "PNG"))
    data[len(data) // 2] ^= 0xFF
    bench.put("a.png", bytes(data))
    outcome = await bench.run("read", path="a.png")
    assert outcome.status == "error"
    assert words(outcome).startswith("a.png is an image (image/png, 10.7KB) that cannot be shown: ")


def _large(form: str) -> bytes:
    return stored(drawn(2100, 40), form)


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
async def test_no_damage_breaks_the_tool(bench: Bench, form) -> None:
    chance = random.Random(form)  # noqa: S311 - a test, the same each time
    for _ in range(at_size(ci=40, campaign=2_000)):
        data = bytearray(chance.choice((stored(drawn(40, 30), form), _large(form))))
        for _ in range(chance.randint(1, 12)):
            data[chance.randrange(4, min(len(data), 400))] = chance.randrange(256)
        if chance.random() < 0.3:
            del data[chance.randrange(16, len(data)) :]
        bench.put("a", bytes(data))
        outcome = await bench.run("read", path="a")
        said = words(outcome)
        assert "failed: " not in said
        assert said.startswith(("Read image file [", "a is an image (", "a is a binary file"))


@pytest.mark.parametrize("kind", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff", b"GIF89a", b"BM"])
def test_no_header_breaks_the_reader_of_sizes(kind) -> None:
    chance = random.Random(kind)  # noqa: S311 - a test, the same each time
    for _ in range(at_size(ci=300, campaign=20_000)):
        data = kind + chance.randbytes(chance.randrange(60))
        mime = image_kind(data)
        size = image_size(data, mime) if mime else None
        assert size is None or min(size) > 0


@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF", "WEBP", "BMP"])
def test_the_size_is_read_as_pillow_reads_it(form) -> None:
    for size in [(1, 1), (3, 700), (1023, 2)]:
        for options in ({}, {"lossless": True}, {"progressive": True}):
            data = stored(drawn(*size), form, **options)
            assert image_size(data, str(image_kind(data))) == size
