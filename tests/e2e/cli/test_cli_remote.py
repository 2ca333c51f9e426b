"""`tiller run` in a workspace behind SSH: files and commands are there, the session is here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.clients.server import Ground, calls, says
from tests.support.programs.terminal import tiller
from tests.support.remote.containers import INNER, container
from tests.support.remote.ssh_server import HOST, NO_SSHD, SSHD, ssh_server
from tests.support.session.session_files import messages, read_entries

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(120)]

LOOK = calls(("bash", {"command": "pwd; cat a.txt"}))
EDIT = calls(("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]}))


@pytest.fixture
def there(ground: Ground, tmp_path: Path) -> Iterator[Path]:
    """Run a server whose configuration the program `ssh` of the ground uses; return a workspace behind it."""
    if SSHD is None:
        pytest.skip(NO_SSHD)
    folder = tmp_path.resolve() / "sshd"
    folder.mkdir()
    root = tmp_path.resolve() / "there"
    root.mkdir()
    _ = (root / "a.txt").write_text("one\n")
    _ = (root / "AGENTS.md").write_text("Speak of herons.\n")
    with ssh_server(folder) as server:
        program = folder / "bin" / "ssh"
        program.parent.mkdir()
        _ = program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh {" ".join(server.options)} "$@"\n')
        program.chmod(0o755)
        yield root


def path_of(ground: Ground, there: Path) -> dict[str, str]:
    """Return the variable by which the program `ssh` of the test is found."""
    return {"PATH": f"{there.parent / 'sshd' / 'bin'}:{ground.env['PATH']}"}


def results(ground: Ground) -> list[tuple[str, bool]]:
    """Return the texts of the tool results of the newest session, and whether each is an error."""
    newest = max(ground.sessions(), key=lambda path: path.name)
    found = messages(read_entries(newest), "toolResult")
    return [
        ("".join(part.get("text", "") for part in one["content"]), one["isError"]) for one in found
    ]


def test_files_and_commands_are_those_of_the_host(ground: Ground, there: Path) -> None:
    ground.provider.script([LOOK, EDIT, says("Done."), says("Again.")])
    where = ("-C", f"ssh:{HOST}:{there}")
    env = path_of(ground, there)
    ran = tiller(ground, "run", *where, "--permission", "yolo", "--trust", "Go", env=env)
    assert (ran.code, ran.out) == (0, "Done.\n"), ran.err
    assert f"commands run on ssh:{HOST}:{there}, where Tiller does not contain them" in ran.err
    (looked, _), (edited, is_error) = results(ground)
    assert looked == f"{there}\none\n"
    assert not is_error, edited
    assert (there / "a.txt").read_text() == "two\n"
    assert "Speak of herons." in str(ground.provider.requests[0]["body"])
    again = tiller(ground, "run", *where, "--continue", "And?", env=env)
    assert (again.code, again.out) == (0, "Again.\n"), again.err
    assert "Speak of herons." not in str(ground.provider.requests[-1]["body"])
    (session,) = (path.stem.rpartition("_")[2] for path in ground.sessions())
    here = tiller(ground, "run", "-r", session, "And?", env=env)
    assert here.code == 2
    assert f"the session works in a remote workspace; add -C ssh:{HOST}:{there}\n" in here.err


def test_files_and_commands_are_those_of_the_container(ground: Ground, tmp_path: Path) -> None:
    ground.provider.script([LOOK, EDIT, says("Done.")])
    with container(tmp_path.resolve(), "machine") as box:
        program = tmp_path / "bin" / "docker"
        program.parent.mkdir()
        flags = " ".join(box.options)
        _ = program.write_text(f'#!/bin/sh\nPATH={box.path} exec podman {flags} "$@"\n')
        program.chmod(0o755)
        _ = (box.shared / "a.txt").write_text("one\n")
        env = {"PATH": f"{program.parent}:{ground.env['PATH']}"}
        where = ("-C", f"docker:{box.name}:{INNER}", "--permission", "yolo")
        ran = tiller(ground, "run", *where, "Go", env=env)
        assert (ran.code, ran.out) == (0, "Done.\n"), ran.err
        (looked, _), (edited, is_error) = results(ground)
        assert looked == f"{INNER}\none\n"
        assert not is_error, edited
        assert (box.shared / "a.txt").read_text() == "two\n"


def test_a_command_there_is_refused_where_nobody_can_be_asked(ground: Ground, there: Path) -> None:
    ground.provider.script([LOOK, says("Refused.")])
    where = ("-C", f"ssh:{HOST}:{there}", "--permission", "auto")
    ran = tiller(ground, "run", *where, "Go", env=path_of(ground, there))
    assert (ran.code, ran.out) == (0, "Refused.\n"), ran.err
    ((refused, is_error),) = results(ground)
    assert is_error, refused
    assert "nobody can be asked here" in refused


def test_the_setting_of_the_user_names_the_workspace_and_a_project_cannot(
    ground: Ground, there: Path
) -> None:
    ground.provider.script([LOOK, says("There."), LOOK, says("Here.")])
    env = path_of(ground, there)
    ground.configure(workspace=f"ssh:{HOST}:{there}")
    ran = tiller(ground, "run", "--permission", "yolo", "Go", env=env)
    assert ran.code == 0, ran.err
    assert results(ground)[0][0].startswith(f"{there}\n")
    ground.configure()
    _ = ground.file(".tiller/settings.json", f'{{"workspace": "ssh:{HOST}:{there}"}}')
    ran = tiller(ground, "run", "--permission", "yolo", "Go", env=env)
    assert ran.code == 0, ran.err
    assert '"workspace"' in ran.err
    assert results(ground)[0][0].startswith(f"{ground.root}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("-C", "ssh:host"), "'ssh:host' names no host and path; write ssh:HOST:/path, "),
        (("-C", "ssh:-oProxyCommand=x:/a"), "names no host and path"),
        (("-C", "docker:"), "names no host and path"),
        (("-C", "ssh:host:relative"), "the path in 'ssh:host:relative' must begin with / or ~/"),
        (("-C", "ssh:host:/a", "--worktree"), "--worktree needs a workspace on this machine"),
        (("-C", "ssh:host:/a", "--add-dir", "/"), "--add-dir needs a workspace on this machine"),
    ],
)
def test_what_is_wrong_with_an_address_is_one_sentence(
    ground: Ground, arguments: tuple[str, ...], message: str
) -> None:
    ran = tiller(ground, "run", *arguments, "Go")
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1


def test_a_host_that_does_not_answer_is_named(ground: Ground, there: Path) -> None:
    ran = tiller(ground, "run", "-C", f"ssh:{HOST}:{there}/none", "Go", env=path_of(ground, there))
    assert f"cannot be found on ssh:{HOST}; name one that exists there" in ran.err
    ran = tiller(ground, "run", "-C", "ssh:tl-none.invalid:/x", "Go", env=path_of(ground, there))
    assert ran.code != 0
    assert "ssh:tl-none.invalid cannot be reached: " in ran.err
    assert "check with `ssh tl-none.invalid true` in a terminal" in ran.err
