"""`tiller run --worktree` works apart from the checkout, and a session of a worktree never works anywhere else."""

import re
from pathlib import Path

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.terminal import tiller
from tests.support.session.session_files import messages, read_entries
from tests.support.workspace.contained import require_full
from tests.support.workspace.repositories import Repository

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

WORK = calls(("write", {"path": "note.txt", "content": "done\n"}))
PLACE = re.compile(r"the changes are in the worktree (\S+/(\w{8}))\n")


@pytest.fixture
def repository(ground: Ground) -> Repository:
    made = Repository(ground.root)
    made.commit("Begin", {"a.txt": "one\n", "AGENTS.md": "Be brief.\n"})
    return made


def isolated(ground: Ground, *options: str) -> tuple[Path, str]:
    """Run in a worktree that stays; return its folder and id."""
    ran = tiller(ground, "run", "--worktree", *options, "Write a note")
    assert ran.code == 0, ran
    place = PLACE.search(ran.err)
    assert place is not None, ran.err
    return Path(place[1]), place[2]


def results(ground: Ground) -> list[tuple[str, bool]]:
    """Return the texts of all tool results of the newest session, and whether each is an error."""
    newest = max(ground.sessions(), key=lambda path: path.name)
    found = messages(read_entries(newest), "toolResult")
    return [
        ("".join(part.get("text", "") for part in one["content"]), one["isError"]) for one in found
    ]


def test_the_checkout_is_left_alone_until_the_changes_are_merged(
    ground: Ground, repository: Repository
) -> None:
    ground.provider.script([WORK, says("Written."), says("Go on.")])
    repository.write("mine.txt", "mine\n")
    folder, id_ = isolated(ground)
    assert (folder / "note.txt").read_text("utf-8") == "done\n"
    assert repository.git("status", "--porcelain") == "?? mine.txt"
    (session,) = (path.stem.rpartition("_")[2] for path in ground.sessions())
    again = tiller(ground, "run", "-r", session, "And?")
    assert (again.code, again.out) == (0, "Go on.\n"), again.err
    assert "+done\n" in tiller(ground, "worktree", "diff", id_).out
    refused = tiller(ground, "worktree", "remove", id_)
    assert (refused.code, "changes that are not committed" in refused.err) == (1, True)
    assert tiller(ground, "worktree", "merge", id_).code == 0
    assert repository.read("note.txt") == "done\n"
    assert tiller(ground, "worktree", "remove", id_).code == 0
    assert not folder.exists()
    gone = tiller(ground, "run", "-r", session, "And now?")
    assert gone.code == 2
    assert f"the worktree '{folder}' of the session is missing" in gone.err
    assert "is not a folder" in tiller(ground, "run", "-C", str(folder), "-c", "And now?").err


def test_a_worktree_without_changes_is_removed_again(
    ground: Ground, repository: Repository
) -> None:
    ground.provider.script([says("Nothing to do.")])
    repository.write("mine.txt", "mine\n")
    ran = tiller(ground, "run", "--worktree", "Look")
    assert (ran.code, ran.out) == (0, "Nothing to do.\n")
    assert ran.err.startswith(
        "tiller run: changes that are not committed are not in the worktree\n"
    )
    assert PLACE.search(ran.err) is None
    assert list((ground.dirs.data / "worktrees").iterdir()) == []
    assert "tiller/" not in repository.git("branch", "--all")


def test_ignored_files_are_copied_into_the_worktree_and_named(
    ground: Ground, repository: Repository
) -> None:
    ground.provider.script([WORK, says("Written.")])
    refused = tiller(ground, "run", "--worktree-include", "Write a note")
    assert (refused.code, "there is no .worktreeinclude in" in refused.err) == (1, True)
    repository.commit("Include", {".gitignore": "*.env\n", ".worktreeinclude": "*.env\n"})
    for name in "abcdefg":
        repository.write(f"{name}.env", "KEY=1\n")
    (repository.root / "link.env").symlink_to("a.env")
    ran = tiller(ground, "run", "--worktree-include", "Write a note")
    assert ran.code == 0, ran.err
    assert (
        "tiller run: 7 ignored files were copied into the worktree: a.env, b.env, c.env, d.env, e.env and 2 more\n"
        "tiller run: not copied: link.env (Too many levels of symbolic links)\n"
    ) in ran.err
    place = PLACE.search(ran.err)
    assert place is not None
    assert (Path(place[1]) / "g.env").read_text("utf-8") == "KEY=1\n"


def test_where_there_can_be_no_worktree_nothing_is_run(ground: Ground) -> None:
    ran = tiller(ground, "run", "--worktree", "Look")
    assert (ran.code, "is in no Git repository" in ran.err) == (1, True)
    ran = tiller(ground, "run", "--worktree", "-c", "Look")
    assert (ran.code, "--worktree begins a new session" in ran.err) == (2, True)
    assert ground.provider.requests == []


def test_the_trust_of_the_workspace_holds_for_the_same_content(
    ground: Ground, repository: Repository
) -> None:
    ground.configure(defaultProjectTrust="ask", permission={"mode": "yolo"})
    ground.provider.script([WORK, says("No."), WORK, says("Written."), WORK, says("No.")])
    assert "Be brief." not in tiller(ground, "run", "--worktree", "Write a note").out
    assert results(ground)[0][1]
    assert tiller(ground, "trust", "add", str(ground.root)).code == 0
    folder, _ = isolated(ground)
    assert (folder / "note.txt").exists()
    repository.commit("Other", {"AGENTS.md": "Do as I say.\n"})
    assert PLACE.search(tiller(ground, "run", "--worktree", "Write a note").err) is None


def test_when_its_folder_is_gone_every_tool_fails_and_makes_nothing(
    ground: Ground, repository: Repository
) -> None:
    ground.configure(sandbox="off")
    tries = (
        ("bash", {"command": "touch here"}),
        ("read", {"path": "a.txt"}),
        ("write", {"path": "note.txt", "content": "x"}),
        ("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}),
        ("ls", {}),
        ("find", {"pattern": "*"}),
        ("grep", {"pattern": "one"}),
    )
    gone = calls(("bash", {"command": 'cd /; rm -rf "$OLDPWD"'}))
    ground.provider.script([gone, *(calls(one) for one in tries), says("Gone.")])
    ran = tiller(ground, "run", "--worktree", "--tools", "default,+ls,+find,+grep", "Go")
    assert ran.code == 0, ran
    (_, *failed) = results(ground)
    assert [is_error for _, is_error in failed] == [True] * len(tries), failed
    assert repository.git("status", "--porcelain") == ""
    assert repository.read("a.txt") == "one\n"


def test_a_contained_command_commits_there_and_cannot_write_to_the_checkout(
    ground: Ground, repository: Repository
) -> None:
    require_full()
    ground.configure(permission={"mode": "auto"})
    repository.git("config", "user.name", "A")
    repository.git("config", "user.email", "a@example.invalid")
    tell = "git rev-parse --show-toplevel; echo $GIT_CEILING_DIRECTORIES; git status --short"
    commit = "git add note.txt && git commit -qm Note"
    steal = f"touch {repository.root}/stolen; echo x > {repository.root}/a.txt; cat .git; rm .git; git status"
    script = [
        WORK,
        *(calls(("bash", {"command": one})) for one in (tell, commit, steal)),
        says("Done."),
    ]
    ground.provider.script(script)
    folder, id_ = isolated(ground)
    told, committed, stolen = (text for text, _ in results(ground)[1:])
    assert told.splitlines()[:3] == [str(folder), str(folder.parent), "?? note.txt"]
    assert repository.git("log", "--format=%s", "-1", f"tiller/{id_}") == "Note", committed
    assert repository.git("status", "--porcelain") == "", stolen
    assert repository.read("a.txt") == "one\n"
