"""What every adapter of `Files` promises of deleting, moving and watching; see conformance.py."""

import anyio
import pytest

from agent_core.kernel.errors import FileMissing, NotAFile, PathRefused, StaleText
from agent_core.workspace import Changes, FileBytes
from tests.workspace.files.subject import Subject

SOON_S = 10.0


class Deleting:
    """A file goes only as what it was read as."""

    @pytest.mark.parametrize(
        "data", [b"text\n", b"\x00\xff", b"", "\ufeffgrün".encode("utf-16-le")]
    )
    async def test_a_file_that_is_what_was_read_goes(self, subject: Subject, data: bytes) -> None:
        path = subject.root / "sub/a"
        subject.contents.put(path, data)
        await subject.files.delete(path, base=await subject.files.read(path))
        assert subject.contents.get(path) is None
        with pytest.raises(FileMissing):
            _ = await subject.files.stat(path)

    async def test_a_file_that_changed_stays(self, subject: Subject) -> None:
        path = subject.root / "sub/a.txt"
        subject.contents.put(path, b"old")
        base = await subject.files.read(path)
        subject.contents.put(path, b"the user's")
        with pytest.raises(StaleText, match="changed since it was read: it was not deleted"):
            await subject.files.delete(path, base=base)
        assert subject.contents.get(path) == b"the user's"
        assert [entry.name for entry in await subject.files.list(path.parent)] == ["a.txt"]

    async def test_a_file_that_is_gone_cannot_be_deleted_again(self, subject: Subject) -> None:
        path = subject.root / "sub/a.txt"
        subject.contents.put(path, b"old")
        base = await subject.files.read(path)
        await subject.files.delete(path, base=base)
        with pytest.raises(StaleText, match="was deleted since it was read"):
            await subject.files.delete(path, base=base)

    async def test_of_many_who_delete_one_does(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"old")
        base = await subject.files.read(path)
        told: list[str] = []

        async def delete() -> None:
            try:
                await subject.files.delete(path, base=base)
            except StaleText:
                told.append("stale")
            else:
                told.append("deleted")

        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(delete)
        assert sorted(told) == ["deleted"] + ["stale"] * 4

    async def test_only_a_file_inside_is_deleted(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "sub/a.txt", b"x")
        outside = subject.root.parent / "outside.txt"
        subject.contents.put(outside, b"x")
        base = FileBytes(path=outside, data=b"x", sha256=await self._sha256(subject))
        with pytest.raises(NotAFile):
            await subject.files.delete(subject.root / "sub", base=base)
        with pytest.raises(PathRefused):
            await subject.files.delete(outside, base=base)
        assert subject.contents.get(outside) == b"x"

    async def _sha256(self, subject: Subject) -> str:
        return (await subject.files.read(subject.root / "sub/a.txt")).sha256


class Moving:
    """A file gets another name, and nothing is overwritten."""

    async def test_a_file_gets_its_new_name_and_the_folders_for_it(self, subject: Subject) -> None:
        source = subject.root / "a.txt"
        target = await subject.files.resolve("new/deep/b.txt", "write")
        subject.contents.put(source, b"text\r\n")
        await subject.files.move(source, target)
        assert (subject.contents.get(source), subject.contents.get(target)) == (None, b"text\r\n")

    @pytest.mark.parametrize("taken", ["b.txt", "sub"])
    async def test_what_is_at_the_target_stays(self, subject: Subject, taken: str) -> None:
        subject.contents.put(subject.root / "a.txt", b"a")
        subject.contents.put(subject.root / "b.txt", b"b")
        subject.contents.put(subject.root / "sub/c.txt", b"c")
        with pytest.raises(StaleText, match=f"{taken} exists already: .*a.txt was not moved"):
            await subject.files.move(subject.root / "a.txt", subject.root / taken)
        kept = {name: subject.contents.get(subject.root / name) for name in ("a.txt", "b.txt")}
        assert kept == {"a.txt": b"a", "b.txt": b"b"}

    async def test_onto_itself_is_taken(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "a.txt", b"a")
        with pytest.raises(StaleText):
            await subject.files.move(subject.root / "a.txt", subject.root / "a.txt")
        assert subject.contents.get(subject.root / "a.txt") == b"a"

    async def test_only_a_file_is_moved(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "sub/a.txt", b"x")
        with pytest.raises(FileMissing, match=r"File not found: .*none"):
            await subject.files.move(subject.root / "none", subject.root / "made/b")
        with pytest.raises(FileMissing, match=r"File not found: .*no/ne"):
            await subject.files.move(subject.root / "no/ne", subject.root / "made/b")
        with pytest.raises(NotAFile):
            await subject.files.move(subject.root / "sub", subject.root / "made/b")
        with pytest.raises(FileMissing):
            _ = await subject.files.stat(subject.root / "made")

    async def test_nothing_is_moved_out_or_in(self, subject: Subject) -> None:
        inside, outside = subject.root / "a.txt", subject.root.parent / "outside.txt"
        subject.contents.put(inside, b"a")
        with pytest.raises(PathRefused):
            await subject.files.move(inside, outside)
        subject.contents.put(outside, b"o")
        with pytest.raises(PathRefused):
            await subject.files.move(outside, subject.root / "b.txt")
        assert (subject.contents.get(inside), subject.contents.get(outside)) == (b"a", b"o")

    async def test_of_many_who_want_one_name_one_gets_it(self, subject: Subject) -> None:
        target = subject.root / "b.txt"
        for n in range(5):
            subject.contents.put(subject.root / f"a{n}", f"{n}".encode())
        told: list[str] = []

        async def move(n: int) -> None:
            try:
                await subject.files.move(subject.root / f"a{n}", target)
            except StaleText:
                told.append("stale")
            else:
                told.append("moved")

        async with anyio.create_task_group() as group:
            for n in range(5):
                group.start_soon(move, n)
        assert sorted(told) == ["moved"] + ["stale"] * 4
        left = [subject.contents.get(subject.root / f"a{n}") for n in range(5)]
        assert {*left, subject.contents.get(target)} == {None, b"0", b"1", b"2", b"3", b"4"}


class Watching:
    """What happens to a path is told."""

    async def test_a_burst_in_a_folder_is_one_report(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "dir/a.txt", b"x")
        subject.contents.put(subject.root / "dir/gone.txt", b"x")
        folder = subject.root / "dir"
        async with subject.files.watch(folder) as changes:
            subject.contents.put(folder / "a.txt", b"y")
            subject.contents.put(folder / "new.txt", b"y")
            subject.contents.remove(folder / "gone.txt")
            told = await _next(changes)
        assert {folder / "a.txt", folder / "new.txt", folder / "gone.txt"} <= told

    async def test_a_file_is_told_of_and_its_neighbours_are_not(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"x")
        async with subject.files.watch(path) as changes:
            subject.contents.put(subject.root / "b.txt", b"x")
            subject.contents.put(path, b"y")
            assert await _next(changes) == {path}

    async def test_a_file_that_is_replaced_is_still_watched(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"x")
        async with subject.files.watch(path) as changes:
            for number in range(3):
                base = await subject.files.read(path)
                assert not isinstance(base, FileBytes)
                _ = await subject.files.write(path, f"{number}", base=base)
                assert await _next(changes) == {path}
            subject.contents.remove(path)
            assert await _next(changes) == {path}
            subject.contents.put(path, b"again")
            assert await _next(changes) == {path}

    async def test_what_happens_while_nobody_asks_is_told_later(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"x")
        async with subject.files.watch(subject.root) as changes:
            with anyio.move_on_after(0):
                _ = await changes.next()
            subject.contents.put(path, b"y")
            with anyio.move_on_after(0):
                _ = await changes.next()
            assert path in await _next(changes)

    async def test_reading_changes_nothing(self, subject: Subject) -> None:
        path, mark = subject.root / "dir/a.txt", subject.root / "dir/mark"
        subject.contents.put(path, b"x")
        async with subject.files.watch(path.parent) as changes:
            _ = await subject.files.read(path)
            _ = await subject.files.list(path.parent)
            async with subject.files.open(path) as reader:
                _ = await reader.read(1)
            subject.contents.put(mark, b"")
            assert await _next(changes) == {mark}

    async def test_what_goes_wrong_while_watching_stays_what_it_is(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "a.txt", b"x")
        for use in (subject.files.watch, subject.files.open):
            with pytest.raises(ConnectionError):
                async with use(subject.root / "a.txt"):
                    raise ConnectionError

    async def test_only_what_is_there_and_inside_is_watched(self, subject: Subject) -> None:
        with pytest.raises(FileMissing):
            async with subject.files.watch(subject.root / "none"):
                pass
        with pytest.raises(PathRefused):
            async with subject.files.watch(subject.root.parent):
                pass


async def _next(changes: Changes) -> frozenset[object]:
    with anyio.fail_after(SOON_S):
        return frozenset(await changes.next())
