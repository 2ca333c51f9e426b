"""Patches: git takes them, whatever the files hold and are called."""

import subprocess
from pathlib import Path
from random import Random

import pytest

from agent_core.changes.patch import FilePatch, UnpatchableFile, git_patch, quoted

Tree = dict[str, bytes]


def apply(root: Path, patch: str, *words: str) -> None:
    said = patch.encode("utf-8", "surrogateescape")
    subprocess.run(
        ["git", "apply", "--whitespace=nowarn", *words, "-"],
        cwd=root, input=said, check=True, timeout=20,
    )  # fmt: skip


def lay(root: Path, tree: Tree) -> None:
    for name, data in tree.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def seen(root: Path) -> Tree:
    return {
        str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


def modified(old: bytes, new: bytes, *, name: str = "a.py", is_text: bool = True) -> FilePatch:
    return FilePatch(name=name, old_name=name, op="modify", old=old, new=new, is_text=is_text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param(b"a\nb", b"a\nc", id="no end on either side"),
        pytest.param(b"a\nb", b"a\nb\n", id="an end is added"),
        pytest.param(b"a\nb\n", b"a\nb", id="an end is taken away"),
        pytest.param(b"a\x0cb\nc\n", b"a\x0cb\nd\n", id="a form feed"),
        pytest.param("a\u2028b\nc\n".encode(), "a\u2028b\nd".encode(), id="a line separator"),
        pytest.param(b"a\r\nb\r\n", b"a\r\nc\r\n", id="CRLF"),
        pytest.param(b"a\r\nb\n", b"a\nb\r\n", id="mixed ends"),
        pytest.param(b"a\rb\n", b"a\rc\n", id="CR alone"),
        pytest.param(b"", b"x", id="from nothing"),
        pytest.param(b"x", b"", id="to nothing"),
        pytest.param("ä\n\n\n".encode(), "ö\n\n".encode(), id="empty lines"),
        pytest.param("ä\n".encode("latin-1"), "ö\n".encode("latin-1"), id="not UTF-8"),
        pytest.param(bytes(range(256)) * 3, b"\0\1" * 500, id="binary"),
        pytest.param(b"\0", b"", id="binary to nothing"),
        pytest.param(b"".join(b"%d\n" % n for n in range(40)), b"".join(b"%d\n" % n for n in range(0, 40, 9)), id="far apart"),
    ],
)  # fmt: skip
def test_git_makes_the_new_file_of_the_old_and_back(tmp_path: Path, old: bytes, new: bytes) -> None:
    lay(tmp_path, {"a.py": old})
    patch = git_patch([modified(old, new)])
    apply(tmp_path, patch)
    assert seen(tmp_path) == {"a.py": new}
    apply(tmp_path, patch, "-R")
    assert seen(tmp_path) == {"a.py": old}


@pytest.mark.parametrize(
    "name",
    ["a b.py", "tab\there", 'quo"te', "new\nline", "ünï.py", "deep/er/x", "back\\slash", "--x", "é\udcff"],
)  # fmt: skip
@pytest.mark.parametrize("op", ["add", "modify", "delete", "move"])
def test_any_name_is_a_name(tmp_path: Path, name: str, op: str) -> None:
    one, two = b"1\n", b"2\n"
    before: Tree = {"old" if op == "move" else name: one} if op != "add" else {}
    after: Tree = {} if op == "delete" else {name: two}
    lay(tmp_path, before)
    old_name = "old" if op == "move" else name
    file = FilePatch(
        name=name, old_name=old_name, op=op,  # pyright: ignore[reportArgumentType] - one of them
        old=next(iter(before.values()), None), new=next(iter(after.values()), None),
    )  # fmt: skip
    apply(tmp_path, git_patch([file]))
    assert seen(tmp_path) == after


def test_several_files_are_one_patch_and_what_cannot_be_shown_is_said(tmp_path: Path) -> None:
    lay(tmp_path, {"a": b"1\n", "gone": b"\0\1", "old": b"same\n"})
    patch = git_patch(
        [
            modified(b"1\n", b"2\n", name="a"),
            UnpatchableFile(name="big\nfile", why="too large"),
            FilePatch(name="empty", old_name="empty", op="add", old=None, new=b""),
            FilePatch(name="gone", old_name="gone", op="delete", old=b"\0\1", is_text=False),
            FilePatch(name="new", old_name="old", op="move", old=b"same\n", new=b"same\n"),
            modified(b"same", b"same", name="unchanged"),
        ]
    )
    assert patch.startswith('Not in this patch: "big\\nfile": too large\n')
    assert "unchanged" not in patch
    apply(tmp_path, patch)
    assert seen(tmp_path) == {"a": b"2\n", "empty": b"", "new": b"same\n"}


def test_names_are_quoted_as_git_does() -> None:
    assert quoted("plain name.py") == "plain name.py"
    assert quoted('a"b\n\x01ä\udcff') == '"a\\"b\\n\\001\\303\\244\\377"'


def test_random_texts_survive(tmp_path: Path) -> None:
    random = Random(8)  # noqa: S311 - the same each time
    for _ in range(40):
        old = bytes(random.choices(b"ab\n\n\r", k=random.randrange(120)))
        new = bytes(random.choices(b"ab\n\n\r", k=random.randrange(120)))
        lay(tmp_path, {"a.py": old})
        if old != new:
            apply(tmp_path, git_patch([modified(old, new)]))
        assert seen(tmp_path) == {"a.py": new}
