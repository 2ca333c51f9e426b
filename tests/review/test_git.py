"""The shadow of a repository shows git what the repository itself would, for every form that repositories have."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.git.client import Git, find_root, open_git
from agent_core.workspace.git.repository import RepositoryUnusable
from tests.support.workspace.repositories import Repository
from tiller_server.review.git.branches import create_branch
from tiller_server.review.git.revisions import written_tree

pytestmark = pytest.mark.timeout(60)
ENV = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    return folder


async def opened(folder: Path, scratch: Path, **env: str) -> Git:
    return await open_git(folder, env={**ENV, **env}, scratch=scratch)


def snapshot(folder: Path) -> dict[str, bytes]:
    """Give all files below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def plain_git(root: Path, *words: str) -> bytes:
    """Ask git itself."""
    return subprocess.run(
        ["git", *words], cwd=root, env=ENV, capture_output=True, check=False
    ).stdout


def plain(repository: Repository) -> Repository:
    repository.commit("Begin", {"a.txt": "one\n", "sub/b.txt": "one\n"})
    repository.commit("Change", {"a.txt": "two\n"})
    return repository


def packed(repository: Repository) -> Path:
    plain(repository).git("tag", "--annotate", "v1", "--message", "v1")
    repository.git("gc", "--quiet")
    repository.git("pack-refs", "--all")
    return repository.root


def detached(repository: Repository) -> Path:
    plain(repository).git("checkout", "--quiet", "--detach")
    return repository.root


def linked(repository: Repository) -> Path:
    plain(repository).git("worktree", "add", "--quiet", "-b", "other", "../linked")
    tree = repository.root.parent / "linked"
    repository.git("-C", str(tree), "update-ref", "refs/worktree/mine", "HEAD")
    return tree


def submodule(repository: Repository) -> Path:
    other = plain(Repository(repository.root.parent / "other"))
    repository.commit("Begin")
    repository.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other.root), "sub")  # fmt: skip
    return repository.root / "sub"


def alternates(repository: Repository) -> Path:
    """Make a clone of a shared clone, with a relative path on the way."""
    plain(repository)
    root = repository.root
    repository.git("clone", "--quiet", "--shared", str(root), "../middle")
    middle = root.parent / "middle"
    (middle / ".git/objects/info/alternates").write_text(f"../../../{root.name}/.git/objects\n")
    repository.git("clone", "--quiet", "--shared", str(middle), "../last")
    return root.parent / "last"


def split_index(repository: Repository) -> Path:
    plain(repository).git("update-index", "--split-index")
    assert list((repository.root / ".git").glob("sharedindex.*"))
    return repository.root


def sparse(repository: Repository) -> Path:
    plain(repository).git("sparse-checkout", "set", "--no-cone", "/*.txt")
    return repository.root


def odd_name(repository: Repository) -> Path:
    root = repository.root.parent / 'a "b":c\\d é'
    repository.root.rename(root)
    repository.root = root
    return plain(repository).root


def sha256(repository: Repository) -> Path:
    folder = repository.root.parent / "long"
    folder.mkdir()
    repository.root = folder
    repository.git("init", "--quiet", "--object-format=sha256", "--initial-branch=main")
    return plain(repository).root


def link_inside(repository: Repository) -> Path:
    plain(repository)
    (repository.root / ".git").rename(repository.root / "store")
    (repository.root / ".git").symlink_to("store")
    return repository.root


FORMS = (
    packed, detached, linked, submodule, alternates, split_index, sparse, odd_name, sha256, link_inside,
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
async def test_git_sees_in_the_shadow_what_it_sees_in_the_repository(
    repository: Repository, scratch: Path, form: Callable[[Repository], Path]
) -> None:
    root = form(repository)
    (root / "a.txt").write_text("three\n", "utf-8")
    (root / "new.txt").write_text("new\n", "utf-8")
    asked = (
        ("rev-parse", "HEAD", "HEAD~1", "HEAD^{tree}"),
        ("for-each-ref",),
        ("log", "--format=%H %s", "--all"),
        ("diff", "--raw", "HEAD~1", "HEAD"),
        ("ls-files", "--stage"),
        ("status", "--porcelain"),
        ("symbolic-ref", "--quiet", "HEAD"),
    )
    expected = [plain_git(root, *words) for words in asked]
    before = snapshot(repository.root.parent)
    git = await opened(root, scratch)
    assert git.folder == root
    assert [(await git.ask(*words)).output for words in asked] == expected
    tree = await written_tree(git)
    listed = (await git.output("diff", "--name-status", "HEAD", tree)).decode().split("\n")
    assert {"M\ta.txt", "A\tnew.txt"} <= set(listed)
    assert not [one for one in listed if one.startswith("D")]
    after = snapshot(repository.root.parent)
    assert {k: v for k, v in after.items() if not k.startswith("scratch/")} == before


async def test_a_branch_without_a_commit_has_an_empty_shadow(
    repository: Repository, scratch: Path
) -> None:
    git = await opened(repository.root, scratch)
    assert (await git.ask("rev-parse", "--verify", "--quiet", "HEAD")).code == 1
    assert await git.text("symbolic-ref", "HEAD") == "refs/heads/main"


async def test_the_upstream_of_a_branch_is_known(repository: Repository, scratch: Path) -> None:
    plain(repository)
    repository.git("clone", "--quiet", str(repository.root), "../clone")
    git = await opened(repository.root.parent / "clone", scratch)
    assert await git.text("rev-parse", "main@{upstream}") == repository.head()


async def test_what_the_repository_and_the_user_ignore_is_in_no_snapshot(
    repository: Repository, scratch: Path, tmp_path: Path
) -> None:
    plain(repository)
    (repository.root / ".git/info/exclude").write_text("excluded\n")
    (tmp_path / "home/.config/git").mkdir(parents=True)
    (tmp_path / "home/.gitconfig").write_text("[include]\n\tpath = more\n")
    (tmp_path / "home/more").write_text("[core]\n\texcludesFile = ~/list\n\tautocrlf = input\n")
    (tmp_path / "home/list").write_text("ignored\n")
    for name in ("excluded", "ignored", "seen"):
        repository.write(name, "1\r\n")
    env = {"PATH": ENV["PATH"], "HOME": str(tmp_path / "home")}
    git = await open_git(repository.root, env=env, scratch=scratch)
    tree = await written_tree(git)
    assert await git.text("diff", "--name-only", "HEAD", tree) == "seen"
    assert await git.output("cat-file", "blob", f"{tree}:seen") == b"1\n"


async def test_a_temporary_folder_in_the_work_tree_is_in_no_snapshot(
    repository: Repository,
) -> None:
    plain(repository)
    scratch = repository.root / "tmp" / "tiller-review-x"
    scratch.mkdir(parents=True)
    git = await opened(repository.root, scratch)
    assert await git.text("diff", "--name-only", "HEAD", await written_tree(git)) == ""


def other_worktree(repository: Repository) -> None:
    plain(repository).git("config", "core.worktree", "/etc")


def reftable(repository: Repository) -> None:
    plain(repository).git("config", "core.repositoryformatversion", "1")
    with (repository.root / ".git/config").open("a") as file:
        file.write("[extensions]\n\trefStorage = reftable\n")


def foreign(repository: Repository) -> None:
    """Put a `.git` file there that leads to somebody else's repository."""
    other = plain(Repository(repository.root.parent / "other"))
    (repository.root / ".git").rename(repository.root.parent / "gone")
    (repository.root / ".git").write_text(f"gitdir: {other.root}/.git\n")


def foreign_link(repository: Repository) -> None:
    other = plain(Repository(repository.root.parent / "other"))
    (repository.root / ".git").rename(repository.root.parent / "gone")
    (repository.root / ".git").symlink_to(other.root / ".git")


def linked_part(name: str) -> Callable[[Repository], None]:
    def plant(repository: Repository) -> None:
        other = plain(Repository(repository.root.parent / "other"))
        plain(repository)
        part = repository.root / ".git" / name
        part.rename(repository.root.parent / "gone")
        part.symlink_to(other.root / ".git" / name)

    return plant


def bare(repository: Repository) -> None:
    plain(repository).git("clone", "--quiet", "--bare", ".", "../bare")
    (repository.root / ".git").rename(repository.root.parent / "gone")
    for path in (repository.root.parent / "bare").iterdir():
        path.rename(repository.root / path.name)


def pipe(repository: Repository) -> None:
    plain(repository)
    (repository.root / ".git/index").unlink()
    os.mkfifo(repository.root / ".git/index")


REFUSED = {
    "core.worktree": (other_worktree, r"another work tree \(core.worktree = '/etc'\).*remove that"),
    "reftable": (reftable, r"reftable.*git refs migrate"),
    "a foreign .git file": (foreign, "does not name this one back"),
    "a foreign .git link": (foreign_link, "does not name this one back"),
    "linked objects": (linked_part("objects"), "objects' is a link, which is not followed"),
    "linked refs": (linked_part("refs"), "refs' is a link, which is not followed"),
    "a linked index": (linked_part("index"), r"index' cannot be read \(it is a link\)"),
    "a linked HEAD": (linked_part("HEAD"), r"HEAD' cannot be read \(it is a link\)"),
    "a linked config": (linked_part("config"), r"config' cannot be read"),
    "a bare repository": (bare, "run it in a work tree"),
    "a pipe": (pipe, "no plain file"),
}


@pytest.mark.parametrize("name", REFUSED)
async def test_what_cannot_be_read_safely_is_refused_with_the_reason(
    repository: Repository, scratch: Path, name: str
) -> None:
    plant, why = REFUSED[name]
    plant(repository)
    with pytest.raises(RepositoryUnusable, match=why):
        await opened(repository.root, scratch)


async def test_a_ref_that_is_a_link_shows_no_other_repository(
    repository: Repository, scratch: Path
) -> None:
    other = plain(Repository(repository.root.parent / "other"))
    plain(repository)
    (repository.root / ".git/refs/heads/theirs").symlink_to(other.root / ".git/refs/heads/main")
    git = await opened(repository.root, scratch)
    assert await git.text("for-each-ref", "--format=%(refname)") == "refs/heads/main"


async def test_the_root_is_found_from_below_and_not_past_a_ceiling(repository: Repository) -> None:
    plain(repository)
    below = repository.root / "sub"
    assert await find_root(below, ENV) == repository.root
    with pytest.raises(RepositoryUnusable, match="is in no Git repository"):
        await find_root(below, {**ENV, "GIT_CEILING_DIRECTORIES": str(repository.root)})
    with pytest.raises(RepositoryUnusable, match=r"nowhere' was not found"):
        await find_root(below / "nowhere", ENV)


async def test_a_branch_is_written_into_the_repository_once_and_through_no_link(
    repository: Repository, scratch: Path, tmp_path: Path
) -> None:
    root = plain(repository).root
    git, head = await opened(root, scratch), repository.head()
    await create_branch(git, "tiller/fix", head)
    assert repository.git("rev-parse", "tiller/fix") == head
    for name, why in {
        "tiller/fix": "is there already",
        "tiller": "is there already",
        "main": "is there already",
        "a..b": "no name of a branch",
    }.items():
        with pytest.raises(Exception, match=why):
            await create_branch(git, name, head)
    (tmp_path / "away").mkdir()
    (root / ".git/refs/heads/out").symlink_to(tmp_path / "away")
    with pytest.raises(Exception, match="cannot be written"):
        await create_branch(git, "out/x", head)
    assert [*(tmp_path / "away").iterdir()] == []
