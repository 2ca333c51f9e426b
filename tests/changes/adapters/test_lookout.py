"""What commands do to files is seen, and what they held before is there where that is cheap."""

import os
import subprocess
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.changes.adapters.blob_stores import MemoryBlobStore
from agent_core.changes.adapters.disk_detector import (
    MOST_EFFECTS,
    MOST_LOST,
    DiskChangeDetector,
)
from agent_core.changes.adapters.tree_scanner import MOST_IGNORED, TreeScanner
from agent_core.changes.ports import DetectedChanges
from agent_core.changes.values import MOST_BYTES
from agent_core.workspace.processes.disk_processes import DiskProcesses

GIT = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@b.c",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b.c",
    "PATH": os.defpath,
}


@dataclass(kw_only=True)
class Post:
    root: Path
    lookout: DiskChangeDetector
    contents: MemoryBlobStore

    async def sees(self, command: str) -> dict[str, tuple[str | None, str | None]]:
        """Run a command between two looks; gives the texts before and after by name, `?` for what is not known."""
        effects = await self.watch(command)
        assert effects.incomplete is None
        return {
            one.path.relative_to(self.root).as_posix(): (
                await self._held(one.before),
                await self._held(one.after),
            )
            for one in effects.files
        }

    async def watch(self, command: str) -> DetectedChanges:
        await self.lookout.snapshot()
        await to_thread.run_sync(self.sh, command)
        return await self.lookout.diff()

    def sh(self, command: str) -> None:
        subprocess.run(["/bin/sh", "-ec", command], cwd=self.root, env=GIT, check=True)

    async def _held(self, version) -> str | None:
        if version is None:
            return None
        data = None if version.content is None else await self.contents.get(version.content)
        return "?" if data is None else data.decode("latin-1")


@pytest.fixture(params=["watched", "walked"])
async def post(tmp_path: Path, request, monkeypatch) -> AsyncGenerator[Post]:
    if request.param == "walked":
        monkeypatch.setattr(TreeScanner, "_add_watch", lambda self, name: self.rest())
    root = tmp_path / "w"
    await to_thread.run_sync(root.mkdir)
    contents = MemoryBlobStore()
    lookout = DiskChangeDetector((root,), contents, DiskProcesses(), env={"PATH": os.defpath})
    yield Post(root=root, lookout=lookout, contents=contents)
    lookout.close()


async def test_files_that_are_made_changed_and_deleted_are_seen(post: Post) -> None:
    post.sh("echo 1 >a; echo 2 >b; mkdir -p d/e; echo 3 >d/e/c")
    seen = await post.sees("echo one >a; rm b; echo x >d/e/c; mkdir -p n/m; echo new >n/m/f")
    assert seen == {
        "a": ("1\n", "one\n"),
        "b": ("2\n", None),
        "d/e/c": ("3\n", "x\n"),
        "n/m/f": (None, "new\n"),
    }


async def test_what_happens_between_commands_is_nobodys_effect(post: Post) -> None:
    post.sh("echo 1 >a")
    assert await post.sees("true") == {}
    post.sh("echo 2 >a; echo 3 >b")
    assert await post.sees("true") == {}
    assert await post.sees("echo 4 >a") == {"a": ("2\n", "4\n")}


async def test_a_folder_that_moves_takes_its_files_along(post: Post) -> None:
    post.sh("mkdir -p d/e; echo 1 >d/e/a")
    effects = await post.watch("mv d x; mv x/e/a x/e/b; mv x/e/b x/e/a")
    assert [(one.source, one.path) for one in effects.files] == [
        (post.root / "d/e/a", post.root / "x/e/a")
    ]
    assert await post.sees("echo 2 >x/e/a; mkdir -p d/e; echo 3 >d/e/a") == {
        "d/e/a": (None, "3\n"),
        "x/e/a": ("1\n", "2\n"),
    }
    assert await post.sees("rm -r d x") == {
        "d/e/a": ("3\n", None),
        "x/e/a": ("2\n", None),
    }


async def test_touching_and_other_rights_are_no_change(post: Post) -> None:
    post.sh("echo 1 >a; echo 2 >b")
    assert await post.sees("touch a; chmod +x b; cp a c; mv c a") == {}


@pytest.mark.parametrize("ignored", [".gitignore", ".git/info/exclude"])
async def test_what_git_ignores_is_not_looked_at(post: Post, ignored: str) -> None:
    post.sh(f"git init -q .; printf '*.log\\n/out/\\n' >{ignored}; git add -A; mkdir out")
    assert await post.sees(
        "echo 1 >a.log; echo 2 >out/x; echo 3 >a; mkdir .tiller; echo >.tiller/y"
    ) == {"a": (None, "3\n")}


async def test_a_nested_ignore_file_counts_below_it(post: Post) -> None:
    post.sh("mkdir -p p/build build; echo build/ >p/.gitignore")
    assert await post.sees("echo 1 >p/build/x; echo 2 >build/y") == {"build/y": (None, "2\n")}


async def test_what_git_holds_is_asked_of_git_and_not_copied(post: Post) -> None:
    post.sh(
        "git init -q .; echo 1 >a; echo 2 >b; git add -A; git commit -qm x; sleep 0.02; git status -s"
    )
    # The index must be younger than what it is sure of.
    post.sh("touch -d '1 minute ago' a b; git update-index --refresh -q || true; git status -s")
    await post.lookout.snapshot()
    assert not post.contents._kept
    assert await post.sees("echo one >a; git add a; git commit -qm y; git rm -q b") == {
        "a": ("1\n", "one\n"),
        "b": ("2\n", None),
    }


async def test_what_was_dirty_before_is_copied(post: Post) -> None:
    post.sh("git init -q .; echo 1 >a; git add -A; git commit -qm x; echo mine >a; echo new >b")
    assert await post.sees("git checkout -q -- a; rm b") == {
        "a": ("mine\n", "1\n"),
        "b": ("new\n", None),
    }


async def test_a_form_that_git_changed_is_not_taken_for_the_file(post: Post) -> None:
    post.sh(
        "git init -q .; git config core.autocrlf true; printf '1\\r\\n' >a; git add -A; git commit -qm x"
    )
    post.sh("touch -d '1 minute ago' a; git update-index --refresh -q || true; git status -s")
    seen = await post.sees("printf '2\\r\\n' >a")
    assert seen["a"][0] in {"?", "1\r\n"}


async def test_what_is_too_large_is_seen_and_not_kept(post: Post) -> None:
    post.sh(f"head -c {MOST_BYTES + 1} /dev/zero >big; echo 1 >small")
    assert await post.sees("echo 1 >>big; rm small") == {"big": ("?", "?"), "small": ("1\n", None)}


async def test_bytes_and_foreign_encodings_are_kept_as_they_are(post: Post) -> None:
    (post.root / "a").write_bytes(b"\xff\xfeh\x00i\x00")
    (post.root / "b").write_bytes(b"\x00\x01\x02")
    seen = await post.sees("printf '\\001\\000' >a; rm b")
    assert seen == {
        "a": ("\xff\xfeh\x00i\x00", "\x01\x00"),
        "b": ("\x00\x01\x02", None),
    }


async def test_links_are_not_followed(post: Post, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "f").write_text("1")
    post.sh("ln -s ../outside l; ln -s ../outside/f m")
    assert await post.sees("echo 2 >l/f; echo 3 >m; rm l") == {}


async def test_more_than_enough_is_counted(post: Post) -> None:
    effects = await post.watch(f"for i in $(seq {MOST_EFFECTS + 7}); do echo $i >f$i; done")
    assert len(effects.files) == MOST_EFFECTS
    assert effects.incomplete == "7 more files were changed and are not listed."


async def test_a_workspace_that_is_too_large_is_said_and_costs_once(
    post: Post, monkeypatch
) -> None:
    post.sh("for i in 1 2 3; do echo $i >f$i; done")
    post.lookout._tree = TreeScanner(most_files=2)
    effects = await post.watch("echo >new")
    assert effects.files == ()
    assert "more than 2 files" in (effects.incomplete or "")
    monkeypatch.setattr(TreeScanner, "start", None)
    assert "more than 2 files" in ((await post.watch("true")).incomplete or "")


async def test_another_root_is_looked_at_from_the_next_command_on(
    post: Post, tmp_path: Path
) -> None:
    roots = [post.root]
    post.lookout._roots = roots
    assert await post.sees("true") == {}
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a").write_text("1\n")
    roots.append(tmp_path / "x")
    effects = await post.watch("echo 2 >../x/a")
    assert [one.path for one in effects.files] == [tmp_path / "x" / "a"]


async def test_without_a_look_before_nothing_is_claimed(post: Post) -> None:
    assert (await post.lookout.diff()).incomplete is not None


async def test_a_large_workspace_costs_little_for_each_command(tmp_path: Path) -> None:
    root = tmp_path / "w"

    def fill() -> None:
        for number in range(500):
            folder = root / f"a{number // 50}" / f"b{number}"
            folder.mkdir(parents=True)
            for name in range(20):
                (folder / f"f{name}").write_text("")

    await to_thread.run_sync(fill)
    lookout = DiskChangeDetector(
        (root,), MemoryBlobStore(), DiskProcesses(), env={"PATH": os.defpath}
    )
    await lookout.snapshot()
    took_s: list[float] = []
    for _ in range(60):
        begun_s = time.perf_counter()
        await lookout.snapshot()
        assert (await lookout.diff()).files == ()
        took_s.append(time.perf_counter() - begun_s)
    lookout.close()
    # Other work on the machine only ever adds.
    assert sorted(took_s)[10] < 0.02


IGNORING = "git init -q .; printf '*.log\\n/out/\\nnode_modules/\\n' >.gitignore; git add -A; "


@pytest.mark.parametrize(
    ("made", "command", "lost"),
    [
        ("echo 1 >a.log", "rm a.log", ["a.log"]),
        ("mkdir out; echo 1 >out/a", "rm -rf out", ["out"]),
        ("mkdir -p out/in; echo 1 >out/in/a; echo 1 >out/b", "rm out/in/a out/b", ["out/b", "out/in/a"]),
        ("mkdir -p out/in; echo 1 >out/in/a", "rm -rf out/*", ["out/in"]),
        ("mkdir -p s/out; echo '*' >s/out/.gitignore; echo 1 >s/out/a", "rm -rf s/out/a", ["s/out/a"]),
        ("mkdir -p node_modules/m; echo 1 >node_modules/m/a", "rm -rf node_modules", ["node_modules"]),
        ("mkdir -p node_modules/m; echo 1 >node_modules/m/a", "rm -rf node_modules/m", []),
        ("mkdir -p s/__pycache__; echo 1 >s/__pycache__/a.pyc", "rm -rf s/__pycache__", []),
        ("mkdir out; echo 1 >out/a", "mv out/a out/b; echo 2 >out/c", []),
        ("mkdir out; echo 1 >out/a", "rm -rf out; mkdir out; echo 2 >out/a", []),
        ("mkdir out", "rm out/a 2>/dev/null || true; echo 1 >out/a; rm out/a", []),
    ],
)  # fmt: skip
async def test_what_git_ignores_and_is_deleted_is_named(
    post: Post, made: str, command: str, lost: list[str]
) -> None:
    post.sh(IGNORING + made)
    effects = await post.watch(command)
    assert [one.path.relative_to(post.root).as_posix() for one in effects.lost] == lost
    assert effects.incomplete is None


async def test_an_ignored_file_that_becomes_another_one_is_moved_and_not_lost(post: Post) -> None:
    post.sh(IGNORING + "mkdir out; echo 1 >out/a")
    effects = await post.watch("mv out/a b")
    (moved,) = effects.files
    assert (moved.source, moved.path) == (post.root / "out/a", post.root / "b")
    assert effects.lost == ()


async def test_ignored_files_beyond_the_bound_are_counted(post: Post) -> None:
    post.sh(IGNORING + "mkdir out; for i in $(seq 30); do echo 1 >out/$i; done")
    effects = await post.watch("rm out/*")
    assert len(effects.lost) == MOST_LOST
    assert (
        effects.incomplete
        == "10 more files or refs, of which no copy is kept, were deleted and are not listed."
    )


async def test_of_more_than_can_be_known_the_folder_is_named(post: Post) -> None:
    post.sh(IGNORING + f"mkdir -p out/in; cd out/in; seq {MOST_IGNORED + 1} | xargs touch")
    effects = await post.watch("rm -rf out/in")
    assert [one.path for one in effects.lost] == [post.root / "out/in"]


async def test_compiled_caches_are_no_changes_even_without_ignore_files(post: Post) -> None:
    post.sh("mkdir p; echo 'x = 1' >p/m.py")
    assert await post.sees(
        "python3 -c 'import compileall; compileall.compile_dir(\"p\", quiet=1)';"
        " mkdir .pytest_cache; echo 1 >.pytest_cache/x; test -d p/__pycache__; echo 2 >p/made"
    ) == {"p/made": (None, "2\n")}


HISTORY = (
    "git init -q -b main .; git commit -q --allow-empty -m one; git branch keep; git tag light;"
    " git branch packed; git pack-refs --all; git branch loose; echo 1 >f; git add f; git commit -q -m two;"
)


@pytest.mark.parametrize(
    ("command", "lost"),
    [
        ("git branch -q -D keep", ["refs/heads/keep"]),
        ("git branch -q -D packed loose", ["refs/heads/loose", "refs/heads/packed"]),
        ("git tag -d light", ["refs/tags/light"]),
        ("git tag -f light", ["refs/tags/light"]),
        ("git branch -m keep kept", []),
        ("echo 2 >f; git stash -q; git stash drop -q", []),
        (
            "git reflog expire --expire=now --all",
            [f"logs/{name}" for name in ("HEAD", *(f"refs/heads/{ref}" for ref in ("keep", "loose", "main", "packed")))],
        ),
        ("rm -rf .git", [""]),
        ("rm -rf .git/refs/heads .git/packed-refs .git/HEAD", ["HEAD", "refs/heads/keep", "refs/heads/loose", "refs/heads/main", "refs/heads/packed", "refs/tags/light"]),
        ("rm -rf .git/objects .git/logs", ["logs", "objects"]),
        ("cp /dev/null .git/index; echo broken >.git/HEAD", ["index", "HEAD"]),
        ("git reset -q --hard HEAD~1; git branch -f keep main; git pack-refs --all; git gc -q", []),
        ("git checkout -q keep; git commit -q --allow-empty -m three; git merge -q main", []),
    ],
)  # fmt: skip
async def test_what_is_removed_from_a_repository_is_named(
    post: Post, command: str, lost: list[str]
) -> None:
    post.sh(HISTORY)
    effects = await post.watch(command)
    git = post.root / ".git"
    assert [one.path for one in effects.lost] == [git / name for name in lost]


async def test_a_repository_inside_of_the_root_that_is_deleted_is_named(post: Post) -> None:
    post.sh("git init -q .; git init -q sub; echo 1 >sub/a")
    effects = await post.watch("rm -rf sub")
    assert [one.path for one in effects.lost] == [post.root / "sub/.git"]


async def test_of_too_many_changes_those_are_kept_that_may_lose_something(post: Post) -> None:
    post.sh("echo 1 >zz")
    effects = await post.watch(f"for i in $(seq {MOST_EFFECTS}); do echo 1 >a$i; done; rm zz")
    assert [one.path.name for one in effects.files if one.after is None] == ["zz"]
    assert effects.incomplete == "1 more files were changed and are not listed."
