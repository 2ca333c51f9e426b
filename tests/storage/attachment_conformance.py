"""Rules of attachments in every store; a test class inherits them and has the fixture `place`."""

from collections.abc import AsyncGenerator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import pytest
from anyio import to_thread

from agent_core.kernel.errors import AttachmentRefused, AttachmentTooLarge, AttachmentUntyped
from agent_core.storage.adapters.attachments import (
    KEPT_S,
    PARTIAL_S,
    Attachments,
    CountedAttachments,
)
from agent_core.storage.attachments import AttachmentLimits
from agent_core.storage.port import Attachment
from tests.support.provider.images import PNG

NOW_S = 2_000_000_000.0
SMALL = AttachmentLimits(image_bytes=100, file_bytes=200, session_bytes=250)


def blob_of(data: bytes) -> str:
    """Return the name of bytes."""
    return sha256(data).hexdigest()


async def pieces(data: bytes, size: int = 7) -> AsyncGenerator[bytes]:
    """Yield bytes in pieces."""
    for first in range(0, len(data), size):
        yield data[first : first + size]


class AttachmentPlace(Protocol):
    """A place where attachments are stored; all methods are blocking."""

    folder: Path
    """Beside the sessions."""

    def open(self, *, limits: AttachmentLimits | None = None) -> Attachments:
        """Return its attachments."""
        ...

    def stored(self) -> Sequence[str]:
        """Return the names of what is stored, also of parts, in order."""
        ...

    def damage(self, blob: str, data: bytes) -> None:
        """Replace stored bytes."""
        ...

    def age(self, blob: str, at_s: float) -> None:
        """Set the time of stored bytes."""
        ...


class AttachmentConformance:
    """Needs a fixture `place`."""

    async def test_bytes_come_in_pieces_and_are_stored_once(self, place: AttachmentPlace) -> None:
        store = place.open()
        stored = Attachment(blob=blob_of(PNG), mime="image/png", size=len(PNG))
        assert await store.receive(blob_of(PNG), pieces(PNG)) == (stored, True)
        assert await store.receive(blob_of(PNG), pieces(PNG)) == (stored, False)
        assert place.stored() == [blob_of(PNG)]
        assert await store.read(blob_of(PNG)) == (stored, PNG)
        assert await place.open().read(blob_of(PNG)) == (stored, PNG)
        assert await store.read("0" * 64) is None

    @pytest.mark.parametrize(
        ("data", "mime"),
        [
            (PNG, "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF87a", "image/gif"),
            (b"RIFF\0\0\0\0WEBPVP8L", "image/webp"),
            (b"RIFF\0\0\0\0WAVEfmt ", None),
            (b"%PDF-1.4\n\0", "application/pdf"),
            ("grüße".encode(), "text/plain"),
            ("grüße".encode()[:3], None),
            (("x" * 40 + "ü").encode()[:-1], None),
            (b"x" * 40 + b"\0", None),
            (b"", None),
            (b"BM\0\0", None),
        ],
    )  # fmt: skip
    async def test_the_type_is_that_of_the_bytes(
        self, place: AttachmentPlace, data: bytes, mime: str | None
    ) -> None:
        store = place.open()
        if mime is None:
            with pytest.raises(AttachmentUntyped):
                await store.receive(blob_of(data), pieces(data))
            assert place.stored() == []
        else:
            assert (await store.receive(blob_of(data), pieces(data)))[0].mime == mime
            found = await store.read(blob_of(data))
            assert found is not None
            assert found[0].mime == mime

    @pytest.mark.parametrize("data", [PNG[:8] + bytes(93), b"x" * 201])
    async def test_the_byte_above_the_limit_ends_the_upload(
        self, place: AttachmentPlace, data: bytes
    ) -> None:
        sent = 0

        async def endless() -> AsyncGenerator[bytes]:
            nonlocal sent
            async for piece in pieces(data):
                yield piece
            while True:
                sent += 1
                yield bytes(1000)

        with pytest.raises(AttachmentTooLarge):
            await place.open(limits=SMALL).receive("0" * 64, endless())
        assert sent == 0
        assert place.stored() == []
        fits = data[:-1]
        _ = await place.open(limits=SMALL).receive(blob_of(fits), pieces(fits))

    @pytest.mark.parametrize(
        "blob", ["", "x" * 64, "0" * 63, "A" * 64, "../../" + "0" * 58, "0" * 64 + "\n", "０" * 64]
    )
    async def test_a_name_that_is_no_hash_reaches_nothing(
        self, place: AttachmentPlace, blob: str
    ) -> None:
        store = place.open()
        with pytest.raises(AttachmentRefused, match="64 lower-case hexadecimal digits"):
            await store.receive(blob, pieces(PNG))
        assert await store.read(blob) is None
        assert await to_thread.run_sync(lambda: store.link(blob, lifetime_s=60)) is None
        assert place.stored() == []

    async def test_other_bytes_than_the_name_leave_nothing(self, place: AttachmentPlace) -> None:
        with pytest.raises(AttachmentRefused, match="do not have the SHA-256"):
            await place.open().receive("0" * 64, pieces(PNG))
        assert place.stored() == []

    async def test_damaged_bytes_are_not_used_and_are_stored_again(
        self, place: AttachmentPlace
    ) -> None:
        store = place.open()
        for wrong in (PNG[:-1] + b"x", PNG[:-1], PNG + b"x"):
            _ = await store.receive(blob_of(PNG), pieces(PNG))
            place.damage(blob_of(PNG), wrong)
            assert await store.read(blob_of(PNG)) is None
        _ = await store.receive(blob_of(PNG), pieces(PNG))
        found = await store.read(blob_of(PNG))
        assert found is not None
        assert found[1] == PNG

    async def test_a_session_has_a_limit_and_counts_what_its_file_names(
        self, place: AttachmentPlace, tmp_path: Path
    ) -> None:
        session = tmp_path / "s.jsonl"
        store = place.open(limits=SMALL)
        first, second = b"a" * 150, b"b" * 150
        a = await CountedAttachments(lambda: store, session).keep(first)
        _ = session.write_text(f'{{"type":"image","blob":"{a.blob}","size":{a.size}}}\n')
        opened = CountedAttachments(lambda: store, session)
        assert await opened.keep(first) == a
        with pytest.raises(AttachmentTooLarge, match="start a new session"):
            await opened.keep(second)
        b = await CountedAttachments(lambda: store, tmp_path / "other.jsonl").keep(second)
        with pytest.raises(AttachmentTooLarge, match="start a new session"):
            await opened.claim(b.blob)
        assert await opened.claim(a.blob) == a
        assert await opened.read(a.blob) == first
        with pytest.raises(AttachmentRefused, match="send its bytes first"):
            await opened.claim("0" * 64)

    def test_only_old_attachments_that_no_session_names_are_removed(
        self, place: AttachmentPlace, tmp_path: Path
    ) -> None:
        store = place.open()
        named, old, fresh = (store.put_now(text) for text in (b"named", b"old", b"fresh"))
        for one in (named, old):
            place.age(one.blob, NOW_S - KEPT_S - 1)
        place.age(fresh.blob, NOW_S - KEPT_S + 1)
        session = tmp_path / "s.jsonl"
        _ = session.write_text(f'{{"blob":"{named.blob}","size":5}}')
        assert store.collect([session, tmp_path / "gone.jsonl"], now_s=NOW_S) == 1
        assert place.stored() == sorted((named.blob, fresh.blob))
        assert store.collect([], now_s=NOW_S) == 1
        assert place.stored() == [fresh.blob]

    async def test_an_attachment_that_a_prompt_names_is_kept_as_a_new_one(
        self, place: AttachmentPlace, tmp_path: Path
    ) -> None:
        store = place.open()
        stored, _ = await store.receive(blob_of(PNG), pieces(PNG))
        place.age(stored.blob, 0)
        _ = await CountedAttachments(lambda: store, tmp_path / "s.jsonl").claim(stored.blob)
        assert await to_thread.run_sync(lambda: store.collect([], now_s=KEPT_S + 1)) == 0
        assert await store.read(stored.blob) is not None

    def test_storing_again_keeps_an_old_attachment(self, place: AttachmentPlace) -> None:
        store = place.open()
        stored = store.put_now(b"again")
        place.age(stored.blob, 0)
        _ = store.put_now(b"again")
        assert store.collect([], now_s=KEPT_S + 1) == 0
        assert store.read_now(stored.blob) is not None

    async def test_an_upload_in_progress_is_not_removed(self, place: AttachmentPlace) -> None:
        store = place.open()
        removed: list[int] = []

        async def slow() -> AsyncGenerator[bytes]:
            yield PNG[:20]
            (part,) = await to_thread.run_sync(place.stored)
            assert part.endswith(".tmp")
            removed.append(await to_thread.run_sync(lambda: store.collect([], now_s=KEPT_S)))
            yield PNG[20:]

        assert (await store.receive(blob_of(PNG), slow()))[1]
        assert removed == [0]
        assert await store.read(blob_of(PNG)) is not None
        assert PARTIAL_S < KEPT_S
