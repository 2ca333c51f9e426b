"""Attachments in a bucket, through each front end: stored there, read there, and refused in a sentence when it fails."""

import subprocess
import sys
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from typing import Any

import anyio
import httpx
import pytest
from anyio import to_thread

from agent_core.resources.paths import app_paths
from agent_core.storage.adapters.paths import attachments_folder
from tests.support.acp.client import acp_client
from tests.support.clients.browsers import served
from tests.support.clients.server import TILLER, Ground, calls, says
from tests.support.clients.windows import Windows, opened, serving
from tests.support.harness.clock import HeldClock
from tests.support.lsp.lsp_client import RawClient
from tests.support.lsp.lsp_connection import ClientError
from tests.support.provider.images import PNG, PNG_BASE64
from tests.support.storage.s3_server import S3Server, s3_server

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(60)]

BLOB = sha256(PNG).hexdigest()
IMAGE = {"type": "image", "mime": "image/png", "data": PNG_BASE64}
NAMED = {"type": "image", "mime": "image/png", "blob": BLOB, "size": len(PNG)}
URL = f"data:image/png;base64,{PNG_BASE64}"
BYTES = {"content-type": "application/octet-stream"}


class Bucket:
    """A bucket in the settings of a user."""

    def __init__(self, server: S3Server, ground: Ground) -> None:
        self.server = server
        self.name = server.make_bucket()
        self.ground = replace(ground, env={**ground.env, **server.env})
        self.configure()

    def configure(self, **more: Any) -> None:
        """Write the settings."""
        attachments = {"store": f"s3://{self.name}/tiller", **more}
        self.ground.configure(attachments=attachments)
        self.ground.show_images()

    @property
    def blobs(self) -> list[str]:
        """The hashes of its objects."""
        return [key.rpartition("/")[2] for key in self.server.objects(self.name)]

    @property
    def files(self) -> list[str]:
        """The names of the files in the folder of attachments."""
        folder = attachments_folder(app_paths(self.ground.env).sessions)
        return [path.name for path in folder.rglob("*") if path.is_file()]

    def images_sent(self) -> list[str]:
        """Return the addresses of images in the newest request to the provider."""
        messages = self.ground.provider.requests[-1]["body"]["messages"]
        parts = [
            part for one in messages if isinstance(one["content"], list) for part in one["content"]
        ]
        return [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]


@pytest.fixture(scope="module")
def server() -> Generator[S3Server]:
    """Run a server for the tests of this file."""
    with s3_server() as running:
        yield running


@pytest.fixture
def bucket(server: S3Server, ground: Ground) -> Generator[Bucket]:
    """Return a bucket that the user's settings name."""
    yield Bucket(server, ground)
    server.mend()


@asynccontextmanager
async def window_of(windows: Windows) -> AsyncGenerator[RawClient]:
    """Open a window with a session."""
    async with windows.window() as window:
        await opened(window)
        yield window


async def send(window: RawClient, *content: Any) -> Any:
    """Send a prompt and wait for the end of its run."""
    return await window.request("agent/prompt", {"content": [*content], "wait": True})


async def test_an_editor_stores_reads_and_exports_in_the_bucket(bucket: Bucket) -> None:
    bucket.ground.provider.script([says("One."), says("Two.")])
    async with serving(bucket.ground) as windows:
        async with window_of(windows) as window:
            await send(window, IMAGE)
            read = await window.request("agent/session/read", {})
            assert read["items"][0]["content"] == [NAMED]
            assert (bucket.blobs, bucket.files) == ([BLOB], [])
            assert bucket.images_sent() == [URL]
            piece = await window.request("agent/blob/read", {"blob": BLOB})
            assert (piece["data"], piece["mime"]) == (PNG_BASE64, "image/png")
            exported = await window.request("agent/session/export", {"format": "html"})
            assert URL in exported["content"]
            await send(window, {"type": "text", "text": "again"})
        assert bucket.images_sent() == [URL]
    (path,) = bucket.ground.sessions()
    assert PNG_BASE64 not in path.read_text("utf-8")


async def test_a_prompt_is_refused_before_it_is_sent_when_its_image_cannot_be_stored(
    bucket: Bucket,
) -> None:
    bucket.ground.provider.script([says("One.")])
    async with serving(bucket.ground) as windows, window_of(windows) as window:
        bucket.server.is_down = "403"
        with pytest.raises(
            ClientError, match=r"Attachments cannot be stored in s3://.*access is denied"
        ):
            await send(window, IMAGE)
        assert bucket.ground.provider.requests == []
        read = await window.request("agent/session/read", {})
        assert read["items"] == []
        bucket.server.mend()
        await send(window, IMAGE)
    assert bucket.images_sent() == [URL]


async def test_a_run_whose_image_cannot_be_read_fails_and_the_next_one_has_it(
    bucket: Bucket,
) -> None:
    bucket.ground.provider.script([says("One."), says("Two.")])
    async with serving(bucket.ground) as windows, window_of(windows) as window:
        await send(window, IMAGE)
    async with serving(bucket.ground) as windows, windows.window() as window:
        await opened(window, session="latest")
        bucket.server.is_down = "403"
        ended = await send(window, {"type": "text", "text": "again"})
        assert ended["status"] == "failed"
        assert "Attachments cannot be read in s3://" in str(ended)
        assert len(bucket.ground.provider.requests) == 1
        bucket.server.mend()
        await send(window, {"type": "text", "text": "and now"})
    assert bucket.images_sent() == [URL]


async def test_a_session_from_before_the_setting_goes_on_with_its_images(bucket: Bucket) -> None:
    bucket.ground.configure()
    bucket.ground.show_images()
    bucket.ground.provider.script([says("One."), says("Two."), says("Three.")])
    async with serving(bucket.ground) as windows, window_of(windows) as window:
        await send(window, IMAGE)
    assert (bucket.blobs, bucket.files) == ([], [BLOB])
    bucket.configure()
    async with serving(bucket.ground) as windows, windows.window() as window:
        await opened(window, session="latest")
        await send(window, {"type": "text", "text": "again"})
        assert bucket.images_sent() == [URL]
        await send(window, {"type": "image", "mime": "image/png", "blob": BLOB})
        assert bucket.images_sent() == [URL, URL]
    assert (bucket.blobs, bucket.files) == ([BLOB], [BLOB])


async def test_the_result_of_a_tool_is_kept_in_the_session_when_its_image_cannot_be_stored(
    bucket: Bucket,
) -> None:
    (bucket.ground.root / "dot.png").write_bytes(PNG)
    bucket.ground.provider.script([calls(("read", {"path": "dot.png"})), says("A dot.")])
    bucket.server.is_down = "403"
    async with serving(bucket.ground) as windows, window_of(windows) as window:
        await send(window, {"type": "text", "text": "look"})
    assert bucket.blobs == []
    (path,) = bucket.ground.sessions()
    assert PNG_BASE64 in path.read_text("utf-8")


async def test_the_daemon_removes_what_no_session_names(bucket: Bucket) -> None:
    bucket.ground.provider.script([says("One.")])
    clock = HeldClock()
    async with serving(bucket.ground, clock=clock) as windows, window_of(windows) as window:
        await send(window, IMAGE)
        async with served(bucket.ground) as site, site.script() as page:
            text = b"named by nothing"
            put = await page.put(
                f"/v1/blobs/{sha256(text).hexdigest()}", content=text, headers=BYTES
            )
            assert put.status_code == 201
        for key in bucket.server.objects(bucket.name):
            bucket.server.age(bucket.name, key, 0)
        with anyio.fail_after(20):
            while len(bucket.blobs) > 1:
                clock.advance(30)
                await anyio.sleep(0.01)
    assert bucket.blobs == [BLOB]


async def test_a_browser_stores_and_reads_in_the_bucket_and_gets_an_error_when_it_fails(
    bucket: Bucket,
) -> None:
    path = f"/v1/blobs/{BLOB}"
    async with served(bucket.ground) as site, site.script() as page:
        put = await page.put(path, content=PNG, headers=BYTES)
        assert (put.status_code, bucket.blobs, bucket.files) == (201, [BLOB], [])
        assert (await page.put(path, content=PNG, headers=BYTES)).status_code == 200
        assert (await page.get(path)).content == PNG
        bucket.server.is_down = "403"
        refused, unread = await page.put(path, content=PNG, headers=BYTES), await page.get(path)
        bucket.server.mend()
    assert refused.status_code == 507
    assert "Attachments cannot be stored in s3://" in refused.json()["error"]["message"]
    assert (unread.status_code, unread.headers["retry-after"]) == (503, "5")
    assert "Attachments cannot be read in s3://" in unread.json()["error"]["message"]


async def test_an_address_in_the_store_is_made_only_where_the_settings_have_its_time(
    bucket: Bucket,
) -> None:
    path = f"/v1/blobs/{BLOB}"
    async with served(bucket.ground) as site, site.script() as page:
        _ = await page.put(path, content=PNG, headers=BYTES)
        assert (await page.get(f"{path}/link")).status_code == 404
        bucket.configure(linkS=90)
        made = (await page.get(f"{path}/link")).json()
        assert (await page.get(f"/v1/blobs/{'0' * 64}/link")).status_code == 404
        async with httpx.AsyncClient() as anyone:
            answer = await anyone.get(made["url"])
    assert made["expiresInS"] == 90
    assert (answer.content, answer.headers["content-type"]) == (PNG, "image/png")


async def test_a_client_of_acp_stores_in_the_bucket(bucket: Bucket) -> None:
    bucket.ground.provider.script([says("A dot.")])
    async with acp_client(bucket.ground) as client:
        await client.initialize()
        session = await client.new(bucket.ground.root)
        image = {"type": "image", "data": PNG_BASE64, "mimeType": "image/png"}
        await client.request("session/prompt", {"sessionId": session, "prompt": [image]})
    assert (bucket.blobs, bucket.files) == ([BLOB], [])
    assert bucket.images_sent() == [URL]


async def test_a_command_stores_in_the_bucket(bucket: Bucket) -> None:
    (bucket.ground.root / "dot.png").write_bytes(PNG)
    bucket.ground.provider.script([says("A dot.")])
    ran = await to_thread.run_sync(run, bucket.ground)
    assert (ran.returncode, ran.stdout) == (0, b"A dot.\n"), ran
    assert (bucket.blobs, bucket.files) == ([BLOB], [])
    assert bucket.images_sent() == [URL]


async def test_a_command_whose_image_cannot_be_stored_fails_in_one_sentence(
    bucket: Bucket,
) -> None:
    (bucket.ground.root / "dot.png").write_bytes(PNG)
    bucket.server.is_down = "403"
    ran = await to_thread.run_sync(run, bucket.ground)
    assert ran.returncode != 0
    assert b"Attachments cannot be stored in s3://" in ran.stderr
    assert bucket.ground.provider.requests == []


def run(ground: Ground, *program: str) -> subprocess.CompletedProcess[bytes]:
    """Run one prompt with an image."""
    argv = [*(program or TILLER), "run", "@dot.png", "see"]
    return subprocess.run(
        argv,
        cwd=ground.root,
        env=dict(ground.env),
        input=b"",
        capture_output=True,
        timeout=40,
        check=False,
    )


PROBE = """
import sys
from tiller_server.cli.entry import main
code = main(sys.argv[1:])
found = sorted(name for name in sys.modules if name.partition(".")[0] == "obstore" or name.endswith("attachment_bucket"))
print("imported:", *found)
sys.exit(code)
"""


async def test_without_the_setting_nothing_of_the_library_is_imported(ground: Ground) -> None:
    ground.show_images()
    (ground.root / "dot.png").write_bytes(PNG)
    ground.provider.script([says("A dot.")])
    ran = await to_thread.run_sync(run, ground, sys.executable, "-P", "-c", PROBE)
    assert (ran.returncode, ran.stdout) == (0, b"A dot.\nimported:\n"), ran
