"""What every adapter of `Files` promises; a test class inherits it and gives a fixture `subject`."""

from pathlib import Path

import anyio
import pytest

from agent_core.kernel.errors import FileMissing, NotAFile, PathRefused, StaleText, WorkspaceError
from agent_core.workspace import FileBytes, FileText, FileWrite, WriteResult
from tests.workspace.files.conformance_folders import Listing, Pieces
from tests.workspace.files.conformance_names import Deleting, Moving, Watching
from tests.workspace.files.subject import Subject


class ReadAndWrite:
    """What becomes of contents."""

    async def test_text_is_read_with_what_a_later_edit_needs(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"one\r\ntwo\n")
        read = await subject.files.read(path)
        assert isinstance(read, FileText)
        assert (read.path, read.text, read.encoding, read.bom) == (
            path,
            "one\r\ntwo\n",
            "utf-8",
            False,
        )
        assert len(read.sha256) == 64

    async def test_bytes_that_are_no_text_come_as_bytes(self, subject: Subject) -> None:
        path = subject.root / "a.bin"
        subject.contents.put(path, b"\x89PNG\0\xff")
        read = await subject.files.read(path)
        assert isinstance(read, FileBytes)
        assert read.data == b"\x89PNG\0\xff"

    async def test_a_new_file_gets_its_folders(self, subject: Subject) -> None:
        path = await subject.files.resolve("deep/er/new.txt", "write")
        written = await subject.files.write(path, "héllo\n", base=None)
        assert (written.path, written.created) == (subject.root / "deep/er/new.txt", True)
        assert subject.contents.get(path) == "héllo\n".encode()

    async def test_a_new_file_does_not_replace_another(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"old")
        with pytest.raises(StaleText):
            await subject.files.write(path, "new", base=None)
        assert subject.contents.get(path) == b"old"

    async def test_a_text_is_replaced_when_it_is_what_was_read(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"old")
        base = await self._read(subject, path)
        written = await subject.files.write(path, "new", base=base)
        again = await self._read(subject, path)
        assert (again.text, again.sha256) == ("new", written.sha256)
        assert written.created is False

    async def test_a_text_that_changed_meanwhile_is_kept(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"old")
        base = await self._read(subject, path)
        subject.contents.put(path, b"the user's")
        with pytest.raises(StaleText):
            await subject.files.write(path, "new", base=base)
        assert (await self._read(subject, path)).text == "the user's"

    @pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16-le", "utf-16-be"])
    async def test_mark_and_encoding_stay(self, subject: Subject, encoding: str) -> None:
        path = subject.root / "a.txt"
        mark = "" if encoding == "utf-8-sig" else "\ufeff"
        subject.contents.put(path, f"{mark}grün\r\n".encode(encoding))
        base = await self._read(subject, path)
        assert (base.text, base.bom) == ("grün\r\n", True)
        _ = await subject.files.write(path, "blau\r\nrot\n", base=base)
        assert subject.contents.get(path) == f"{mark}blau\r\nrot\n".encode(encoding)

    async def test_of_many_writers_with_one_base_one_wins(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"old")
        base = await self._read(subject, path)
        won: list[str] = []

        async def write(text: str) -> None:
            try:
                _ = await subject.files.write(path, text, base=base)
            except StaleText:
                return
            won.append(text)

        async with anyio.create_task_group() as group:
            for n in range(10):
                group.start_soon(write, f"writer {n}\n" * 100)
        assert len(won) == 1
        assert subject.contents.get(path) == won[0].encode()

    async def test_of_several_writes_each_ends_as_it_would_alone(self, subject: Subject) -> None:
        names = ["a.txt", "b.txt", "c.txt"]
        for name in names:
            subject.contents.put(subject.root / name, b"old")
        bases = [await self._read(subject, subject.root / name) for name in names]
        subject.contents.put(subject.root / "b.txt", b"the user's")
        writes = [FileWrite(path=one.path, text=f"new {one.path.name}", base=one) for one in bases]
        writes.append(FileWrite(path=subject.root / "deep/new.txt", text="new", base=None))
        ends: dict[str, type] = {}

        async def hear(one: FileWrite, outcome: WriteResult | WorkspaceError) -> None:
            await anyio.lowlevel.checkpoint()
            ends[one.path.name] = type(outcome)

        await subject.files.write_all(writes, on_result=hear)
        assert ends == {
            "a.txt": WriteResult, "b.txt": StaleText, "c.txt": WriteResult, "new.txt": WriteResult,
        }  # fmt: skip
        found = [subject.contents.get(subject.root / name) for name in names]
        assert found == [b"new a.txt", b"the user's", b"new c.txt"]
        await subject.files.write_all((), on_result=hear)

    async def test_what_is_not_there_is_missing(self, subject: Subject) -> None:
        path = await subject.files.resolve("no/where.txt", "read")
        for ask in (subject.files.read, subject.files.stat):
            with pytest.raises(FileMissing, match=r"File not found: .*where\.txt \(ENOENT\)"):
                await ask(path)

    async def test_a_folder_is_no_file(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "sub/a.txt", b"x")
        for path in (subject.root / "sub", subject.root):
            with pytest.raises(NotAFile, match="Is a directory"):
                await subject.files.read(path)
            with pytest.raises(NotAFile, match="Is a directory"):
                await subject.files.write(path, "x", base=None)
            assert (await subject.files.stat(path)).kind == "folder"

    async def test_a_file_is_no_folder(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "a.txt", b"x")
        path = await subject.files.resolve("a.txt/b", "write")
        with pytest.raises(NotAFile):
            await subject.files.write(path, "x", base=None)

    async def test_stat_tells_kind_and_size(self, subject: Subject) -> None:
        path = subject.root / "a.txt"
        subject.contents.put(path, b"12345")
        stat = await subject.files.stat(path)
        assert (stat.path, stat.kind, stat.size) == (path, "file", 5)

    async def _read(self, subject: Subject, path: Path) -> FileText:
        read = await subject.files.read(path)
        assert isinstance(read, FileText)
        return read


class Naming:
    """What a model's words mean."""

    @pytest.mark.parametrize(
        "words",
        [
            "sub/a b.txt",
            "./sub/../sub/a b.txt",
            "@sub/a b.txt",
            "sub/a\u00a0b.txt",
            " sub/a b.txt ",
            "{root}/sub/a b.txt",
            "file://{root}/sub/a%20b.txt",
            "@{root}/sub/a b.txt",
        ],
    )
    async def test_a_file_is_found_however_it_is_named(self, subject: Subject, words: str) -> None:
        path = subject.root / "sub/a b.txt"
        subject.contents.put(path, b"x")
        words = words.replace("{root}", str(subject.root))
        assert await subject.files.resolve(words, "read") == path
        assert await subject.files.resolve(words, "write") == path

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("at 3.42\u202fPM.png", "at 3.42 PM.png"),
            ("cafe\u0301.txt", "café.txt"),
            ("d\u2019e\u0301cran.png", "d'écran.png"),
            ("l\u2019eau.txt", "l'eau.txt"),
            ("café.txt", "cafe\u0301.txt"),
        ],
    )
    async def test_a_file_to_read_is_found_under_the_spelling_of_macos(
        self, subject: Subject, name: str, words: str
    ) -> None:
        subject.contents.put(subject.root / name, b"x")
        assert await subject.files.resolve(words, "read") == subject.root / name

    async def test_a_name_that_is_really_there_goes_first(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "@types/a.d.ts", b"x")
        subject.contents.put(subject.root / "types/a.d.ts", b"y")
        assert (
            await subject.files.resolve("@types/a.d.ts", "read") == subject.root / "@types/a.d.ts"
        )

    async def test_a_new_name_loses_what_was_only_a_mention(self, subject: Subject) -> None:
        assert await subject.files.resolve("@new.txt", "write") == subject.root / "new.txt"

    @pytest.mark.parametrize("access", ["read", "write"])
    @pytest.mark.parametrize(
        "words",
        [
            "../outside.txt",
            "sub/../../outside.txt",
            "/etc/passwd",
            "~/x.txt",
            "~",
            "file:///etc/passwd",
            "@/etc/passwd",
            "@../outside.txt",
            "@~/x.txt",
            "@file:///etc/passwd",
            "\u00a0/etc/passwd",
            "file://elsewhere/etc/passwd",
            "{root}-evil/a.txt",
            "",
            "   ",
            "@",
            "a\0b",
            "\ud800\0",
        ],
    )
    async def test_what_leads_outside_is_refused(self, subject, words: str, access) -> None:
        words = words.replace("{root}", str(subject.root))
        with pytest.raises(PathRefused):
            await subject.files.resolve(words, access)

    async def test_the_refusal_says_what_is_allowed(self, subject: Subject) -> None:
        with pytest.raises(PathRefused) as refused:
            await subject.files.resolve("/etc/passwd", "read")
        assert str(refused.value) == (
            f"'/etc/passwd' leads outside the workspace: only paths inside {subject.root} are allowed. "
            "Use a path inside, or tell the user what is needed from there."
        )

    @pytest.mark.parametrize(
        "words",
        [
            "src/a\r.py",
            "src/\x1b[2Jx.py",
            "src/a\u202egpj.py",
            "src/zero\u200bwidth.py",
            "\ufeffbom.py",
            "$HOME/.ssh/id",
            "${HOME}/x",
            "~root/.bashrc",
            "%USERPROFILE%\\x",
            "vscode-remote://host/etc/passwd",
            "data:text/plain,x",
        ],
    )
    async def test_a_disguised_or_mistaken_name_is_not_made(self, subject, words: str) -> None:
        with pytest.raises(PathRefused):
            await subject.files.resolve(words, "write")

    async def test_an_odd_folder_that_is_there_may_be_written_to(self, subject: Subject) -> None:
        subject.contents.put(subject.root / "soft\u00adhyphen/a.txt", b"x")
        path = await subject.files.resolve("soft\u00adhyphen/new.txt", "write")
        assert path == subject.root / "soft\u00adhyphen/new.txt"

    async def test_what_was_refused_is_refused_without_resolving_too(self, subject) -> None:
        outside = subject.root.parent / "outside.txt"
        for ask in (subject.files.read, subject.files.stat):
            with pytest.raises(PathRefused):
                await ask(outside)
        with pytest.raises(PathRefused):
            await subject.files.write(outside, "x", base=None)
        assert subject.contents.get(outside) is None


class FilesConformance(ReadAndWrite, Naming, Listing, Pieces, Deleting, Moving, Watching):
    """All promises."""
