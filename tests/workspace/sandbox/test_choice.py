"""Which containment a workspace gets: never a lower rung without a reason."""

import os
import pwd
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from anyio import to_thread

from agent_core.workspace.permissions.call_permission import SandboxLevel
from agent_core.workspace.processes.disk_processes import DiskProcesses
from agent_core.workspace.sandbox import (
    SWITCHED_OFF,
    Boundaries,
    Prober,
    SandboxCapability,
    probe,
    sandbox_for,
)
from agent_core.workspace.sandbox.backends.landlock import LAUNCHER, PYTHON, launcher_rules
from agent_core.workspace.sandbox.backends.seatbelt import seatbelt_profile
from agent_core.workspace.sandbox.backends.seccomp import closing, memory_file
from agent_core.workspace.sandbox.backends.uncontained import Uncontained
from agent_core.workspace.sandbox.selection import (
    find_program,
    homes_of,
    try_bubblewrap,
    why_uncontainable,
)
from tests.support.workspace.contained import require_full

HOME = Path("/home/me")
HOME_OF_ROOT = Path("/") / "root"
FULL = SandboxCapability(level="full", how="bubblewrap 1.0", program="/usr/bin/bwrap")


@pytest.mark.parametrize(
    "root",
    ["/", *(f"/{one}" for one in ("home", "home/me", "tmp", "etc", "usr", "var", "root", "proc/1/root", "dev/shm/x", "sys/fs", "opt"))],
)  # fmt: skip
def test_a_workspace_around_everything_is_not_laid_open(root: str) -> None:
    why = why_uncontainable((Path("/srv/p"), Path(root)), homes=(HOME,))
    assert why is not None
    assert root in why
    sandbox = sandbox_for(
        FULL, Boundaries(roots=(Path(root),), env={"HOME": str(HOME), "PATH": "/bin"})
    )
    assert sandbox.containing.level == "none"
    assert sandbox.containing.why_not_full is not None


@pytest.mark.parametrize(
    "name", ["bin", "boot", "etc", "home", "lib", "opt", "root", "run", "sbin", "tmp", "usr", "var"]
)
def test_a_folder_of_the_system_is_none_of_a_project(name: str) -> None:
    said = why_uncontainable((Path("/", name),), homes=())
    assert said is not None
    assert said.startswith(f"the workspace /{name} is no project's own folder, and all of it would")


def test_what_lies_in_a_workspace_that_is_too_large_is_named() -> None:
    said = why_uncontainable((Path("/data"),), homes=(Path("/data/people/me"),))
    assert said is not None
    assert said.startswith("the workspace /data has /data/people/me in it, and all of it would")
    said = why_uncontainable((Path("/proc/1"),), homes=())
    assert said is not None
    assert said.startswith("the workspace /proc/1 belongs to the system; open a folder")


def test_homes_are_the_one_that_was_named_and_the_users_own(tmp_path: Path) -> None:
    own = Path(pwd.getpwuid(os.geteuid()).pw_dir).resolve()
    (tmp_path / "link").symlink_to(tmp_path)
    assert homes_of({"HOME": str(tmp_path / "link")}) == (tmp_path.resolve(), own)
    for name in ("", "relative", "/", str(own)):
        assert homes_of({"HOME": name}) == (own,)
    assert homes_of({}) == (own,)


def test_a_user_without_an_entry_has_the_home_that_was_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4_000_000_001)
    assert homes_of({"HOME": str(tmp_path)}) == (tmp_path.resolve(),)
    assert homes_of({}) == ()


def test_without_containment_temporary_files_stay_where_the_user_has_them() -> None:
    env = {"TMPDIR": "/x", "LANG": "C", "MY_TOKEN": "secret", "LD_PRELOAD": "y"}
    for sandbox in (Uncontained(), Uncontained(FULL)):
        launch = sandbox.wrap(("ls",), cwd=Path("/"), env=env, needs=frozenset())
        assert (launch.argv, dict(launch.env)) == (("ls",), {"TMPDIR": "/x", "LANG": "C"})
        assert "TMPDIR" not in sandbox.wrap(("ls",), cwd=Path("/"), env={}, needs=frozenset()).env
        sandbox.close()
    assert Uncontained().containing is SWITCHED_OFF


@pytest.mark.parametrize("root", ["/home/me/p", "/srv/p", "/data/p", f"{HOME_OF_ROOT}/p"])
def test_a_folder_of_a_project_is_contained(root: str) -> None:
    assert why_uncontainable((Path(root),), homes=(HOME, HOME_OF_ROOT)) is None


@pytest.mark.parametrize(
    ("level", "how"),
    [("full", "bubblewrap 1.0"), ("partial", "Landlock 7"), ("partial", "sandbox-exec"), ("none", "nothing")],
)  # fmt: skip
def test_what_was_found_is_what_is_used(tmp_path: Path, level: SandboxLevel, how: str) -> None:
    found = SandboxCapability(
        level=level, how=how, why_not_full=None if level == "full" else "because"
    )
    sandbox = sandbox_for(found, Boundaries(roots=(tmp_path,), env={}))
    assert (sandbox.containing.level, sandbox.containing.how) == (level, how)


def test_what_the_settings_list_passes_without_containment_too(tmp_path: Path) -> None:
    boundaries = Boundaries(roots=(tmp_path,), env={}, passed_variables=("MY_FLAG", "APP_*"))
    env = {"MY_FLAG": "1", "APP_PORT": "2", "APP_TOKEN": "3", "OTHER": "4"}
    for root in (tmp_path, Path("/")):
        sandbox = sandbox_for(SWITCHED_OFF, replace(boundaries, roots=(root,)))
        launch = sandbox.wrap(("ls",), cwd=root, env=env, needs=frozenset())
        assert launch.env == {"MY_FLAG": "1", "APP_PORT": "2"}


async def test_switched_off_everything_works_without_secrets(tmp_path: Path) -> None:
    boundaries = Boundaries(roots=(tmp_path,), env={})
    sandbox = await to_thread.run_sync(sandbox_for, SWITCHED_OFF, boundaries)
    assert (sandbox.containing.level, "off" in str(sandbox.containing.why_not_full)) == (
        "none",
        True,
    )
    process = await DiskProcesses(sandbox=sandbox).start(
        ("bash", "-c", "echo $TZ$MY_TOKEN$PLAIN"),
        cwd=tmp_path,
        env={"PATH": os.defpath, "TZ": "seen", "PLAIN": "x", "MY_TOKEN": "secret"},
    )
    assert await process.read() == b"seen\n"
    await process.end(grace_s=0.1)


def test_it_is_found_out_once() -> None:
    known = SandboxCapability(level="none", how="nothing", why_not_full="told")
    assert Prober(known).containing() is known
    prober = Prober()
    assert prober.containing() is prober.containing()


@pytest.mark.skipif(sys.platform != "linux", reason="for Linux")
def test_what_does_not_contain_is_not_believed(tmp_path: Path) -> None:
    """A program that only starts the command is told from one that contains it."""
    liar = tmp_path / "bwrap"
    liar.write_text(
        '#!/bin/bash\n[ "$1" = --version ] && echo "bubblewrap 9.9" && exit\n'
        'while [ "$1" != -- ]; do shift; done; shift; exec "$@"\n'
    )
    liar.chmod(0o755)
    wrong = try_bubblewrap(str(liar))
    assert isinstance(wrong, str)
    assert "it can write outside" in wrong
    assert "system calls are not filtered" in wrong


@pytest.mark.skipif(sys.platform != "linux", reason="for Linux")
def test_what_fails_says_why(tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(
        '#!/bin/bash\n[ "$1" = --version ] && echo "bubblewrap 0.8.0" && exit\n'
        'echo "bwrap: No permissions to create a new namespace" >&2; exit 1\n'
    )
    broken.chmod(0o755)
    assert try_bubblewrap(str(broken)) == "bwrap: No permissions to create a new namespace"
    mute = tmp_path / "mute"
    mute.write_text("#!/bin/bash\n")
    mute.chmod(0o755)
    assert try_bubblewrap(str(mute)) == "it does not say its version"
    assert try_bubblewrap(str(tmp_path / "gone")) == "it does not say its version"


def test_only_programs_of_the_system_are_trusted() -> None:
    found = find_program("sh")
    assert found is not None
    assert not Path(found).stat().st_mode & stat.S_IWOTH
    assert find_program("no-such-program") is None


def test_this_machine_says_what_it_has() -> None:
    found = probe()
    assert (found.level == "full") == (found.why_not_full is None)
    assert found.how


# The rung below


@pytest.mark.skipif(sys.platform != "linux", reason="for Linux")
@pytest.mark.parametrize(
    ("command", "works"),
    [
        ("echo x > inside/new", True),
        ("cat /etc/hostname", True),
        ("ls / > /dev/null", True),
        ("python3 -c 'import os, socket; socket.socketpair()'", True),
        ("echo x > outside/new", False),
        ("rm outside/file", False),
        ("mv outside/file inside/file", False),
        ("cat secret/key", False),
        ("python3 -c 'import socket; socket.socket()'", False),
        ("python3 -c 'import socket; socket.socket(2, 2)'", False),
        ("python3 -c 'import socket; socket.socket(socket.AF_UNIX)'", False),
        ("unshare -U true", False),
        ("kill -0 $OUTER", False),
    ],
)
def test_landlock_holds_what_it_can(tmp_path: Path, command: str, works: bool) -> None:
    top = tmp_path.resolve()
    for name in ("inside", "outside", "secret"):
        (top / name).mkdir()
    (top / "outside/file").write_text("x")
    (top / "secret/key").write_text("x")
    rules = launcher_rules(
        writable=(top / "inside",), secret=(top / "secret",), readable=(), network=False
    )
    told = memory_file("rules", rules.encode())
    ended = subprocess.run(
        [*PYTHON, str(LAUNCHER), str(told), "bash", "-c", command],
        cwd=top,
        env={"PATH": os.defpath, "OUTER": str(os.getpid())},
        capture_output=True,
        check=False,
        pass_fds=(told,),
    )
    closing(told)()
    if b"containment failed" in ended.stderr:
        pytest.skip(f"no Landlock here: {ended.stderr.decode()}")
    assert (ended.returncode == 0) == works, ended.stderr.decode()


async def test_a_workspace_is_worked_in_under_landlock(tmp_path: Path) -> None:
    root = Path(os.path.realpath(tmp_path))  # noqa: ASYNC240 - nothing else runs here
    if (await to_thread.run_sync(probe)).level == "none":
        pytest.skip("this machine has neither bubblewrap nor Landlock")
    found = SandboxCapability(level="partial", how="Landlock 7", why_not_full="told")
    sandbox = await to_thread.run_sync(sandbox_for, found, Boundaries(roots=(root,), env={}))
    process = await DiskProcesses(sandbox=sandbox).start(
        (
            "bash",
            "-c",
            "echo a > $TMPDIR/x && cat $TMPDIR/x > here; echo x > CLAUDE.md; cat here; kill -9 $$",
        ),
        cwd=root,
        env={"PATH": os.defpath},
    )
    assert await process.read() == b"a\n"
    assert (await process.wait()).signal == 9
    killed = await process.end(grace_s=0.1)
    assert killed.quarantined == (root / "CLAUDE.md",)
    await to_thread.run_sync(sandbox.close)


def test_the_profile_for_macos() -> None:
    profile = seatbelt_profile(
        writable=(Path("/p"),),
        guarded=(Path("/p/.git/config"),),
        secret=(Path('/u/."ssh'),),
        readable=(Path("/u/out"),),
        network=False,
    )
    assert profile.splitlines()[1] == "(deny default)"
    assert profile.splitlines()[-6:] == [
        '(allow file-write* (subpath "/p"))',
        '(deny file-read* file-write* (subpath "/u/.\\"ssh"))',
        '(allow file-read* (subpath "/u/out"))',
        '(deny file-write* (subpath "/p/.git/config"))',
        '(deny file-write-unlink (literal "/p/.git"))',
        "(deny network*)",
    ]


@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("sockets", [True, False])
def test_the_profile_for_macos_gives_the_network_and_sockets_apart(
    network: bool, sockets: bool
) -> None:
    profile = seatbelt_profile(
        writable=(), guarded=(), secret=(), readable=(), network=network, sockets=sockets
    )
    _, _, allowed = profile.partition("(deny network*)")
    assert ('(remote ip "*:*")' in allowed) is network
    assert ('(allow network* (subpath "/"))' in allowed) is sockets


def test_the_machine_of_a_campaign_has_full_containment() -> None:
    """Skips elsewhere with the reason, so that a run says what it did not try."""
    assert require_full().level == "full"
