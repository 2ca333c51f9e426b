"""Attachments over HTTP: stored once, served safely, sent to a model by their hash; every refusal has its sentence."""

import stat
from collections.abc import AsyncGenerator
from hashlib import sha256

import anyio
import httpx
import pytest

from agent_core.resources.paths import app_paths
from agent_core.storage.adapters.paths import attachments_folder
from tests.support.clients.browsers import Heard, ask, events_of, following, opened, served
from tests.support.clients.server import Ground, says
from tests.support.provider.images import PNG, PNG_BASE64
from tiller_server.web.methods import Role

pytestmark = [pytest.mark.timeout(60)]

BYTES = {"content-type": "application/octet-stream"}
MIB = 1 << 20


def blob_of(data: bytes) -> str:
    """Return the name of bytes."""
    return sha256(data).hexdigest()


async def put(page: httpx.AsyncClient, data: bytes, *, blob: str | None = None) -> httpx.Response:
    """Send an attachment."""
    return await page.put(f"/v1/blobs/{blob or blob_of(data)}", content=data, headers=BYTES)


def message_of(answer: httpx.Response) -> str:
    """Return the sentence of a refusal."""
    message = answer.json()["error"]["message"]
    assert isinstance(message, str)
    return message


async def test_an_image_is_stored_once_and_for_the_user_alone(ground: Ground) -> None:
    async with served(ground) as site, site.script() as page:
        first, again = await put(page, PNG), await put(page, PNG)
        assert (first.status_code, again.status_code) == (201, 200)
        stored = {"blob": blob_of(PNG), "mime": "image/png", "size": len(PNG)}
        assert first.json() == again.json() == stored
        got = await page.get(f"/v1/blobs/{blob_of(PNG)}")
    assert (got.status_code, got.content) == (200, PNG)
    folder = attachments_folder(app_paths(ground.env).sessions)
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path.name for path in files] == [blob_of(PNG)]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize(
    ("data", "kind", "shown"),
    [
        (PNG, "image/png", "inline"),
        (b"GIF89a" + bytes(20), "image/gif", "inline"),
        (b"\xff\xd8\xff\xe0" + bytes(20), "image/jpeg", "inline"),
        (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp", "inline"),
        (b"%PDF-1.7\n\xe2\xe3", "application/pdf", "attachment"),
        (b"<html><script>alert(1)</script>", "text/plain; charset=utf-8", "inline"),
        (b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "text/plain; charset=utf-8", "inline"),
    ],
    ids=["png", "gif", "jpeg", "webp", "pdf", "html", "svg"],
)  # fmt: skip
async def test_no_attachment_can_run_in_the_page(
    ground: Ground, data: bytes, kind: str, shown: str
) -> None:
    async with served(ground) as site, site.script() as page:
        assert (await put(page, data)).status_code == 201
        got = await page.get(f"/v1/blobs/{blob_of(data)}")
    assert got.content == data
    assert got.headers["content-type"] == kind
    assert got.headers["content-disposition"] == shown
    assert got.headers["x-content-type-options"] == "nosniff"
    policy = got.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert policy.endswith("; sandbox")


@pytest.mark.parametrize(
    ("data", "status", "reason"),
    [
        (PNG[:8] + bytes(11 * MIB), 413, "The image is larger than 10.0MB, the limit for an attached image; make it smaller."),
        (b"\x7fELF\x02\x01\x01" + bytes(20), 415, "The file is no PNG, JPEG, GIF, WebP, PDF or UTF-8 text; convert it to one of these."),
        (b"", 415, "The file is no PNG, JPEG, GIF, WebP, PDF or UTF-8 text; convert it to one of these."),
    ],
    ids=["large", "program", "empty"],
)  # fmt: skip
async def test_what_is_not_stored_is_refused_with_one_sentence(
    ground: Ground, data: bytes, status: int, reason: str
) -> None:
    async with served(ground) as site, site.script() as page:
        answer = await put(page, data)
        assert (answer.status_code, message_of(answer)) == (status, reason)
        assert (await page.get(f"/v1/blobs/{blob_of(data)}")).status_code == 404
    assert not list(attachments_folder(app_paths(ground.env).sessions).rglob(".*"))


async def test_bytes_of_another_hash_are_refused(ground: Ground) -> None:
    async with served(ground) as site, site.script() as page:
        answer = await put(page, PNG, blob="0" * 64)
        assert answer.status_code == 400
        reason = "The bytes do not have the SHA-256 that names them; send them again."
        assert message_of(answer) == reason
        assert (await page.get(f"/v1/blobs/{'0' * 64}")).status_code == 404
        assert (await page.get(f"/v1/blobs/{blob_of(PNG)}")).status_code == 404


@pytest.mark.parametrize(
    "name", ["x", "0" * 63, "0" * 65, "A" * 64, "%2e%2e%2f%2e%2e%2fauth.json", "..%5c..%5cauth", "%00" * 64, "%EF%BC%90" * 64]
)  # fmt: skip
async def test_a_hostile_name_reaches_no_file(ground: Ground, name: str) -> None:
    async with served(ground) as site, site.script() as page:
        sent = await page.put(f"/v1/blobs/{name}", content=PNG, headers=BYTES)
        got = await page.get(f"/v1/blobs/{name}")
        assert (sent.status_code in {400, 405}, got.status_code) == (True, 404)


@pytest.mark.parametrize("role", ["observer", "approver"])
async def test_only_an_operator_stores(ground: Ground, role: Role) -> None:
    async with served(ground, role=role) as site, site.script() as page:
        answer = await put(page, PNG)
        assert answer.status_code == 403
        why = f"an attachment needs the role operator, and tiller web runs as {role}"
        assert message_of(answer) == f"{why}; start it with --role operator"


async def test_an_upload_that_breaks_off_leaves_nothing(ground: Ground) -> None:
    arrived = anyio.Event()

    async def halves() -> AsyncGenerator[bytes]:
        yield PNG[:40]
        arrived.set()
        await anyio.sleep_forever()

    folder = attachments_folder(app_paths(ground.env).sessions)
    async with served(ground) as site, site.script() as page:
        path = f"/v1/blobs/{blob_of(PNG)}"
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: page.put(path, content=halves(), headers=BYTES))
            await arrived.wait()
            group.cancel_scope.cancel()
        assert (await page.get(path)).status_code == 404
    assert not [one for one in folder.rglob("*") if one.is_file()]


async def test_a_prompt_names_a_stored_image_and_the_model_sees_it(ground: Ground) -> None:
    ground.show_images()
    ground.provider.script([says("One pixel.")])
    image = {"type": "image", "mime": "image/png", "blob": blob_of(PNG)}
    seen: list[Heard] = []
    async with served(ground) as site, site.script() as page:
        session = (await opened(page))["session"]
        unknown = await ask(page, "agent/prompt", session=session, content=[image])
        assert (
            unknown["error"]["message"]
            == f"No attachment {blob_of(PNG)!r} is stored; send its bytes first."
        )
        assert (await put(page, PNG)).status_code == 201
        async with following(page, [session]) as stream:
            sent = await ask(page, "agent/prompt", session=session, content=[image])
            assert sent["result"]["accepted"] == "started"
            while (one := await stream.next()) is not None:
                seen.append(one)
                if any(event["type"] == "run.ended" for event in events_of([one])):
                    break
        read = await ask(page, "agent/session/read", session=session)
    (request,) = ground.provider.requests
    (part,) = request["body"]["messages"][-1]["content"]
    assert part["image_url"]["url"] == f"data:image/png;base64,{PNG_BASE64}"
    named = {**image, "size": len(PNG)}
    (message,) = [
        one for one in events_of(seen) if one["type"] == "message.ended" and one["role"] == "user"
    ]
    assert message["content"] == [named]
    assert read["result"]["items"][0]["content"] == [named]
    (entry,) = [one for one in ground.entries() if one.get("message", {}).get("role") == "user"]
    stored = {
        "type": "image",
        "data": "",
        "mimeType": "image/png",
        "blob": blob_of(PNG),
        "size": len(PNG),
    }
    assert entry["message"]["content"] == [stored]


async def test_an_attachment_that_is_no_image_is_no_image_of_a_prompt(ground: Ground) -> None:
    ground.show_images()
    async with served(ground) as site, site.script() as page:
        session = (await opened(page))["session"]
        assert (await put(page, b"hello")).status_code == 201
        content = [{"type": "image", "mime": "image/png", "blob": blob_of(b"hello")}]
        wrong = await ask(page, "agent/prompt", session=session, content=content)
        assert "is of type text/plain, and an image was expected" in wrong["error"]["message"]
