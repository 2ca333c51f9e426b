"""What is mounted over a workspace for one command."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import agent_core
from agent_core.workspace.sandbox.guards.mount_plan import (
    MOST_MOUNTS,
    GitAccess,
    MountKind,
    MountPlan,
    git_pointers,
    plan_holds,
)
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry, TreeIndex


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def git(folder: Path, *words: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    who = ("-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always")
    env = {"PATH": os.defpath, "HOME": "/nonexistent"}
    subprocess.run(["git", *who, *words], cwd=folder, env=env, check=True, capture_output=True)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "root"
    root.mkdir()
    return root


def indexed(*roots: Path) -> Mapping[str, GuardedEntry]:
    index = TreeIndex([str(root) for root in roots])
    found = dict(index.refresh())
    index.close()
    return found


def planned(
    root: Path, access: GitAccess = "closed", *, visible: tuple[Path, ...] = ()
) -> MountPlan:
    return plan_holds(indexed(root), roots=(root,), git=access, visible=visible)


def places(root: Path, holds: MountPlan) -> dict[str, MountKind]:
    return {os.path.relpath(path, root): kind for path, kind in holds.mounts.items()}


def test_protected_files_are_read_only_and_the_folders_around_them_held(root: Path) -> None:
    put(root / "AGENTS.md")
    put(root / "a/b/.vscode/tasks.json")
    put(root / "c/code.py")
    holds = planned(root)
    assert places(root, holds) == {
        "AGENTS.md": "read-only",
        "a": "writable",
        "a/b": "writable",
        "a/b/.vscode": "read-only",
    }
    assert holds.read_only == (root / "AGENTS.md", root / "a/b/.vscode")
    assert (holds.hidden, holds.data, holds.problem) == ((), (), None)
    assert list(holds.mounts) == sorted(holds.mounts)


def test_secrets_show_as_empty_but_for_those_that_may_be_read(root: Path) -> None:
    put(root / "a/.env")
    put(root / ".ssh/id")
    (root / ".aws").mkdir()
    os.mkfifo(root / "x.pem")
    holds = planned(root)
    assert places(root, holds) == {
        "a": "writable",
        "a/.env": "empty file",
        ".ssh": "empty folder",
        ".aws": "empty folder",
    }
    assert set(holds.hidden) == {root / "a/.env", root / ".ssh", root / ".aws"}
    shown = places(root, planned(root, visible=(root / "a/.env", root / ".ssh/id")))
    assert (shown["a/.env"], shown[".ssh"]) == ("read-only", "read-only")


def test_what_links_lead_to_is_held(root: Path) -> None:
    words, keys = put(root / "docs/words.md"), put(root.parent / "keys")
    put(root.parent / "outside.md")
    (root / "CLAUDE.md").symlink_to("docs/words.md")
    (root / "AGENTS.md").symlink_to("../outside.md")
    (root / ".envrc").symlink_to("gone")
    (root / ".env").symlink_to("../keys")
    (root / "x.env").symlink_to("gone")
    (root / "plain").symlink_to("docs")
    holds = planned(root)
    assert dict(holds.mounts) == {
        words: "read-only",
        words.parent: "writable",
        keys: "empty file",
    }


def test_a_link_with_the_name_of_a_secret_hides_no_folder(root: Path) -> None:
    put(root / "keys/one")
    (root / ".env").symlink_to("keys")
    (root / ".ssh").symlink_to("../root/keys")
    assert dict(planned(root).mounts) == {}


def test_where_protected_links_lead_to_nothing_in_the_roots_is_kept_vacant(root: Path) -> None:
    put(root / "there.md")
    (root / "AGENTS.md").symlink_to("docs/words.md")
    (root / "CLAUDE.md").symlink_to("there.md")
    (root / ".envrc").symlink_to("../outside")
    (root / ".env").symlink_to("gone")
    (root / "plain").symlink_to("gone")
    assert planned(root).vacant == {root / "docs/words.md"}


def test_tracked_files_of_secrets_show_and_protected_ones_stay_as_they_are(root: Path) -> None:
    paths = [put(root / name) for name in (".env", ".npmrc", "AGENTS.md")]
    holds = plan_holds(indexed(root), roots=(root,), git="closed", tracked=paths[:2])
    assert places(root, holds) == {".npmrc": "read-only", "AGENTS.md": "read-only"}


@pytest.mark.parametrize("access", ["closed", "data", "open"])
def test_a_repository_is_held_as_far_as_it_must_be(root: Path, access: GitAccess) -> None:
    git(root, "init", "-q")
    git(root / "a/b", "init", "-q")
    holds = planned(root, access)
    folders = (root / ".git", root / "a/b/.git")
    match access:
        case "closed":
            assert {holds.mounts[one] for one in folders} == {"read-only"}
            assert holds.data == ()
        case "open":
            assert {holds.mounts[one] for one in folders} == {"writable"}
            assert holds.read_only == ()
        case "data":
            assert {holds.mounts[one] for one in folders} == {"writable"}
            assert holds.data == folders
            assert set(holds.read_only) == {one / name for one in folders for name in ("config", "hooks")}  # fmt: skip
    assert holds.mounts[root / "a"] == holds.mounts[root / "a/b"] == "writable"


def test_with_data_open_all_that_leads_git_elsewhere_is_read_only(root: Path) -> None:
    git(root, "init", "-q")
    names = ("info/attributes", "info/grafts", "objects/info/alternates", "config.worktree", "gitdir", "worktrees/x/y")  # fmt: skip
    for name in names:
        put(root / ".git" / name)
    held = {str(one.relative_to(root / ".git")) for one in planned(root, "data").read_only}
    assert held == {"config", "hooks", *names[:-1], "worktrees"}
    assert {str(one.relative_to(root / ".git")) for one in git_pointers([root / ".git"])} == held
    (root / ".git/modules").symlink_to("gone")
    assert root / ".git/modules" in git_pointers([root / ".git"])
    assert root / ".git/modules" not in planned(root, "data").mounts


def test_of_a_worktree_both_folders_are_opened_and_its_file_is_held(root: Path) -> None:
    main, tree = root.parent / "main", root
    git(main, "init", "-q", "-b", "main")
    git(main, "commit", "-qm", "x", "--allow-empty")
    tree.rmdir()
    git(main, "worktree", "add", "-q", str(tree))
    seen = (tree / ".git", main / ".git", main / ".git/worktrees/root")
    assert dict(planned(tree).mounts) == dict.fromkeys(seen, "read-only")
    holds = planned(tree, "data")
    assert holds.data == (main / ".git", main / ".git/worktrees/root")
    assert holds.mounts[tree / ".git"] == "read-only"
    assert holds.mounts[main / ".git/config"] == "read-only"
    assert holds.mounts[main / ".git/worktrees/root/commondir"] == "read-only"
    assert set(planned(tree, "open").mounts.values()) == {"writable"}


def test_of_a_submodule_the_folder_that_names_it_back_is_opened(root: Path) -> None:
    source = root.parent / "source"
    git(source, "init", "-q")
    git(source, "commit", "-qm", "x", "--allow-empty")
    git(root, "init", "-q")
    git(root, "submodule", "add", "-q", str(source), "sub")
    holds = planned(root, "data")
    assert holds.data == (root / ".git", root / ".git/modules/sub")
    assert holds.mounts[root / ".git/modules"] == "read-only"
    assert holds.mounts[root / ".git/modules/sub/config"] == "read-only"
    assert holds.mounts[root / "sub/.git"] == "read-only"
    assert planned(root).mounts[root / "sub/.git"] == "read-only"


def test_a_repository_of_somebody_else_is_not_opened(root: Path) -> None:
    git(root.parent / "other", "init", "-q")
    put(root / ".git", f"gitdir: {root.parent}/other/.git\n")
    for access in ("data", "open"):
        assert not [one for one in planned(root, access).mounts if "other" in one.parts]
    (root / ".git").unlink()
    (root / ".git").symlink_to("../other/.git")
    assert planned(root, "data").data == ()


def test_a_repository_without_a_name_of_its_own_is_held_too(root: Path) -> None:
    git(root, "init", "-q", "--bare", "a/bare")
    assert places(root, planned(root)) == {"a": "writable", "a/bare": "read-only"}
    holds = planned(root, "data")
    assert holds.data == (root / "a/bare",)
    assert holds.mounts[root / "a/bare/hooks"] == "read-only"


def test_a_bare_repository_that_was_opened_as_a_workspace_is_held_part_by_part(root: Path) -> None:
    git(root, "init", "-q", "--bare")
    held = places(root, planned(root))
    assert {"HEAD", "objects", "refs", "config", "hooks"} <= held.keys()
    assert set(held.values()) == {"read-only"}
    assert "." not in places(root, planned(root, "open"))


def test_a_link_to_a_repository_is_a_problem_while_that_is_closed(root: Path) -> None:
    git(root, "init", "-q")
    (root / ".git").rename(root / "g")
    (root / ".git").symlink_to("g")
    problem = planned(root).problem
    assert problem == (
        f"{root}/.git is a link, and a link to a repository cannot be held in its place"
    )
    holds = planned(root, "data")
    assert (holds.problem, holds.data) == (None, (root / "g",))


def test_more_places_than_can_be_held_are_a_problem_that_counts_them(root: Path) -> None:
    for number in range(MOST_MOUNTS):
        put(root / f"{number}.code-workspace")
    holds = planned(root)
    assert (holds.problem, len(holds.mounts)) == (None, MOST_MOUNTS)
    put(root / "a/AGENTS.md")
    holds = planned(root)
    assert holds.problem is not None
    assert holds.problem.startswith(f"{MOST_MOUNTS + 2} places in it would have to be held (")
    assert holds.mounts == {}


def test_our_own_code_in_a_root_is_read_only() -> None:
    package = Path(agent_core.__file__).resolve().parent
    holds = plan_holds({}, roots=(package.parent,), git="open")
    assert holds.mounts[package] == "read-only"
    assert holds.mounts[package.parent / "server" / "tiller_server"] == "read-only"
    prefix = Path(sys.prefix).resolve()
    if prefix.is_relative_to(package.parent):
        assert holds.mounts[prefix] == "read-only"


def test_folders_that_cannot_be_looked_into_are_read_only(root: Path) -> None:
    entry = GuardedEntry("unreadable", 1, 2, 0o040000)
    holds = plan_holds({str(root / "a/b"): entry}, roots=(root,), git="closed")
    assert places(root, holds) == {"a": "writable", "a/b": "read-only"}


def test_more_settings_of_git_than_are_read_are_not_contained(root: Path) -> None:
    git(root, "init", "--quiet")
    config = root / ".git" / "config"
    plain = config.read_text("utf-8")
    config.write_text(plain + "".join(f"[include]\n\tpath = {n}.inc\n" for n in range(40)), "utf-8")
    assert planned(root).problem == "git reads more than 32 files of settings for it"
    config.write_text(plain + "# long\n" * 20_000, "utf-8")
    assert "is too long to be read" in (planned(root).problem or "")
    config.write_text(f"{plain}[include]\n\tpath = /dev/null\n\tpath = gone.inc\n", "utf-8")
    assert planned(root).problem is None
