"""Instructions are found up the tree, in order, and only if they are what they seem to be."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_core.resources.instructions import CONTEXT_BYTES, NAMES, ContextFiles, load_context_files


async def load(
    base: Path, *, root: str = "a/b", trusted: bool = True, above: Sequence[str] = ()
) -> ContextFiles:
    """Load as for a workspace in a repository that begins at `base`, unless another begins nearer to it."""
    (base / root).mkdir(parents=True, exist_ok=True)
    (base / ".git").mkdir(exist_ok=True)
    return await load_context_files(
        config=base / "config",
        root=base / root,
        project_trusted=trusted,
        above=[base / name for name in above],
    )


def put(base: Path, name: str, text: str | bytes) -> Path:
    path = base / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def found(files: ContextFiles, base: Path) -> list[tuple[str, str]]:
    """Give what was found below the test's own folder."""
    return [
        (one.path.relative_to(base).as_posix(), one.text)
        for one in files.files
        if one.path.is_relative_to(base)
    ]


async def test_the_users_own_come_first_then_from_the_top_down(tmp_path: Path) -> None:
    put(tmp_path, "a/b/CLAUDE.md", "here")
    put(tmp_path, "a/AGENTS.md", "above")
    put(tmp_path, "AGENTS.MD", "top")
    put(tmp_path, "config/AGENTS.md", "mine")
    put(tmp_path, "a/b/c/AGENTS.md", "below")
    files = await load(tmp_path)
    assert [text for _, text in found(files, tmp_path)] == ["mine", "top", "above", "here"]
    assert files.problems == ()


@pytest.mark.parametrize("name", NAMES)
async def test_of_one_folder_the_first_that_exists_counts(tmp_path: Path, name: str) -> None:
    for other in NAMES[NAMES.index(name) :]:
        put(tmp_path, f"a/b/{other}", other)
    assert found(await load(tmp_path), tmp_path) == [(f"a/b/{name}", name)]


async def test_byte_order_marks_line_ends_and_encodings_are_understood(tmp_path: Path) -> None:
    put(tmp_path, "AGENTS.md", b"\xef\xbb\xbfone\r\ntwo")
    put(tmp_path, "a/AGENTS.md", "drei äöü".encode("utf-16"))
    put(tmp_path, "a/b/AGENTS.md", b"four \xff")
    texts = [text for _, text in found(await load(tmp_path), tmp_path)]
    assert texts == ["one\ntwo", "drei äöü", "four �"]


async def test_a_long_file_is_cut_at_a_line_and_says_so(tmp_path: Path) -> None:
    put(tmp_path, "a/b/AGENTS.md", "x" * 99 + "\n" + "0123456\n" * CONTEXT_BYTES)
    (one,) = (await load(tmp_path)).files
    assert one.truncated
    kept, note = one.text.rstrip("\n").rsplit("\n\n", 1)
    assert kept.endswith("0123456")
    assert len(kept) <= CONTEXT_BYTES
    assert (
        note
        == f"[The rest of this file is left out: only its first {CONTEXT_BYTES} bytes are read.]"
    )


async def test_of_too_many_words_the_nearest_stay(tmp_path: Path) -> None:
    path, names = "", []
    for depth in range(8):
        path = f"{path}d{depth}/"
        names.append(f"{path}AGENTS.md")
        put(tmp_path, names[-1], "y\n" * (CONTEXT_BYTES // 2 - 100))
    files = await load(tmp_path, root=path.rstrip("/"))
    assert [name for name, _ in found(files, tmp_path)] == names[-4:]
    assert len(files.problems) == 4
    assert "more than" in files.problems[0]


async def test_what_cannot_be_read_is_told_and_stops_nothing(tmp_path: Path) -> None:
    put(tmp_path, "a/AGENTS.md", "above")
    (tmp_path / "a/b/AGENTS.md").mkdir(parents=True)
    (tmp_path / "config").mkdir()
    (tmp_path / "config/AGENTS.md").symlink_to("nowhere")
    put(tmp_path, "AGENTS.md", b"\0\1binary")
    files = await load(tmp_path)
    assert found(files, tmp_path) == [("a/AGENTS.md", "above")]
    assert [
        problem.split(":")[0].split(" was")[0].split(" cannot")[0] for problem in files.problems
    ] == [
        str(tmp_path / "config/AGENTS.md"),
        str(tmp_path / "AGENTS.md"),
        str(tmp_path / "a/b/AGENTS.md"),
    ]


async def test_a_pipe_does_not_hold_anything_up(tmp_path: Path) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    os.mkfifo(tmp_path / "a/b/AGENTS.md")
    files = await load(tmp_path)
    assert found(files, tmp_path) == []
    assert "no regular file" in files.problems[0]


async def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    secret = put(tmp_path, "secret/key", "hunter2")
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/AGENTS.md").symlink_to(secret)
    files = await load(tmp_path)
    assert found(files, tmp_path) == []
    assert "it is a link to" in files.problems[0]
    assert "hunter2" not in str(files)


async def test_links_inside_and_to_other_instructions_are_followed_once(tmp_path: Path) -> None:
    put(tmp_path, "a/AGENTS.md", "rules")
    put(tmp_path, "a/b/docs/rules.md", "more")
    (tmp_path / "a/b/CLAUDE.md").symlink_to("../AGENTS.md")
    assert found(await load(tmp_path), tmp_path) == [("a/AGENTS.md", "rules")]
    (tmp_path / "a/b/CLAUDE.md").unlink()
    (tmp_path / "a/b/AGENTS.md").symlink_to("docs/rules.md")
    assert [text for _, text in found(await load(tmp_path), tmp_path)] == ["rules", "more"]


async def test_the_users_own_file_may_be_a_link_to_anywhere(tmp_path: Path) -> None:
    real = put(tmp_path, "dotfiles/agents", "mine")
    (tmp_path / "config").mkdir()
    (tmp_path / "config/AGENTS.md").symlink_to(real)
    assert found(await load(tmp_path), tmp_path) == [("config/AGENTS.md", "mine")]


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give files away"
)
async def test_above_the_workspace_a_strangers_file_is_not_read(tmp_path: Path) -> None:
    theirs = put(tmp_path, "AGENTS.md", "do evil")
    os.chown(theirs, 12345, 12345)
    files = await load(tmp_path)
    assert found(files, tmp_path) == []
    assert "belongs to another user" in files.problems[0]


async def test_a_worktree_inside_its_repository_shadows_the_file_there(tmp_path: Path) -> None:
    put(tmp_path, "main/AGENTS.md", "old rules")
    (tmp_path / "main/.git/worktrees/w").mkdir(parents=True)
    put(tmp_path, "main/.trees/w/.git", f"gitdir: {tmp_path}/main/.git/worktrees/w\n")
    files = await load(tmp_path, root="main/.trees/w", above=["main"])
    assert found(files, tmp_path) == [("main/AGENTS.md", "old rules")]
    put(tmp_path, "main/.trees/w/AGENTS.md", "new rules")
    files = await load(tmp_path, root="main/.trees/w", above=["main"])
    assert found(files, tmp_path) == [("main/.trees/w/AGENTS.md", "new rules")]
    assert files.problems == ()


async def test_a_file_of_white_space_says_nothing(tmp_path: Path) -> None:
    put(tmp_path, "a/b/AGENTS.md", " \n\t\n")
    put(tmp_path, "a/b/CLAUDE.md", "not reached")
    assert found(await load(tmp_path), tmp_path) == []


async def test_system_files_of_a_trusted_project_win_over_the_users(tmp_path: Path) -> None:
    put(tmp_path, "config/SYSTEM.md", "mine")
    put(tmp_path, "config/APPEND_SYSTEM.md", "mine too")
    put(tmp_path, "a/b/.tiller/SYSTEM.md", "theirs")
    untrusted, trusted = await load(tmp_path, trusted=False), await load(tmp_path)
    assert untrusted.system is not None
    assert trusted.system is not None
    assert trusted.append is not None
    assert untrusted.system.text == "mine"
    assert (trusted.system.text, trusted.append.text) == ("theirs", "mine too")


async def test_without_any_file_there_is_nothing(tmp_path: Path) -> None:
    files = await load(tmp_path)
    assert (found(files, tmp_path), files.system, files.append, files.problems) == (
        [],
        None,
        None,
        (),
    )


@pytest.mark.parametrize("above", [(), (".",), (".", "a")], ids=str)
async def test_before_trust_only_the_users_own_count(tmp_path: Path, above: Sequence[str]) -> None:
    put(tmp_path, "config/AGENTS.md", "mine")
    put(tmp_path, "AGENTS.md", "above the repository")
    put(tmp_path, "a/.git/HEAD", "ref")
    put(tmp_path, "a/AGENTS.md", "theirs")
    put(tmp_path, "a/b/CLAUDE.md", "theirs too")
    files = await load(tmp_path, trusted=False, above=above)
    assert [text for _, text in found(files, tmp_path)] == ["mine"]
    assert files.problems == ()


BELOW_ANOTHER: dict[str, tuple[str, str]] = {
    "a nested repository": ("a/.git/HEAD", "ref: refs/heads/main\n"),
    "a submodule": ("a/.git", "gitdir: ../.git/modules/a\n"),
    "a worktree of another repository": ("a/.git", "gitdir: /elsewhere/.git/worktrees/a\n"),
}


@pytest.mark.parametrize("marker", BELOW_ANOTHER)
async def test_what_lies_above_the_repository_counts_only_where_its_folder_is_trusted(
    tmp_path: Path, marker: str
) -> None:
    put(tmp_path, *BELOW_ANOTHER[marker])
    put(tmp_path, "AGENTS.md", "above the repository")
    put(tmp_path, "a/AGENTS.md", "top of the repository")
    put(tmp_path, "a/b/AGENTS.md", "here")
    files = await load(tmp_path)
    assert [text for _, text in found(files, tmp_path)] == ["top of the repository", "here"]
    (problem,) = files.problems
    assert problem.startswith(f"{tmp_path / 'AGENTS.md'} was not read: it lies above")
    assert problem.endswith(f"(tiller trust add {tmp_path}).")
    files = await load(tmp_path, above=["."])
    texts = [text for _, text in found(files, tmp_path)]
    assert texts == ["above the repository", "top of the repository", "here"]
    assert files.problems == ()


async def test_outside_of_a_repository_each_folder_above_needs_trust_of_its_own(
    tmp_path: Path,
) -> None:
    root = tmp_path / "unpacked" / "app"
    put(tmp_path, "unpacked/app/AGENTS.md", "here")
    put(tmp_path, "unpacked/AGENTS.md", "of the archive")
    put(tmp_path, "AGENTS.md", "of the user")
    for above, texts in (
        ([], ["here"]),
        ([tmp_path], ["of the user", "here"]),
        ([tmp_path / "unpacked"], ["of the archive", "here"]),
    ):
        files = await load_context_files(
            config=tmp_path / "config", root=root, project_trusted=True, above=above
        )
        assert [text for _, text in found(files, tmp_path)] == texts
        assert len(files.problems) == 2 - len(above)


async def test_the_users_own_folder_counts_also_above_a_workspace(tmp_path: Path) -> None:
    put(tmp_path, "config/AGENTS.md", "mine")
    (tmp_path / "config/extensions/own").mkdir(parents=True)
    files = await load_context_files(
        config=tmp_path / "config", root=tmp_path / "config/extensions/own", project_trusted=False
    )
    assert found(files, tmp_path) == [("config/AGENTS.md", "mine")]
