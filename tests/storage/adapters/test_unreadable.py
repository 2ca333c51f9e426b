"""A session whose file is there and cannot be read is no missing one: what is wrong, where, and what to do is said."""

import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agent_core.kernel import SessionId, SystemClock
from agent_core.kernel.errors import (
    SessionDamaged,
    SessionNotFound,
    StorageUnavailable,
    TillerError,
)
from agent_core.storage.adapters.jsonl import JsonlStore
from tests.support.session.entries import chain, header, user

NOBODY = 65534
ID = SessionId("s1")
Asking = Callable[[JsonlStore], Awaitable[object]]
WAYS: dict[str, Asking] = {
    "open": lambda store: store.open(ID),
    "read": lambda store: store.read(ID),
    "delete": lambda store: store.delete(ID),
}


@pytest.fixture(params=WAYS)
def asking(request: pytest.FixtureRequest) -> Asking:
    return WAYS[request.param]


@pytest.fixture
def plain_user() -> Iterator[Path]:
    """A folder of a user without special rights, whom the system refuses things."""
    root = Path(os.path.realpath(tempfile.mkdtemp(prefix="tl-nobody-")))
    special = os.geteuid() == 0
    if special:
        os.chown(root, NOBODY, NOBODY)
        os.seteuid(NOBODY)
    try:
        yield root
    finally:
        if special:
            os.seteuid(0)
        shutil.rmtree(root)


async def kept(folder: Path) -> tuple[JsonlStore, Path]:
    """A store with one session, and its file."""
    store = JsonlStore(folder / "sessions", SystemClock())
    log = await store.create(header())
    await log.append(chain(user("hello")))
    await log.close()
    assert log.location is not None
    return store, log.location


async def fault(store: JsonlStore, asking: Asking) -> TillerError:
    with pytest.raises(TillerError) as raised:
        _ = await asking(store)
    return raised.value


async def test_a_file_that_may_not_be_read_is_named(plain_user: Path, asking: Asking) -> None:
    store, file = await kept(plain_user)
    content = file.read_bytes()
    file.chmod(0)
    error = await fault(store, asking)
    assert isinstance(error, StorageUnavailable)
    assert f"the session file {str(file)!r} could not be read: Permission denied" in str(error)
    assert "make it readable, then try again" in str(error)
    file.chmod(0o600)
    assert file.read_bytes() == content
    await asking(store)


async def test_a_folder_that_may_not_be_read_is_named(plain_user: Path, asking: Asking) -> None:
    store, file = await kept(plain_user)
    for folder in (file.parent, file.parent.parent):
        folder.chmod(0)
        error = await fault(store, asking)
        folder.chmod(0o700)
        assert isinstance(error, StorageUnavailable)
        assert f"{str(folder)!r}: Permission denied; make it readable" in str(error)
    await asking(store)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "is empty: restore it from a copy"),
        (b"\0" * 4096, "no header in its first mebibyte"),
        (b"%PDF-1.7\n", "no header in its first mebibyte"),
        (b'{"a": 1}\n', "is no session file: the first line is no session header"),
        (b'{"type":"session","version":3}\n', "needs a type 'session' and an id"),
    ],
    ids=["empty", "zeros", "other", "json", "no id"],
)
async def test_a_file_that_is_no_session_is_named_and_stays(
    tmp_path: Path, asking: Asking, content: bytes, why: str
) -> None:
    store, file = await kept(tmp_path)
    file.write_bytes(content)
    error = await fault(store, asking)
    assert isinstance(error, SessionDamaged)
    assert str(file) in str(error)
    assert why in str(error)
    assert file.read_bytes() == content


async def test_a_folder_or_a_pipe_in_its_place_is_named(tmp_path: Path, asking: Asking) -> None:
    store, file = await kept(tmp_path)
    file.unlink()
    file.mkdir()
    error = await fault(store, asking)
    assert isinstance(error, SessionDamaged)
    assert f"{str(file)!r} has the name of a session and is a folder: move it away" in str(error)
    file.rmdir()
    os.mkfifo(file)
    assert "is no file: move it away" in str(await fault(store, asking))


async def test_a_link_that_leads_nowhere_is_named(tmp_path: Path, asking: Asking) -> None:
    store, file = await kept(tmp_path)
    file.unlink()
    file.symlink_to("gone.jsonl")
    error = await fault(store, asking)
    assert isinstance(error, StorageUnavailable)
    assert "No such file or directory; it is a link to 'gone.jsonl'" in str(error)


async def test_what_is_wrong_elsewhere_hides_no_session(tmp_path: Path) -> None:
    store, file = await kept(tmp_path)
    broken = file.with_name("2020_s10.jsonl")
    broken.write_bytes(b"")
    await (await store.open(ID)).log.close()
    with pytest.raises(SessionNotFound, match=r"no session 's2' .* list the sessions"):
        _ = await store.read(SessionId("s2"))
    with pytest.raises(SessionDamaged, match=r"s10\.jsonl' has the name of a session and is empty"):
        _ = await store.read(SessionId("s10"))
