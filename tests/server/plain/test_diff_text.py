"""The diff holds what waits for a word and nothing else, and says in words what no diff can show."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.changes.hunks import FileReview, HunkTracker, Texts, accepted
from agent_core.changes.values import Change, FileVersion, Op
from agent_core.kernel import RunId, ToolCallId
from agent_core.workspace.files.text import sha256_of
from tiller_server.lsp.changes import diff_text as module
from tiller_server.lsp.changes.diff_text import HEAD, NOTHING, diff_text

ROOT = Path("/w")
OLD = "".join(f"{number}\n" for number in range(1, 21))


def version(text: str | None) -> FileVersion | None:
    if text is None:
        return None
    data = text.encode()
    return FileVersion(sha256=sha256_of(data), content=sha256_of(data), size=len(data))


def file(
    before: str | None, after: str | None, *, name: str = "a.txt", source: Path | None = None
) -> FileReview:
    """Give a file that the agent changed once."""
    op: Op = "add" if before is None else "delete" if after is None else "modify"
    one = Change(
        id="e", run=RunId("r"), call=ToolCallId("c"), by="tool", op="move" if source else op,
        path=ROOT / name, source=source, before=version(before), after=version(after), at_ms=0,
    )  # fmt: skip
    made = HunkTracker.of(one)
    made.follow(one, Texts(before=before or "", after=after or ""), index=0)
    return made.now


def shown(*files: FileReview) -> str:
    text = diff_text(files, root=ROOT)
    assert text.startswith(HEAD)
    return text.removeprefix(HEAD)


def test_nothing_waits() -> None:
    assert shown() == NOTHING


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("a\nb\n", "a\nB\n", "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"),
        (None, "a\n", "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,1 @@\n+a\n"),
        ("a\n", None, "--- a/a.txt\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n"),
        (None, "", "# a.txt: new\n"),
        ("", None, "# a.txt: deleted\n"),
        ("a", "b", "--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"),
    ],
    ids=["changed", "new", "deleted", "new and empty", "deleted and empty", "no line end"],
)  # fmt: skip
def test_each_kind_of_change_is_shown(before: str | None, after: str | None, expected: str) -> None:
    assert shown(file(before, after)) == expected


def test_what_was_decided_is_left_out() -> None:
    now = file(OLD, OLD.replace("2\n", "two\n", 1).replace("19\n", "nineteen\n"))
    first, second = now.hunks
    half = accepted(now, [first.id], whole=False)
    text = shown(half)
    assert "+nineteen" in text
    assert "+two" not in text
    assert shown(accepted(half, [second.id], whole=True)) == NOTHING


def test_what_is_no_text_is_named() -> None:
    binary = replace(file(None, "x"), text=None, hunks=(), whole="pending")
    assert shown(binary) == "# a.txt: new\n"
    assert shown(replace(binary, first=version("x"), origin=ROOT / "a.txt")) == (
        "# a.txt: changed, and no text\n"
    )


def test_names_hide_nothing_and_may_lie_elsewhere() -> None:
    assert "+++ b/a\\n+++ evil" not in shown(file("a\n", "b\n", name="a\n+++ evil"))
    assert len(shown(file("a\n", "b\n", name="a\n+++ evil")).splitlines()) == 5
    outside = replace(file("a\n", "b\n"), path=Path("/other/b.txt"))
    assert "/other/b.txt" in shown(outside)


def test_more_than_can_be_read_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_CHARS", 200)
    files = [file("a\n", "b\n", name=f"{number}.txt") for number in range(9)]
    assert shown(*files).endswith("are left out, for the document would be too long.\n")
