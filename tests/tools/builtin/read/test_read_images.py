"""The tool read on images: what the model gets to see, and what it is told when it cannot."""

import base64
import hashlib
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from PIL import Image as Pillow

from agent_core.messages import Image
from agent_core.tools.builtin.read.binary_file import bytes_result
from agent_core.tools.builtin.read.image import ImageRules
from agent_core.workspace import FileBytes
from tests.tools.builtin.read.pictures import (
    SMALL,
    colour_at,
    drawn,
    frames_of,
    noise,
    seen,
    sent,
    stored,
    without_pillow,
)
from tests.tools.conftest import Bench, details, words

LIMIT = 4_718_592
OMITTED = "[Image omitted: could not be resized below the inline image size limit.]"

BLOCKED = "[Image not shown: the setting images.blockImages keeps images from models.]"


@pytest.mark.parametrize("pillow", ["with pillow", "without pillow"])
@pytest.mark.parametrize("name", SMALL)
async def test_a_small_image_is_shown_as_it_is(bench: Bench, monkeypatch, name, pillow) -> None:
    data, mime = SMALL[name]
    path = bench.put("picture.txt", data)
    if pillow == "without pillow":
        without_pillow(monkeypatch)
    outcome = await bench.run("read", path="picture.txt")
    assert (outcome.status, words(outcome)) == ("ok", f"Read image file [{mime}]")
    assert sent(outcome) == Image(mime=mime, data=base64.b64encode(data).decode())
    assert details(outcome) == {
        "path": str(path),
        "source": "disk",
        "sha256": hashlib.sha256(data).hexdigest(),
        "mime": mime,
        "byte_size": len(data),
        "width": 40,
        "height": 30,
        "shown_width": 40,
        "shown_height": 30,
        "resized": False,
        "converted_from": None,
    }


@pytest.mark.parametrize(
    ("form", "shown"),
    [("PNG", "image/png"), ("JPEG", None), ("GIF", None), ("WEBP", None), ("BMP", None)],
)
async def test_a_large_image_is_made_smaller(bench: Bench, form, shown) -> None:
    bench.put("a", stored(drawn(3000, 1500), form))
    outcome = await bench.run("read", path="a")
    picture = seen(outcome)
    assert picture.size == (2000, 1000)
    assert words(outcome).endswith(
        "[Image: original 3000x1500, displayed at 2000x1000. "
        "Multiply coordinates by 1.50 to map to original image.]"
    )
    facts = details(outcome)
    assert (facts["width"], facts["height"]) == (3000, 1500)
    assert (facts["shown_width"], facts["shown_height"]) == (2000, 1000)
    assert facts["resized"] is True
    assert shown in {None, facts["mime"]}
    red, green, blue = colour_at(picture, 100, 100)
    assert red > 240
    assert max(green, blue) < 20


async def test_exactly_the_limit_is_kept(bench: Bench) -> None:
    data = stored(drawn(2000, 2000), "PNG")
    bench.put("a.png", data)
    outcome = await bench.run("read", path="a.png")
    assert details(outcome)["resized"] is False
    bench.put("b.png", stored(drawn(2001, 2000), "PNG"))
    outcome = await bench.run("read", path="b.png")
    assert (details(outcome)["shown_width"], details(outcome)["shown_height"]) == (2000, 1999)


async def test_too_many_bytes_are_made_fewer(bench: Bench) -> None:
    data = stored(noise(1500, 1500), "PNG", compress_level=1)
    assert len(base64.b64encode(data)) > LIMIT
    bench.put("a.png", data)
    outcome = await bench.run("read", path="a.png")
    facts = details(outcome)
    assert (facts["mime"], facts["converted_from"]) == ("image/jpeg", "image/png")
    assert (seen(outcome).size, facts["resized"]) == ((1500, 1500), False)
    assert len(sent(outcome).data) < LIMIT


async def test_the_bytes_behind_an_image_do_not_count(bench: Bench) -> None:
    bench.put("a.png", SMALL["png"][0] + bytes(4_000_000))
    outcome = await bench.run("read", path="a.png")
    assert (seen(outcome).size, details(outcome)["mime"]) == ((40, 30), "image/png")


@pytest.mark.parametrize(
    ("max_bytes", "least"), [(1_000_000, 500_000), (100_000, 50_000), (10_000, 3_000), (1_000, 300)]
)
async def test_the_most_bytes_can_be_set(bench: Bench, max_bytes, least) -> None:
    data = stored(noise(830, 830), "PNG")
    assert len(data) > 2_000_000
    bench.put("a.png", data)
    bench.options["maxBytes"] = max_bytes
    outcome = await bench.run("read", path="a.png")
    picture = seen(outcome)
    assert least < len(sent(outcome).data) < max_bytes
    assert picture.size == (details(outcome)["shown_width"], details(outcome)["shown_height"])


async def test_an_image_is_sent_when_it_has_fewer_bytes_than_is_set(bench: Bench) -> None:
    data = stored(noise(50, 50), "PNG")
    bench.put("a.png", data)
    size = len(base64.b64encode(data))
    bench.options["maxBytes"] = size + 1
    outcome = await bench.run("read", path="a.png")
    assert base64.b64decode(sent(outcome).data) == data
    bench.options["maxBytes"] = size
    outcome = await bench.run("read", path="a.png")
    assert len(sent(outcome).data) < size


@pytest.mark.parametrize("quality", [80, 70, 55, 40])
async def test_quality_goes_down_before_the_size_does(bench: Bench, quality) -> None:
    picture = noise(300, 300)
    jpeg = stored(picture, "JPEG", quality=quality)
    bench.put("a.png", stored(picture, "PNG"))
    bench.options["maxBytes"] = len(base64.b64encode(jpeg)) + 1
    outcome = await bench.run("read", path="a.png")
    assert base64.b64decode(sent(outcome).data) == jpeg


async def test_the_colour_profile_of_other_pixels_is_not_kept(bench: Bench) -> None:
    flat = Pillow.new("CMYK", (2500, 2500), (0, 255, 255, 0))
    bench.put("a.jpg", stored(flat, "JPEG", icc_profile=b"for ink" * 20))
    picture = seen(await bench.run("read", path="a.jpg"))
    assert (picture.format, picture.size) == ("PNG", (2000, 2000))
    assert "icc_profile" not in picture.info


async def test_when_nothing_is_small_enough_the_image_is_left_out(bench: Bench) -> None:
    bench.put("a.png", SMALL["png"][0])
    bench.options["maxBytes"] = 40
    outcome = await bench.run("read", path="a.png")
    assert (outcome.status, words(outcome)) == ("ok", f"Read image file [image/png]\n{OMITTED}")
    assert len(outcome.result.content) == 1


async def test_transparency_survives(bench: Bench) -> None:
    bench.put("a.png", stored(drawn(2500, 1000, "RGBA"), "PNG"))
    picture = seen(await bench.run("read", path="a.png"))
    assert (picture.format, picture.mode, picture.size) == ("PNG", "RGBA", (2000, 800))
    assert picture.getpixel((1900, 700)) == (0, 0, 0, 0)


async def test_what_was_transparent_is_white_in_a_jpeg(bench: Bench) -> None:
    picture = noise(200, 200).convert("RGBA")
    picture.putalpha(Pillow.new("L", picture.size, 0))
    bench.put("a.png", stored(picture, "PNG"))
    bench.options["maxBytes"] = 100_000
    shown = seen(await bench.run("read", path="a.png"))
    assert shown.format == "JPEG"
    assert colour_at(shown, 100, 100) == (255, 255, 255)


@pytest.mark.parametrize(
    ("orientation", "size", "red_at"),
    [
        (1, (2000, 1000), (50, 50)),
        (3, (2000, 1000), (1950, 950)),
        (6, (1000, 2000), (950, 50)),
        (8, (1000, 2000), (50, 1950)),
    ],
)
async def test_a_photo_stands_upright(bench: Bench, orientation, size, red_at) -> None:
    exif = Pillow.Exif()
    exif[0x0112] = orientation
    bench.put("a.jpg", stored(drawn(4000, 2000), "JPEG", exif=exif))
    outcome = await bench.run("read", path="a.jpg")
    picture = seen(outcome)
    assert picture.size == size
    facts = details(outcome)
    assert (facts["width"], facts["height"]) == (size[0] * 2, size[1] * 2)
    red, green, _ = colour_at(picture, *red_at)
    assert red > 200
    assert green < 60
    assert "Multiply coordinates by 2.00 " in words(outcome)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "I;16", "RGBA", "CMYK"])
async def test_every_kind_of_pixel_is_made_smaller(bench: Bench, mode) -> None:
    form = "JPEG" if mode == "CMYK" else "PNG"
    grey = Pillow.linear_gradient("L").resize((2200, 100))
    if mode == "I;16":
        picture = grey.convert("I").point(lambda value: value * 256).convert("I;16")
    else:
        picture = grey.convert(mode)
    bench.put("a", stored(picture, form))
    shown = seen(await bench.run("read", path="a"))
    assert shown.size == (2000, 91)
    assert max(colour_at(shown, 1000, 2)) < 16
    assert min(colour_at(shown, 1000, 88)) > 239


@pytest.mark.parametrize("mode", ["L", "I;16", "RGB", "P"])
async def test_a_colour_that_stands_for_nothing_is_transparent_or_seen(bench: Bench, mode) -> None:
    clear = {"L": 0, "I;16": 0, "RGB": (0, 0, 0), "P": 0}[mode]
    bench.put("a.png", stored(Pillow.new(mode, (2500, 50)), "PNG", transparency=clear))
    picture = seen(await bench.run("read", path="a.png"))
    assert picture.size == (2000, 40)


@pytest.mark.parametrize("form", ["GIF", "WEBP"])
async def test_of_a_large_animation_the_first_frame_is_shown(bench: Bench, form) -> None:
    frames = [Pillow.new("RGB", (2400, 60), colour) for colour in ("red", "blue")]
    bench.put("a", stored(frames[0], form, save_all=True, append_images=frames[1:]))
    picture = seen(await bench.run("read", path="a"))
    assert picture.size == (2000, 50)
    red, _, blue = colour_at(picture, 1000, 25)
    assert red > 240
    assert blue < 20


@pytest.mark.parametrize(
    ("data", "kind"),
    [(stored(drawn(40, 30), "BMP"), "image/bmp"), (frames_of("PNG"), "image/apng")],
    ids=["bmp", "animated png"],
)
async def test_what_providers_do_not_take_becomes_a_png(bench: Bench, data, kind) -> None:
    bench.put("a", data)
    outcome = await bench.run("read", path="a")
    assert words(outcome) == (
        f"Read image file [image/png]\n[Image converted from {kind} to image/png.]"
    )
    picture = seen(outcome)
    assert (picture.size, colour_at(picture, 1, 1)) == ((40, 30), (255, 0, 0))
    assert getattr(picture, "n_frames", 1) == 1
    assert details(outcome)["converted_from"] == kind


@pytest.mark.parametrize(
    "data",
    [
        stored(drawn(2001, 30), "PNG"),
        stored(noise(1200, 1200), "PNG"),
        stored(drawn(40, 30), "BMP"),
    ],
    ids=["too wide", "too many bytes", "bmp"],
)
async def test_without_pillow_the_model_learns_what_is_missing(
    bench: Bench, monkeypatch, data
) -> None:
    bench.put("a", data)
    without_pillow(monkeypatch)
    bench.options["maxBytes"] = 1_000_000
    outcome = await bench.run("read", path="a")
    assert outcome.status == "error"
    assert "pip install 'tillerd[images]'" in words(outcome)


async def test_images_can_be_kept_from_models(bench: Bench) -> None:
    bench.put("a.png", SMALL["png"][0])
    bench.options["blockImages"] = True
    outcome = await bench.run("read", path="a.png")
    assert (outcome.status, words(outcome)) == (
        "ok",
        f"Read image file [image/png]\n{BLOCKED}",
    )
    assert len(outcome.result.content) == 1
    assert details(outcome)["width"] == 40


async def test_images_need_not_be_made_smaller(bench: Bench) -> None:
    bench.options["autoResize"] = False
    data = stored(drawn(2100, 40), "PNG")
    bench.put("a.png", data)
    outcome = await bench.run("read", path="a.png")
    assert sent(outcome).data == base64.b64encode(data).decode()
    bench.put("b.png", stored(noise(1500, 1500), "PNG", compress_level=1))
    outcome = await bench.run("read", path="b.png")
    assert words(outcome).endswith(OMITTED)


async def test_a_large_photo_is_read_to_be_shown(bench: Bench) -> None:
    data = stored(noise(1800, 1800), "PNG", compress_level=0)
    assert len(data) > 8 * 1024 * 1024
    bench.put("a.png", data)
    outcome = await bench.run("read", path="a.png")
    assert (seen(outcome).size, details(outcome)["byte_size"]) == ((1800, 1800), len(data))


async def test_an_image_that_is_too_large_to_read_is_refused(bench: Bench) -> None:
    path = bench.put("a.png", SMALL["png"][0])
    with path.open("r+b") as file:
        file.truncate(65 * 1024 * 1024)
    outcome = await bench.run("read", path="a.png")
    assert words(outcome) == (
        "a.png is an image (image/png, 65.0MB) that is too large to be shown: "
        "the most is 64.0MB. Use bash to make a smaller copy."
    )


async def test_a_photo_does_not_hold_up_the_loop(bench: Bench) -> None:
    photo = stored(noise(1000, 750).resize((4000, 3000)), "JPEG", quality=90)
    for name in ("a", "b", "c"):
        bench.put(f"{name}.jpg", photo)
    longest_s = 0.0

    async def watch() -> None:
        nonlocal longest_s
        while True:
            begun_s = anyio.current_time()
            await anyio.sleep(0.002)
            longest_s = max(longest_s, anyio.current_time() - begun_s)

    read: Callable[[str], Any] = lambda name: bench.run("read", path=name)  # noqa: E731 - one line
    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        async with anyio.create_task_group() as reading:
            for name in ("a.jpg", "b.jpg", "c.jpg"):
                reading.start_soon(read, name)
        group.cancel_scope.cancel()
    assert longest_s < 0.25


async def test_a_cancelled_image_is_not_waited_for(bench: Bench) -> None:
    bench.put("a.gif", stored(Pillow.new("P", (7_000, 7_000)), "GIF"))
    begun_s = anyio.current_time()
    with anyio.move_on_after(0.1) as scope:
        await bench.run("read", path="a.gif")
    assert scope.cancelled_caught
    assert anyio.current_time() - begun_s < 0.5


async def test_one_image_is_worked_on_at_a_time(bench: Bench) -> None:
    path = bench.put("a.png", stored(drawn(2500, 2500), "PNG"))
    file = await bench.workspace.files.read(path)
    assert isinstance(file, FileBytes)
    room = anyio.CapacityLimiter(1)

    async def show() -> None:
        await bytes_result("a.png", file, rules=ImageRules(), room=room)

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(show)
        await anyio.wait_all_tasks_blocked()
        at_work = room.statistics()
        assert (at_work.borrowed_tokens, at_work.tasks_waiting) == (1, 2)
    assert room.statistics().borrowed_tokens == 0
