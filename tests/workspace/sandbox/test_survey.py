"""What is looked at before a command, and what is done and said after it."""

import os
import subprocess
from pathlib import Path

import pytest

from agent_core.workspace.permission import Needs
from agent_core.workspace.sandbox import survey as module
from agent_core.workspace.sandbox.denials import GIT_SAID, MASKED_SAID, PROTECTED_SAID
from agent_core.workspace.sandbox.survey import (
    MOST_BINDS,
    Ground,
    aftermath,
    find_program,
    inner_environment,
    shown_again,
    survey,
)
from agent_core.workspace.sandbox.values import Aftermath, Boundaries

CLOSED: frozenset[Needs] = frozenset()
OPEN: frozenset[Needs] = frozenset({"gitConfig"})


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


def looked(root: Path, *, git_is_open: bool = False, homes: tuple[Path, ...] = ()) -> Ground:
    return survey(bounds(root), homes=homes, env={}, git_is_open=git_is_open)


# Before


def test_repositories_of_the_root_and_of_its_folders_are_found(root: Path) -> None:
    own, inner = repository(root), repository(root / "inner")
    repository(root / "deep" / "er")
    (root / "linked").symlink_to("inner")
    (root / "other").mkdir()
    (root / "other" / ".git").symlink_to(inner)
    assert [one.path for one in looked(root).git] == [own, inner]
    assert looked(root / "none").git == ()


def test_only_so_many_folders_are_looked_at_for_repositories(root: Path) -> None:
    for number in range(MOST_BINDS + 4):
        (root / f"d{number}" / ".git").mkdir(parents=True)
    found = looked(root)
    assert len(found.git) == MOST_BINDS


def test_protected_names_are_guarded_and_what_a_link_leads_to_inside(root: Path) -> None:
    plain, real = put(root / "AGENTS.md"), put(root / "docs/words.md")
    (root / "CLAUDE.md").symlink_to("docs/words.md")
    put(root.parent / "outside.md")
    (root / ".mcp.json").symlink_to("../outside.md")
    (root / ".envrc").symlink_to("gone")
    assert looked(root).guarded == (plain, real)


def test_gits_configuration_is_guarded_unless_it_may_be_changed(root: Path) -> None:
    git = repository(root)
    (git / "commondir").symlink_to("nowhere")
    rules = put(root / "AGENTS.md")
    closed = looked(root).guarded
    assert {git / "config", git / "hooks", rules} <= set(closed)
    assert git / "commondir" not in closed  # a link cannot be mounted on; a new one is taken away
    assert closed == tuple(sorted(closed))
    assert looked(root, git_is_open=True).guarded == (rules,)


def test_no_more_is_guarded_than_can_be_mounted(root: Path) -> None:
    for number in range(MOST_BINDS + 4):
        put(root / f"{number}.code-workspace")
    assert len(looked(root).guarded) == MOST_BINDS


def test_keys_are_looked_for_where_both_environments_say(root: Path) -> None:
    first, second = put(root.parent / "a/key"), put(root.parent / "b/key")
    boundaries = Boundaries(roots=(root,), env={"KUBECONFIG": str(first)}, hidden=(second.parent,))
    home = root.parent / "home"
    put(home / ".netrc")
    found = survey(boundaries, homes=(home,), env={"NETRC": str(second)}, git_is_open=False)
    assert first in found.secrets.files
    assert home / ".netrc" in found.secrets.files
    assert second.parent in found.secrets.folders
    assert found.home == home
    assert looked(root).home == Path("/")


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


def test_what_a_command_made_is_taken_away_and_told(root: Path) -> None:
    git = repository(root)
    before = looked(root)
    made, settings = put(root / "AGENTS.md"), put(git / "config.worktree", "")

    def after(needs: frozenset[Needs], *, output: str = "", exit_code: int | None = 0) -> Aftermath:
        into = root.parent / "away"
        return aftermath(
            bounds(root), before, needs=needs, into=into, output=output, exit_code=exit_code
        )

    assert after(OPEN).quarantined == (made,)
    assert settings.exists()
    put(made)
    assert after(CLOSED).quarantined == (settings, made)
    assert not made.exists()
    assert after(CLOSED).quarantined == ()


def test_what_a_command_was_kept_from_is_said(root: Path) -> None:
    git = repository(root)
    put(root / "AGENTS.md")
    home = root.parent / "home"
    put(home / ".ssh/id")
    put(home / ".netrc")
    before = looked(root, homes=(home,))
    boundaries = bounds(root)

    def said(output: str, needs: frozenset[Needs] = CLOSED, code: int = 1) -> tuple[str, ...]:
        into = root.parent / "away"
        return aftermath(
            boundaries, before, needs=needs, into=into, output=output, exit_code=code
        ).denied

    written = f"could not write config file {git}/config: Read-only file system"
    assert said(written) == (GIT_SAID,)
    assert GIT_SAID not in said(written, OPEN)
    assert said(written, code=0) == ()
    assert said("AGENTS.md: Read-only file system") == (PROTECTED_SAID.format(name="AGENTS.md"),)
    # What lies in the git folder is told of as git's own, not by its name.
    assert said("hooks: Read-only file system", OPEN) != (PROTECTED_SAID.format(name="hooks"),)
    for name in (".ssh", ".netrc"):
        line = f"cat: {home}/{name}: No such file or directory"
        assert said(line) == (MASKED_SAID.format(place=f"~/{name}"),)
    lookup = "curl: (6) Could not resolve host: x"
    assert len(said(lookup)) == 1
    assert said(lookup, frozenset({"network"})) == ()
