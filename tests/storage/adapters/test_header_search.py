"""How far into a file its header is looked for when sessions are listed and found."""

from pathlib import Path

import pytest

from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import SessionDamaged
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, header, user

MEBIBYTE = 1 << 20


@pytest.fixture
async def session(tmp_path: Path) -> tuple[JsonlStore, Path]:
    """A store with one session, and its file."""
    store = JsonlStore(tmp_path / "sessions", SystemClock())
    log = await store.create(header())
    await log.append(chain(user("hello")))
    await log.close()
    assert log.location is not None
    return store, Path(log.location)


@pytest.mark.parametrize(
    "before",
    [b"\n" * 1_000, b"not json\n" * 1_000, b"x" * (MEBIBYTE // 2) + b"\n"],
    ids=["blank", "garbage", "half-a-mebibyte"],
)
async def test_a_header_behind_damaged_lines_is_found(
    session: tuple[JsonlStore, Path], before: bytes
) -> None:
    store, file = session
    file.write_bytes(before + file.read_bytes())
    assert [one.preview for one in await store.list()] == ["hello"]
    assert await store.latest("/w/project") == "s1"
    assert (await store.read(SessionId("s1"))).header == header()


async def test_a_header_is_looked_for_in_the_first_mebibyte_only(
    session: tuple[JsonlStore, Path],
) -> None:
    store, file = session
    file.write_bytes(b"x" * MEBIBYTE + b"\n" + file.read_bytes())
    assert await store.list() == ()
    assert await store.latest("/w/project") is None
    with pytest.raises(SessionDamaged, match="no header in its first mebibyte"):
        await store.read(SessionId("s1"))
