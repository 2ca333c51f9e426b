"""What is looked at before a command, and what is done and said after it."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from errno import EIO
from pathlib import Path
from typing import NoReturn

import pytest
from typing_extensions import override

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox import survey as module
from agent_core.workspace.sandbox.denial_messages import (
    GIT_DATA_SAID,
    GIT_SAID,
    HIDDEN_SAID,
    MASKED_SAID,
    PROTECTED_SAID,
)
from agent_core.workspace.sandbox.guards.mount_plan import GitAccess
from agent_core.workspace.sandbox.guards.tree_index import GuardedEntry
from agent_core.workspace.sandbox.home_view import PrivateFolder
from agent_core.workspace.sandbox.survey import (
    UNSEEN,
    CommandBaseline,
    Survey,
    find_program,
    git_access,
    inner_environment,
    shown_again,
)
from agent_core.workspace.sandbox.values import Boundaries, SandboxReport

CLOSED: frozenset[Needs] = frozenset()


def put(path: Path, text: str = "x", *, mode: int = 0o644) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(mode)
    return path


def repository(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.defpath, "HOME": "/nonexistent"}
    subprocess.run(["git", "init", "-q"], cwd=folder, env=env, check=True)
    return folder / ".git"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "root"
    root.mkdir()
    return root


def bounds(root: Path, *, readable: tuple[Path, ...] = ()) -> Boundaries:
    return Boundaries(roots=(root,), env={}, readable=readable)


class Workspace:
    """A root with its survey."""

    def __init__(self, root: Path, *, homes: tuple[Path, ...] = ()) -> None:
        self.root = root
        self.survey = Survey(bounds(root), homes=homes, private=PrivateFolder())

    def before(self, git: GitAccess = "closed") -> CommandBaseline:
        return self.survey.before(env={}, git=git)

    def after(self, ground: CommandBaseline, output: str = "", *, needs: frozenset[Needs] = CLOSED, code: int | None = 0) -> SandboxReport:  # fmt: skip
        into = self.root.parent / "away"
        return self.survey.after(ground, needs=needs, into=into, output=output, exit_code=code)


@pytest.fixture
def workspace(root: Path) -> Iterator[Workspace]:
    made = Workspace(root)
    yield made
    made.survey.close()


# Before


def test_what_is_held_follows_the_disk_and_what_git_may_do(workspace: Workspace) -> None:
    root = workspace.root
    git, rules = repository(root), put(root / "AGENTS.md")
    ground = workspace.before()
    assert set(ground.holds.mounts) == {git, rules}
    assert workspace.before().holds == ground.holds
    opened = workspace.before("data")
    assert opened.holds.mounts[git] == "writable"
    assert opened.pointers == {git / "config", git / "hooks"}
    assert workspace.before("open").holds.read_only == (rules,)
    more = put(root / "a/CLAUDE.md")
    assert more in workspace.before().holds.mounts


@pytest.mark.parametrize(
    ("needs", "access"),
    [
        ((), "closed"),
        (("network",), "closed"),
        (("gitData",), "data"),
        (("gitData", "gitConfig"), "open"),
        (("gitConfig",), "open"),
    ],
)
def test_what_git_may_change_follows_from_the_needs(
    needs: tuple[Needs, ...], access: GitAccess
) -> None:
    assert git_access(frozenset(needs)) == access


def test_keys_are_looked_for_where_both_environments_say(root: Path) -> None:
    first, second = put(root.parent / "a/key"), put(root.parent / "b/key")
    boundaries = Boundaries(roots=(root,), env={"KUBECONFIG": str(first)}, hidden=(second.parent,))
    home = root.parent / "home"
    put(home / ".netrc")
    survey = Survey(boundaries, homes=(home,), private=PrivateFolder())
    found = survey.before(env={"NETRC": str(second)}, git="closed")
    assert first in found.secrets.files
    assert home / ".netrc" in found.secrets.files
    assert second.parent in found.secrets.folders
    assert found.home == home
    assert Survey(boundaries, homes=(), private=PrivateFolder()).before(
        env={}, git="closed"
    ).home == Path("/")
    survey.close()
    survey.close()


def test_a_program_is_found_as_the_system_would(root: Path) -> None:
    tool, plain = put(root / "bin/tool", mode=0o755), put(root / "bin/plain")
    (root / "bin/folder").mkdir()
    assert find_program("tool", cwd=root, path=str(root / "bin")) == tool
    assert find_program("bin/tool", cwd=root, path="") == root / "bin/tool"
    assert find_program(str(tool), cwd=Path("/"), path="") == tool
    for name in ("plain", "gone", "bin/gone"):
        with pytest.raises(FileNotFoundError, match="No such file"):
            find_program(name, cwd=root, path=str(root / "bin"))
    for name in (str(plain), "bin/folder"):
        with pytest.raises(PermissionError, match="Permission denied"):
            find_program(name, cwd=root, path="")


def test_temporary_files_and_caches_go_to_the_private_folder() -> None:
    env = {"LANG": "C", "MY_TOKEN": "x", "TMPDIR": "/a", "XDG_CACHE_HOME": "/b", "npm_config_cache": "/c"}  # fmt: skip
    inside = "/tmp"  # noqa: S108 - the private one stands there
    assert inner_environment(env) == {
        "LANG": "C",
        "TMPDIR": inside,
        "XDG_CACHE_HOME": f"{inside}/.cache",
        "npm_config_cache": f"{inside}/.npm",
    }


def test_what_lies_in_a_replaced_place_is_shown_again(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program, folders of programs, and what may be read; not what is not there or stays visible anyway."""
    over = root.parent
    monkeypatch.setattr(module, "OVERLAID", (over,))
    monkeypatch.setattr(module, "_OVERLAID_NAMES", (f"{over}/",))
    venv, plain = over / "venv", over / "plain"
    program, inner = put(over / "tool", mode=0o755), put(root / "tool", mode=0o755)
    put(venv / "pyvenv.cfg")
    (venv / "bin").mkdir()
    plain.mkdir()
    readable = bounds(root, readable=(plain, over / "gone"))
    path = f"{venv}/bin:{plain}:{over}/gone:/usr/bin:{plain}"

    def shown(program: Path, path: str) -> tuple[Path, ...]:
        return shown_again(readable, program=program, path=path, network=False)

    assert shown(program, path) == (plain, program, venv)
    assert shown(inner, "") == (plain,)
    assert shown(Path("/usr/bin/env"), "/usr/bin") == (plain,)


def test_names_are_resolved_with_the_network_alone(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = put(root.parent / "run/resolv.conf")
    monkeypatch.setattr(module, "RESOLVER", str(resolver))

    def shown(*, network: bool) -> tuple[Path, ...]:
        return shown_again(bounds(root), program=Path("/bin/sh"), path="", network=network)

    monkeypatch.setattr(module, "OVERLAID", (root,))
    assert shown(network=True) == ()
    monkeypatch.setattr(module, "OVERLAID", (resolver.parent,))
    assert shown(network=True) == (resolver,)
    assert shown(network=False) == ()
    resolver.unlink()
    assert shown(network=True) == ()


# After


@pytest.mark.parametrize("name", ["AGENTS.md", "a/b/c/d/.vscode/x", ".envrc", "a/.git", ".npmrc"])
def test_what_a_command_made_is_taken_away_and_told(workspace: Workspace, name: str) -> None:
    ground = workspace.before()
    made = put(workspace.root / name)
    taken = made.parent if ".vscode" in name else made
    assert workspace.after(ground).quarantined == (taken,)
    assert not taken.exists()
    assert workspace.after(ground) == SandboxReport()
    assert workspace.before().holds.problem is None


def test_what_was_there_or_means_nothing_stays(workspace: Workspace) -> None:
    root = workspace.root
    rules = put(root / "AGENTS.md")
    ground = workspace.before()
    put(root / "new", "saved by an editor").rename(rules)
    put(root / "code.py")
    put(root / ".env")
    put(root / "node_modules/p/AGENTS.md")
    (root / "link").symlink_to("code.py")
    repository(root / "a/b")
    assert workspace.after(ground) == SandboxReport()


def test_a_new_repository_is_made_harmless_where_it_is(workspace: Workspace) -> None:
    ground = workspace.before()
    git = repository(workspace.root / "a/b/c")
    hook = put(git / "hooks/pre-commit")
    assert workspace.after(ground).quarantined == (hook.parent,)
    assert (git / "HEAD").exists()
    assert workspace.before().holds.problem is None


def test_of_a_new_repository_without_a_name_only_what_makes_it_one_goes(
    workspace: Workspace,
) -> None:
    root = workspace.root
    code = put(root / "a/code.py")
    ground = workspace.before()
    for name in ("objects", "refs", "hooks"):
        (root / "a" / name).mkdir()
    head = put(root / "a/HEAD")
    put(root / "a/hooks/post-update")
    assert workspace.after(ground).quarantined == (head,)
    assert code.exists()


def test_a_link_into_dependencies_goes_whatever_is_there_now(workspace: Workspace) -> None:
    root = workspace.root
    put(root / "node_modules/p/AGENTS.md")
    put(root / "node_modules/q/x.js")
    ground = workspace.before()
    (root / "src").symlink_to("node_modules/p")
    (root / "lib").symlink_to("node_modules/q")
    assert workspace.after(ground).quarantined == (root / "lib", root / "src")


def test_what_leads_git_elsewhere_goes_after_a_command_of_git(workspace: Workspace) -> None:
    git = repository(workspace.root)
    ground = workspace.before("data")
    made = [put(git / "config.worktree"), put(git / "objects/info/alternates")]
    assert workspace.after(ground, needs=frozenset({"gitData"})).quarantined == tuple(made)
    ground = workspace.before("open")
    put(git / "config.worktree")
    hook = put(repository(workspace.root / "a") / "hooks/x")
    assert workspace.after(ground, needs=frozenset({"gitConfig"})).quarantined == ()
    assert hook.exists()


def test_a_protected_link_is_put_back(workspace: Workspace) -> None:
    root = workspace.root
    put(root / "words.md")
    link = root / "CLAUDE.md"
    link.symlink_to("words.md")
    ground = workspace.before()
    link.unlink()
    put(link, "evil")
    assert workspace.after(ground).quarantined == (link,)
    assert str(link.readlink()) == "words.md"


def test_what_lies_too_deep_to_be_looked_at_goes_as_a_whole(workspace: Workspace) -> None:
    ground = workspace.before()
    opened = os.open(workspace.root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("n" * 250, dir_fd=opened)
        inner = os.open("n" * 250, os.O_RDONLY, dir_fd=opened)
        os.close(opened)
        opened = inner
    os.close(opened)
    (taken,) = workspace.after(ground).quarantined
    assert taken.name == "n" * 250
    assert workspace.before().holds.problem is None


def test_what_a_command_was_kept_from_is_said(root: Path) -> None:
    git = repository(root)
    put(root / "AGENTS.md")
    put(root / ".env")
    home = root.parent / "home"
    put(home / ".ssh/id")
    put(home / ".netrc")
    workspace = Workspace(root, homes=(home,))

    def said(output: str, access: GitAccess = "closed", *, needs: frozenset[Needs] = CLOSED, code: int = 1) -> tuple[str, ...]:  # fmt: skip
        ground = workspace.before(access)
        return workspace.after(ground, output, needs=needs, code=code).denied

    written = f"could not write config file {git}/config: Read-only file system"
    assert said(written) == said(written, "data") == (GIT_SAID,)
    assert GIT_SAID not in said(written, "open")
    assert said(written, code=0) == ()
    assert said("Unable to create '.git/index.lock': Read-only file system") == (GIT_DATA_SAID,)
    assert said("AGENTS.md: Read-only file system") == (PROTECTED_SAID.format(name="AGENTS.md"),)
    assert said(".env: Read-only file system") == (HIDDEN_SAID.format(name=".env"),)
    for name in (".ssh", ".netrc"):
        line = f"cat: {home}/{name}: No such file or directory"
        assert said(line) == (MASKED_SAID.format(place=f"~/{name}"),)
    lookup = "curl: (6) Could not resolve host: x"
    assert len(said(lookup)) == 1
    assert said(lookup, needs=frozenset({"network"})) == ()
    workspace.survey.close()


def test_a_folder_of_programs_in_the_workspace_shows_nothing_of_a_home(root: Path) -> None:
    """Commands can make a link of it."""
    home = root.parent / "home"
    put(home / "other/notes")
    (root / "bin").symlink_to(home / "other")
    survey = Survey(bounds(root), homes=(home,), private=PrivateFolder())
    env = {"PATH": f"{root}/bin:/usr/bin", "CARGO_HOME": f"{root}/bin"}
    view = survey.before(env=env, git="closed").view
    assert (view.closed, view.shown, view.links) == ((home,), (), ())


class Unreadable(dict[str, GuardedEntry]):
    """Entries that cannot be looked up."""

    @override
    def get(self, *words: object) -> NoReturn:
        raise OSError(EIO, "broken")


def test_after_a_look_that_failed_nothing_is_contained_any_more(workspace: Workspace) -> None:
    """What the command left would pass for the user's own."""
    ground = workspace.before()
    put(workspace.root / "AGENTS.md")
    with pytest.raises(OSError, match="broken"):
        _ = workspace.after(replace(ground, entries=Unreadable()))
    assert workspace.before().holds.problem == UNSEEN
    _ = workspace.after(workspace.before())
    assert workspace.before().holds.problem == UNSEEN
