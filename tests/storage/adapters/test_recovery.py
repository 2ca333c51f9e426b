"""Damaged session files: what is whole is read, and what was lost hides only itself."""

import json
import random
from pathlib import Path

import pytest

from agent_core.kernel import EntryId, SessionId, SystemClock
from agent_core.kernel.errors import SessionDamaged
from agent_core.messages import Text, UserMessage
from agent_core.storage import OpenedSession, Recovery
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import MessageEntry, Transcript
from agent_core.transcript.codec import encode_entry, encode_header
from agent_core.transcript.tree import children_of
from tests.support.harness.sizes import at_size
from tests.support.session.entries import assistant, call, chain, entry, header, result, user

ENTRIES = chain(user("one"), assistant("two", call("read", {"path": "a"})), result("three ü"))
LINES = [encode_header(header()), *map(encode_entry, ENTRIES)]
CONTENT = b"\n".join([*LINES, b""])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "--w-project--" / "2026_s1.jsonl"
    path.parent.mkdir()
    return path


@pytest.fixture
def store(tmp_path: Path) -> JsonlStore:
    return JsonlStore(tmp_path, SystemClock())


async def test_a_file_cut_at_any_byte_keeps_every_whole_line_and_takes_more(
    store: JsonlStore, file: Path
) -> None:
    step = at_size(ci=7, campaign=1)
    ends = {len(CONTENT) - 1, len(CONTENT)}
    for size in sorted({*range(len(LINES[0]), len(CONTENT), step), *ends}):
        _put(file, CONTENT[:size])
        whole = _whole_lines(size)
        opened = await store.open(SessionId("s1"))
        assert opened.entries == tuple(ENTRIES[:whole]), size
        parent = ENTRIES[whole - 1].id if whole else None
        more = [entry("x", user("more"), parent=parent), entry("y", user("and more"), parent="x")]
        await opened.log.append(more)
        await opened.log.close()
        again = await store.open(SessionId("s1"))
        assert again.entries == (*ENTRIES[:whole], *more), size
        assert again.recovery == Recovery(), size
        await again.log.close()


async def test_a_torn_last_line_is_cut_off_and_kept_beside_the_file(
    store: JsonlStore, file: Path
) -> None:
    torn = b'{"type":"message","id":"x","parentId":"e3","mess'
    _put(file, CONTENT + torn)
    opened = await store.open(SessionId("s1"))
    damaged = file.with_name(file.name + ".damaged")
    assert opened.recovery == Recovery(torn_tail=damaged)
    assert (damaged.read_bytes(), _bytes(file)) == (torn + b"\n", CONTENT)
    await opened.log.close()
    _put(file, CONTENT + b"again")
    await (await store.open(SessionId("s1"))).log.close()
    assert damaged.read_bytes() == torn + b"\nagain\n"


async def test_a_last_line_that_is_whole_but_for_its_newline_is_kept(
    store: JsonlStore, file: Path
) -> None:
    _put(file, CONTENT[:-1])
    opened = await store.open(SessionId("s1"))
    assert (opened.entries, opened.recovery) == (tuple(ENTRIES), Recovery())
    assert _bytes(file) == CONTENT
    await opened.log.close()


@pytest.mark.parametrize("zeros", [1, 512, 70_000])
async def test_zeros_that_a_power_cut_left_at_the_end_are_dropped(
    store: JsonlStore, file: Path, zeros: int
) -> None:
    for content in (CONTENT, CONTENT[:-1]):
        _put(file, content + b"\0" * zeros)
        opened = await store.open(SessionId("s1"))
        assert (opened.entries, opened.recovery) == (tuple(ENTRIES), Recovery())
        assert _bytes(file) == CONTENT
        await opened.log.close()
    _put(file, CONTENT + b'{"type":"mes' + b"\0" * zeros)
    opened = await store.open(SessionId("s1"))
    damaged = file.with_name(file.name + ".damaged")
    assert (opened.recovery.torn_tail, damaged.read_bytes()) == (damaged, b'{"type":"mes\n')
    assert _bytes(file) == CONTENT
    await opened.log.close()


@pytest.mark.parametrize(
    "damaged",
    [b"garbage", b"\0" * 512, b"\xff\xfe\xfa", b"[" * 100_000, b'"text"', b"12", b"{}", b"null"],
    ids=["text", "zeros", "bytes", "deep", "string", "number", "object", "null"],
)
async def test_a_damaged_line_in_the_middle_hides_only_itself(
    store: JsonlStore, file: Path, damaged: bytes
) -> None:
    content = b"\n".join([*LINES[:2], damaged, *LINES[2:], b""])
    _put(file, content)
    opened = await store.open(SessionId("s1"))
    assert opened.entries == tuple(ENTRIES)
    assert opened.recovery == Recovery(skipped_lines=(3,))
    assert _bytes(file) == content
    await opened.log.close()


async def test_what_followed_a_lost_entry_is_tied_to_what_came_before_it(
    store: JsonlStore, file: Path
) -> None:
    _put(file, b"\n".join([*LINES[:2], b"\0" * 200, LINES[3], b""]))
    opened = await store.open(SessionId("s1"))
    assert _path(opened) == ["e1", "e3"]
    assert opened.recovery.skipped_lines == (3,)
    await opened.log.close()


async def test_a_damaged_line_that_still_says_its_parent_is_believed(
    store: JsonlStore, file: Path
) -> None:
    root, left, right = (
        entry("root", user("r")),
        entry("left", user("l"), parent="root"),
        entry("right", user("r"), parent="root"),
    )
    lost = encode_entry(entry("lost", user("x"), parent="left"))[:60]
    children = [entry("a", user("a"), parent="lost"), entry("b", user("b"), parent="lost")]
    lines = [LINES[0], *map(encode_entry, [root, left, right]), lost]
    _put(file, b"\n".join([*lines, *map(encode_entry, children), b""]))
    opened = await store.open(SessionId("s1"))
    transcript = Transcript(opened.entries)
    for child in ("a", "b"):
        path = [one.id for one in transcript.path(EntryId(child))]
        assert path == ["root", "left", child]
    await opened.log.close()


async def test_many_lost_lines_in_a_row_are_bridged(store: JsonlStore, file: Path) -> None:
    entries = chain(*(user(str(number)) for number in range(10)))
    lines = [LINES[0], *map(encode_entry, entries)]
    for number in (3, 4, 5, 8):
        lines[number] = lines[number][:50]
    _put(file, b"\n".join([*lines, b""]))
    opened = await store.open(SessionId("s1"))
    assert _path(opened) == ["e1", "e2", "e6", "e7", "e9", "e10"]
    assert opened.recovery.skipped_lines == (4, 5, 6, 9)
    await opened.log.close()


async def test_without_damage_an_orphan_stays_a_root(store: JsonlStore, file: Path) -> None:
    orphan = entry("x", user("x"), parent="gone")
    _put(file, CONTENT + encode_entry(orphan) + b"\n")
    opened = await store.open(SessionId("s1"))
    assert _path(opened) == ["x"]
    assert opened.recovery == Recovery(loose=(EntryId("x"),))
    assert _bytes(file) == CONTENT + encode_entry(orphan) + b"\n"
    await opened.log.close()


async def test_a_circle_is_walked_once_and_reported(store: JsonlStore, file: Path) -> None:
    circle = [entry("a", user("a"), parent="b"), entry("b", user("b"), parent="a")]
    own = entry("c", user("c"), parent="c")
    behind = entry("d", user("d"), parent="b")
    content = CONTENT + b"".join(encode_entry(one) + b"\n" for one in (*circle, own, behind))
    _put(file, content)
    opened = await store.open(SessionId("s1"))
    assert _path(opened) == ["a", "b", "d"]
    assert opened.recovery == Recovery(loose=(EntryId("a"), EntryId("c")))
    assert _bytes(file) == content
    await opened.log.close()


async def test_an_entry_may_come_before_its_parent(store: JsonlStore, file: Path) -> None:
    late = [entry("b", user("b"), parent="a"), entry("a", user("a"), parent="e3")]
    last = entry("c", user("c"), parent="b")
    _put(file, CONTENT + b"".join(encode_entry(one) + b"\n" for one in (*late, last)))
    opened = await store.open(SessionId("s1"))
    assert _path(opened) == ["e1", "e2", "e3", "a", "b", "c"]
    assert opened.recovery == Recovery()
    await opened.log.close()


async def test_a_file_of_a_later_version_can_be_read_and_is_left_alone(
    store: JsonlStore, file: Path
) -> None:
    content = CONTENT.replace(b'"version":3', b'"version":4') + b'{"type":"mess'
    _put(file, content)
    with pytest.raises(SessionDamaged, match=r"_s1\.jsonl.* is of version 4.*update the program"):
        await store.open(SessionId("s1"))
    assert (await store.read(SessionId("s1"))).entries == tuple(ENTRIES)
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert _bytes(file) == content


async def test_reading_puts_nothing_right(store: JsonlStore, file: Path) -> None:
    content = b"\n".join([*LINES[:2], b"damaged", *LINES[2:], LINES[1][:-5]])
    _put(file, content)
    stored = await store.read(SessionId("s1"))
    assert (stored.header, stored.entries) == (header(), tuple(ENTRIES))
    assert (stored.recovery, stored.location) == (Recovery(skipped_lines=(3,)), file)
    assert _bytes(file) == content
    assert [path.name for path in file.parent.iterdir()] == [file.name]


async def test_a_damaged_file_of_an_older_version_stays_mended(
    store: JsonlStore, file: Path
) -> None:
    old = [{"type": "session", "id": "s1", "timestamp": "2025-01-01T00:00:00.000Z", "cwd": "/w"}]
    said = [json.loads(line) for line in LINES[1:]]
    lines = [json.dumps(one).encode() for one in (*old, *said)]
    lines[2] = lines[2][:80]
    _put(file, b"\n".join([*lines, b""]).replace(b'"id": "s1"', b'"version": 2, "id": "s1"'))
    for skipped in ((3,), ()):
        opened = await store.open(SessionId("s1"))
        assert _path(opened) == ["e1", "e3"]
        assert opened.recovery == Recovery(skipped_lines=skipped)
        await opened.log.close()


async def test_a_line_glued_to_a_torn_one_is_read(store: JsonlStore, file: Path) -> None:
    glued = LINES[2][:40] + LINES[3]
    _put(file, b"\n".join([*LINES[:2], glued, b""]))
    opened = await store.open(SessionId("s1"))
    assert [one.id for one in opened.entries] == ["e1", "e3"]
    await opened.log.close()


async def test_an_id_that_comes_twice_counts_the_first_time(store: JsonlStore, file: Path) -> None:
    twice = encode_entry(entry("e1", user("other")))
    _put(file, CONTENT + twice + b"\n" + LINES[0] + b"\n")
    opened = await store.open(SessionId("s1"))
    assert opened.entries == tuple(ENTRIES)
    assert opened.recovery.skipped_lines == (5, 6)
    await opened.log.close()


async def test_files_of_other_programs_are_read_with_their_ways_of_writing(
    store: JsonlStore, file: Path
) -> None:
    pretty = [json.dumps(json.loads(line), ensure_ascii=True) for line in LINES]
    _put(file, b"\xef\xbb\xbf" + "\r\n".join([*pretty, "", ""]).encode())
    opened = await store.open(SessionId("s1"))
    assert (opened.entries, opened.recovery) == (tuple(ENTRIES), Recovery())
    await opened.log.close()


async def test_a_lone_surrogate_in_a_file_is_replaced_not_refused(
    store: JsonlStore, file: Path
) -> None:
    line = encode_entry(entry("x", user("MARK"), parent="e3")).replace(b"MARK", rb"a\ud83d")
    _put(file, CONTENT + line + b"\n")
    opened = await store.open(SessionId("s1"))
    last = opened.entries[-1]
    assert isinstance(last, MessageEntry)
    assert isinstance(last.message, UserMessage)
    assert last.message.content == (Text(text="a\ufffd"),)
    assert opened.recovery == Recovery(patched_lines=(5,))
    assert _bytes(file) == CONTENT + line + b"\n"
    await opened.log.close()


@pytest.mark.parametrize(
    "text",
    [rb"\ud83d\ude00", rb"\uD83D\uDE00", rb"\\ud83d", rb"\\\\ude00", rb"\ud7ff \ue000"],
    ids=["pair", "upper case", "backslash", "backslashes", "neighbours"],
)
async def test_a_whole_character_is_not_reported(
    store: JsonlStore, file: Path, text: bytes
) -> None:
    line = encode_entry(entry("x", user("MARK"), parent="e3")).replace(b"MARK", text)
    _put(file, CONTENT + line + b"\n")
    opened = await store.open(SessionId("s1"))
    assert opened.recovery == Recovery()
    await opened.log.close()


@pytest.mark.parametrize("whole", [True, False], ids=["an entry", "no entry"])
async def test_a_line_of_100_mb_hides_nothing_but_itself(
    store: JsonlStore, file: Path, *, whole: bool
) -> None:
    size = at_size(ci=20_000_000, campaign=100_000_000)
    big = encode_entry(entry("x", user("x" * size), parent="e3"))
    after = entry("y", user("y"), parent="x")
    line = big if whole else big[:-3]
    content = CONTENT + line + b"\n" + encode_entry(after) + b"\n"
    _put(file, content)
    opened = await store.open(SessionId("s1"))
    lost = Recovery() if whole else Recovery(skipped_lines=(5,))
    assert opened.recovery == lost
    assert _path(opened) == ["e1", "e2", "e3", *(["x"] if whole else []), "y"]
    assert _bytes(file) == content
    await opened.log.close()


async def test_random_damage_never_stops_a_session_from_opening(
    store: JsonlStore, file: Path
) -> None:
    seed = random.Random(20_260_101)  # noqa: S311 - the same damage every time
    entries = chain(*(user(f"{number} " + "x" * 40) for number in range(40)))
    body = b"".join(encode_entry(one) + b"\n" for one in entries)
    for _ in range(at_size(ci=150, campaign=2_000)):
        damaged = bytearray(body)
        for _ in range(seed.randrange(1, 6)):
            start = seed.randrange(len(damaged))
            end = min(len(damaged), start + seed.choice([1, 1, 8, 64, 512]))
            damaged[start:end] = seed.choice([b"\0", b"\xff", b"\n", b'"', b"{"]) * (end - start)
        _put(file, LINES[0] + b"\n" + bytes(damaged))
        opened = await store.open(SessionId("s1"))
        whole = {one.id for one in entries if encode_entry(one) in bytes(damaged).split(b"\n")}
        read = {one.id for one in opened.entries}
        assert whole <= read
        # Every entry that was read hangs together with the first ones, as far as there are any.
        roots = [one.id for one in children_of(Transcript(opened.entries), None)]
        assert len(roots) <= 2, roots
        await opened.log.close()


def _path(opened: OpenedSession) -> list[str]:
    return [one.id for one in Transcript(opened.entries).path()]


def _whole_lines(size: int) -> int:
    """Say how many entries are whole in so many bytes; the newline is not part of a line."""
    end = len(LINES[0])
    whole = 0
    for line in LINES[1:]:
        end += 1 + len(line)
        whole += end <= size
    return whole


def _put(file: Path, content: bytes) -> None:
    file.write_bytes(content)


def _bytes(file: Path) -> bytes:
    return file.read_bytes()
