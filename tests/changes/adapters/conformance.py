"""What every place for contents must do; a test class inherits this and gives the place."""

import anyio
import pytest

from agent_core.changes import BlobStore
from agent_core.workspace.files.text import sha256_of

SAMPLES = [b"", b"text\n", b"\x00\xff\r\n", b"x" * 3_000_000]
IDS = ["empty", "text", "bytes", "large"]


class ContentsConformance:
    """Needs a fixture `contents`."""

    @pytest.mark.parametrize("data", SAMPLES, ids=IDS)
    async def test_what_was_put_is_given_again_under_its_hash(
        self, contents: BlobStore, data: bytes
    ) -> None:
        key = await contents.put(data)
        assert key == sha256_of(data)
        assert await contents.get(key) == data

    async def test_the_same_bytes_have_one_key(self, contents: BlobStore) -> None:
        keys = {await contents.put(b"same") for _ in range(3)}
        assert keys == {sha256_of(b"same")}

    @pytest.mark.parametrize(
        "key",
        ["0" * 64, "", "..", "../../etc/passwd", "/etc/passwd", "A" * 64, "0" * 63 + "\n"],
        ids=["unknown", "empty", "dots", "way out", "absolute", "capitals", "newline"],
    )
    async def test_what_was_never_put_is_none(self, contents: BlobStore, key: str) -> None:
        await contents.put(b"other")
        assert await contents.get(key) is None

    async def test_many_at_once_are_all_kept(self, contents: BlobStore) -> None:
        texts = [f"{number % 20}".encode() for number in range(100)]
        async with anyio.create_task_group() as group:
            for text in texts:
                group.start_soon(contents.put, text)
        assert [await contents.get(sha256_of(text)) for text in texts] == texts

    async def test_settling_what_is_not_there_is_no_error(self, contents: BlobStore) -> None:
        key = await contents.put(b"there")
        await contents.sync([key, "0" * 64, "no key"])
        assert await contents.get(key) == b"there"
