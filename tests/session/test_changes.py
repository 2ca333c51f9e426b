"""What a run changed: counted once, as a patch, and every write told whatever became of it."""

import subprocess
from pathlib import Path
from time import process_time
from typing import Any, Literal

import pytest
from typing_extensions import override

from agent_core.events import (
    ChangeCounts,
    ChangesUpdated,
    DocumentChange,
    EditApplied,
    EditConflict,
    EditRejected,
    Event,
)
from agent_core.kernel import RunId, ToolCallId
from agent_core.kernel.errors import (
    AccessRefused,
    EditRefused,
    EditUnverified,
    FileMissing,
    NotAFile,
    NotText,
    PathRefused,
    StaleText,
    WorkspaceError,
)
from agent_core.session.changes import EXACT_LINES, FileChange, Ledger, RecordedFiles
from agent_core.workspace import FileText, Written
from agent_core.workspace.adapters.memory import MemoryFiles
from agent_core.workspace.text import sha256_of

ROOT = Path("/w")
A = ROOT / "a.py"
RUN, CALL = RunId("r"), ToolCallId("c")


def sha(text: str) -> str:
    return sha256_of(text.encode())


def base(text: str, path: Path = A) -> FileText:
    return FileText(path=path, text=text, source="disk", sha256=sha(text))


def written(text: str, *, path: Path = A, created: bool = False) -> Written:
    return Written(path=path, sha256=sha(text), source="disk", saved=True, created=created)


def changed(before: str, after: str, *, path: Path = A) -> Ledger:
    ledger = Ledger()
    ledger.add(written(after, path=path), after, base(before, path))
    return ledger


def lines(count: int, prefix: str = "") -> str:
    return "".join(f"{prefix}{number}\n" for number in range(count))


# The ledger.


@pytest.mark.parametrize(
    ("before", "after", "additions", "deletions"),
    [
        ("a\nb\nc\n", "a\nB\nc\n", 1, 1),
        ("a\nb\n", "a\nb\nc\nd\n", 2, 0),
        ("a\nb\nc\n", "c\n", 0, 2),
        ("", "a\nb\n", 2, 0),
        ("a\n", "", 0, 1),
        ("a\nb\n", "b\na\n", 1, 1),
        ("a", "a\n", 1, 1),
        ("a\x0cb\n", "a\x0cc\n", 1, 1),
        ("a\r\nb\r\n", "a\r\nc\r\n", 1, 1),
    ],
    ids=[
        "replaced", "added", "deleted", "filled", "emptied", "moved",
        "newline-at-end", "form-feed", "crlf",
    ],
)  # fmt: skip
def test_lines_are_counted_as_git_counts_them(
    tmp_path: Path, before: str, after: str, additions: int, deletions: int
) -> None:
    assert changed(before, after).counts() == ChangeCounts(
        files=1, additions=additions, deletions=deletions, unreviewed=1
    )
    (tmp_path / "before").write_bytes(before.encode())
    (tmp_path / "after").write_bytes(after.encode())
    counted = subprocess.run(
        ["git", "diff", "--no-index", "--numstat", "before", "after"],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=20,
    ).stdout.split()[:2]  # fmt: skip
    assert counted == [str(additions), str(deletions)]


def test_a_file_counts_once_from_before_the_first_edit_to_after_the_last() -> None:
    ledger = changed("a\n", "b\n")
    ledger.add(written("c\nd\n"), "c\nd\n", base("b\n"))
    assert ledger.changes() == (
        FileChange(
            path=A,
            op="modify",
            before="a\n",
            after="c\nd\n",
            sha256_before=sha("a\n"),
            sha256_after=sha("c\nd\n"),
            saved=True,
        ),
    )
    assert ledger.counts() == ChangeCounts(files=1, additions=2, deletions=1, unreviewed=1)


def test_an_edit_that_was_taken_back_is_no_change() -> None:
    ledger = changed("a\n", "b\n")
    ledger.add(written("a\n"), "a\n", base("b\n"))
    assert (ledger.changes(), ledger.counts()) == ((), ChangeCounts())


def test_a_new_file_is_a_change_even_when_it_is_empty() -> None:
    ledger = Ledger()
    ledger.add(written("", created=True), "", None)
    assert [(one.op, one.before, one.sha256_before) for one in ledger.changes()] == [
        ("add", "", None)
    ]
    ledger.add(written("x\n"), "x\n", base(""))
    assert [(one.op, one.after) for one in ledger.changes()] == [("add", "x\n")]


def test_files_stand_in_the_order_of_their_first_edit() -> None:
    ledger = changed("a", "b", path=ROOT / "z")
    ledger.add(written("b", path=A), "b", base("a"))
    ledger.add(written("c", path=ROOT / "z"), "c", base("b", ROOT / "z"))
    assert [one.path.name for one in ledger.changes()] == ["z", "a.py"]
    assert ledger.counts().files == 2


def test_many_scattered_edits_of_a_long_file_are_counted_at_once() -> None:
    old = [f"{number}\n" for number in range(100_000)]
    new = ["new\n" if number % 50 == 0 else line for number, line in enumerate(old)]
    begun = process_time()
    counts = changed("".join(old), "".join(new)).counts()
    assert (counts.additions, counts.deletions) == (2_000, 2_000)
    assert process_time() - begun < 5


def test_above_the_limit_a_moved_line_is_not_counted() -> None:
    block = lines(EXACT_LINES)
    assert changed(f"{block}x\n", f"x\n{block}").counts().additions == 0


# The patch.


def patch(before: str, after: str, *, op: Literal["add", "modify"] = "modify") -> str:
    return FileChange(
        path=A, op=op, before=before, after=after,
        sha256_before=None, sha256_after="", saved=True,
    ).patch("a.py")  # fmt: skip


def test_a_patch_has_the_names_and_the_lines() -> None:
    assert patch("a\nb\n", "a\nc\n") == "--- a/a.py\n+++ b/a.py\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"
    assert patch("", "x\n", op="add") == "--- /dev/null\n+++ b/a.py\n@@ -0,0 +1 @@\n+x\n"
    assert patch("same\n", "same\n") == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb", "a\nc"),
        ("a\nb", "a\nb\n"),
        ("a\x0cb\nc\n", "a\x0cb\nd\n"),
        ("a\u2028b\nc\n", "a\u2028b\nd"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("a\rb\n", "a\rc\n"),
        ("", "x"),
        ("x", ""),
        ("ä\n\n\n", "ö\n\n"),
    ],
)
def test_git_takes_a_patch_and_makes_the_new_text_of_the_old(
    tmp_path: Path, before: str, after: str
) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(before.encode())
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path, input=patch(before, after).encode(), check=True, timeout=20,
    )  # fmt: skip
    assert file.read_bytes() == after.encode()


# Writes, told.


class Refusing(MemoryFiles):
    """Files whose writes fail as the test says."""

    def __init__(self, error: WorkspaceError) -> None:
        super().__init__((ROOT,), Path("/home/user"), files={A: b"old\n"})
        self._error = error

    @override
    async def write(self, path: Path, text: str, *, base: FileText | None) -> Written:
        raise self._error


def recorded(files: MemoryFiles, ledger: Ledger) -> tuple[RecordedFiles, list[Event]]:
    told: list[Event] = []
    ids = iter(("e1", "e2"))
    made = RecordedFiles(
        files, ledger, run=RUN, call=CALL, emit=told.append, new_id=lambda: next(ids)
    )
    return made, told


async def test_a_write_is_told_and_counted_before_the_tool_goes_on() -> None:
    files, told = recorded(MemoryFiles((ROOT,), Path("/home/user"), files={A: b"old\n"}), Ledger())
    path = await files.resolve("a.py", "write")
    read = await files.read(path)
    assert isinstance(read, FileText)
    assert (await files.stat(path)).size == 4
    assert told == []
    await files.write(path, "new\n", base=read)
    change = DocumentChange(path=A, status="applied", saved=True, sha256=sha("new\n"))
    assert told == [
        EditApplied(run=RUN, edit="e1", call=CALL, documents=(change,)),
        ChangesUpdated(run=RUN, files=1, additions=1, deletions=1, unreviewed=1),
    ]


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        (StaleText("stale"), EditConflict, "stale"),
        (EditUnverified("who knows"), EditConflict, "unverified"),
        (EditRefused("no"), EditRejected, "refused"),
        (PathRefused("outside"), EditRejected, "refused"),
        (AccessRefused("read-only"), EditRejected, "failed"),
        (NotAFile("a folder"), EditRejected, "failed"),
        (FileMissing("gone"), EditRejected, "failed"),
        (NotText("binary"), EditRejected, "failed"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
async def test_a_write_that_did_not_land_is_told_raised_and_not_counted(
    error: WorkspaceError, kind: type[EditConflict | EditRejected], status: Any
) -> None:
    ledger = Ledger()
    files, told = recorded(Refusing(error), ledger)
    with pytest.raises(type(error)) as raised:
        await files.write(A, "new\n", base=base("old\n"))
    assert raised.value is error
    change = DocumentChange(path=A, status=status, why=str(error))
    assert told == [kind(run=RUN, edit="e1", call=CALL, documents=(change,))]
    assert ledger.counts() == ChangeCounts()
