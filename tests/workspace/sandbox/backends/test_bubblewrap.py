"""How bubblewrap is started for a command: what it is told, and what it inherits. Nothing is started here."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox import survey
from agent_core.workspace.sandbox.backends import bubblewrap as module
from agent_core.workspace.sandbox.backends.bubblewrap import (
    Bubblewrap,
    SandboxProblem,
    filter_descriptor,
)
from agent_core.workspace.sandbox.backends.seccomp import seccomp_filter
from agent_core.workspace.sandbox.values import Boundaries, Launch, SandboxCapability, SandboxReport

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is for Linux")
NONE: frozenset[Needs] = frozenset()
NETWORK: frozenset[Needs] = frozenset({"network"})
GIT: frozenset[Needs] = frozenset({"gitConfig"})
SOCKETS: frozenset[Needs] = frozenset({"sockets"})
ENV = {"PATH": os.defpath, "LANG": "C", "MY_TOKEN": "x"}
ARGV = ("sh", "-c", "echo $1", "x")


AGREED: frozenset[Needs] = frozenset({"uncontained"})


class Ground:
    """A workspace with a key in it, and beside it what is hidden."""

    def __init__(self, top: Path) -> None:
        self.top, self.root, self.home = top, top / "home/work", top / "home"
        self.root.mkdir(parents=True)
        self.file("home/.netrc")
        self.file("home/.ssh/id")
        self.file("own/auth.json")
        self.file("home/work/AGENTS.md")
        self.file("home/work/.git/config", "[core]\n")
        self.sandboxes: list[Bubblewrap] = []

    def file(self, name: str, text: str = "x") -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def sandbox(self, *, hidden: tuple[Path, ...] = (), userns: bool = True) -> Bubblewrap:
        containing = SandboxCapability(
            level="full", how="bubblewrap 1", program="/opt/bwrap", can_forbid_userns=userns
        )
        boundaries = Boundaries(
            roots=(self.root,), env={}, hidden=hidden, quarantine=self.top / "away"
        )
        made = Bubblewrap(containing, boundaries, homes=(self.home,))
        self.sandboxes.append(made)
        return made

    def launch(self, *, needs: frozenset[Needs] = NONE, sandbox: Bubblewrap | None = None) -> Launch:  # fmt: skip
        sandbox = sandbox or self.sandbox()
        launch = sandbox.wrap(ARGV, cwd=self.root, env=ENV, needs=needs)
        for descriptor in launch.pass_fds:
            assert stat.S_ISREG(os.fstat(descriptor).st_mode)
        launch.started()
        return launch


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(Path(os.path.realpath(tmp_path)))
    yield made
    for one in made.sandboxes:
        one.close()


def spoken(launch: Launch) -> str:
    return " ".join(launch.argv)


def test_the_program_that_was_tried_runs_the_keeper_and_that_the_command(ground: Ground) -> None:
    launch = ground.launch()
    words = launch.argv[launch.argv.index("/opt/bwrap") :]
    assert launch.output_at is not None
    output, key, planned, writable, *command = launch.argv[launch.output_at :]
    assert launch.argv[launch.command_at :] == tuple(command)
    assert key.isdigit()
    assert launch.report_key not in spoken(launch)
    assert (output, tuple(command)) == ("output", ARGV)
    assert planned.splitlines()[0] == str(ground.root)
    assert f"{ground.root}/AGENTS.md" in planned.splitlines()
    assert f"{ground.root}/AGENTS.md" not in writable.splitlines()
    assert {str(ground.root), "/dev/shm", "/var/tmp"} <= set(writable.splitlines())  # noqa: S108 - inside
    shell, option, script, name, *rest = words[words.index("--") + 1 :]
    assert (Path(shell).name, option, name, rest) == (
        "bash",
        "-c",
        "keeper",
        ["output", key, planned, writable, *ARGV],
    )
    assert "ulimit -d " in script
    assert f"--chdir {ground.root} --" in spoken(launch)


def test_a_program_that_is_not_there_starts_nothing(ground: Ground) -> None:
    with pytest.raises(FileNotFoundError, match="none-such"):
        _ = ground.sandbox().wrap(("none-such",), cwd=ground.root, env=ENV, needs=NONE)


def test_secrets_leave_the_environment_and_show_as_empty(ground: Ground) -> None:
    launch = ground.launch(sandbox=ground.sandbox(hidden=(ground.top / "own",)))
    said = spoken(launch)
    assert (launch.env["LANG"], "MY_TOKEN" in launch.env) == ("C", False)
    (empty,) = {one for one in launch.argv if one.endswith("/empty")}
    assert f"--ro-bind {empty} {ground.home}/.netrc" in said
    for folder in (ground.home, ground.top / "own"):
        assert f"--tmpfs {folder}" in said
    # The home is closed: what is not shown of it is not there.
    assert f"--tmpfs {ground.home}/.ssh" not in said


def test_what_was_opened_as_a_workspace_is_not_hidden_from_it(ground: Ground) -> None:
    inner = ground.file("home/work/own/key").parent
    said = spoken(ground.launch(sandbox=ground.sandbox(hidden=(ground.root, inner))))
    assert f"--tmpfs {ground.root} " not in said
    said = spoken(ground.launch(sandbox=ground.sandbox(hidden=(inner,))))
    assert f"--tmpfs {inner} " in said


def test_the_network_and_gits_configuration_are_opened_by_what_was_agreed_to(
    ground: Ground,
) -> None:
    git, rules = (
        f"--ro-bind {ground.root}/.git {ground.root}/.git",
        f"--ro-bind {ground.root}/AGENTS.md",
    )
    closed, network, opened = (spoken(ground.launch(needs=one)) for one in (NONE, NETWORK, GIT))
    assert ("--unshare-net" in closed, git in closed, rules in closed) == (True, True, True)
    assert ("--unshare-net" in network, git in network, rules in network) == (False, True, True)
    assert ("--unshare-net" in opened, git in opened, rules in opened) == (True, False, True)
    assert f"--bind {ground.root}/.git " in opened


def test_with_the_network_names_are_resolved(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    resolver = ground.file("run/resolv.conf")
    monkeypatch.setattr(survey, "RESOLVER", str(resolver))
    monkeypatch.setattr(survey, "OVERLAID", (resolver.parent,))
    for needs, network in ((NONE, False), (NETWORK, True)):
        launch = ground.sandbox().wrap(ARGV, cwd=ground.root, env=ENV, needs=needs)
        assert (f"--ro-bind {resolver} {resolver}" in spoken(launch)) is network
        launch.started()


def test_further_user_namespaces_are_forbidden_where_that_can_be(ground: Ground) -> None:
    assert "--disable-userns" in spoken(ground.launch())
    assert "--disable-userns" not in spoken(ground.launch(sandbox=ground.sandbox(userns=False)))


def test_switches_of_the_kernel_are_closed_to_root_alone(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    said = spoken(ground.launch())
    assert "--ro-bind /proc/sys /proc/sys" in said
    for name in ("irq", "bus", "fs", "acpi", "scsi"):
        assert (f"--tmpfs /proc/{name}" in said) == Path("/proc", name).exists()
    assert ("--ro-bind /proc/sysrq-trigger" in said) == Path("/proc/sysrq-trigger").exists()
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "/proc/" not in spoken(ground.launch()).replace("--proc /proc ", "").partition(" -c ")[0]


@pytest.mark.skipif(
    seccomp_filter(machine=os.uname().machine, internet=True, unix=False) is None,
    reason="no filter here",
)
@pytest.mark.parametrize("needs", [NONE, NETWORK, GIT, SOCKETS, NETWORK | SOCKETS])
def test_the_filter_is_inherited_and_closed_here_once(
    ground: Ground, needs: frozenset[Needs]
) -> None:
    launch = ground.sandbox().wrap(ARGV, cwd=ground.root, env=ENV, needs=needs)
    _, descriptor = launch.pass_fds
    assert f"--seccomp {descriptor} " in spoken(launch)
    content = os.read(descriptor, 1 << 20)
    assert content == seccomp_filter(
        machine=os.uname().machine, internet=True, unix="sockets" in needs
    )
    launch.started()
    with pytest.raises(OSError, match="Bad file descriptor"):
        _ = os.fstat(descriptor)
    launch.started()


@pytest.mark.parametrize("sockets", [True, False])
def test_the_filter_is_the_one_that_was_asked_for(sockets: bool) -> None:
    wanted = seccomp_filter(machine=os.uname().machine, internet=True, unix=sockets)
    opened = filter_descriptor(sockets=sockets)
    assert (opened is None) == (wanted is None)
    if opened is not None:
        assert os.read(opened, 1 << 20) == wanted
        os.close(opened)


def test_a_processor_without_a_filter_has_none(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = os.uname()
    monkeypatch.setattr(
        os, "uname", lambda: os.uname_result((*here[:4], "pdp11"))
    )  # fmt: skip
    launch = ground.launch()
    assert len(launch.pass_fds) == 1
    assert "--seccomp" not in launch.argv


def test_the_aftermath_knows_what_was_there_before(ground: Ground) -> None:
    launch = ground.launch()
    made = ground.file("home/work/CLAUDE.md")
    assert launch.after is not None
    said = "AGENTS.md: Read-only file system"
    after = launch.after(said, 1)
    assert after.quarantined == (made,)
    assert [one.partition(" keeps ")[2][:9] for one in after.denied] == ["AGENTS.md"]
    assert [one.name.rpartition(".")[0] for one in (ground.top / "away").iterdir()] == ["CLAUDE.md"]
    assert launch.after(said, 0) == SandboxReport()


def test_without_a_place_for_it_what_a_command_made_goes_with_the_private_folder(
    ground: Ground,
) -> None:
    boundaries = Boundaries(roots=(ground.root,), env={})
    sandbox = Bubblewrap(
        SandboxCapability(level="full", how="x", program="/x"), boundaries, homes=()
    )
    launch = ground.launch(sandbox=sandbox)
    made = ground.file("home/work/CLAUDE.md")
    assert launch.after is not None
    assert launch.after("", 0).quarantined == (made,)
    private = Path(launch.argv[launch.argv.index("/tmp") - 1])  # noqa: S108 - where it stands inside
    assert [one.name.rpartition(".")[0] for one in (private / "quarantine").iterdir()] == [
        "CLAUDE.md"
    ]
    sandbox.close()
    assert not private.exists()


def test_the_shell_is_looked_for_by_the_system_where_it_is_in_no_usual_place(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "find_shell", lambda: None)
    words = ground.launch().argv
    assert words[words.index("--") + 1] == "bash"


def test_at_the_end_the_private_folder_goes(ground: Ground) -> None:
    sandbox = ground.sandbox()
    launch = ground.launch(sandbox=sandbox)
    private = Path(launch.argv[launch.argv.index("/tmp") - 1])  # noqa: S108 - where it stands inside
    assert private.is_dir()
    assert ground.launch(sandbox=sandbox).argv.count(str(private)) == 2
    sandbox.close()
    assert not private.exists()


# Where not everything can be held


def linked(ground: Ground) -> Path:
    """Make of a repository a link, which cannot be held in its place."""
    (ground.root / ".git").rename(ground.root / "g")
    (ground.root / ".git").symlink_to("g")
    return ground.root / ".git"


def test_a_command_that_was_judged_as_contained_is_refused_when_it_cannot_be(
    ground: Ground,
) -> None:
    sandbox = ground.sandbox()
    assert sandbox.containing.level == "full"
    link = linked(ground)
    with pytest.raises(PermissionError, match=r"cannot be contained: .* is a link.* Run it again"):
        _ = ground.launch(sandbox=sandbox)
    with pytest.raises(PermissionError, match="cannot be contained"):
        _ = ground.launch(sandbox=sandbox)
    found = sandbox.containing
    assert (found.level, str(link) in str(found.why_not_full)) == ("none", True)
    # However often that was read: this one was judged before.
    with pytest.raises(PermissionError, match="cannot be contained"):
        _ = ground.launch(sandbox=sandbox)
    launch = ground.launch(sandbox=sandbox, needs=AGREED)
    assert (launch.argv, launch.after, "MY_TOKEN" in launch.env) == (ARGV, None, False)


def test_a_command_that_was_judged_as_not_contained_is_contained_where_it_can_be(
    ground: Ground,
) -> None:
    assert "/opt/bwrap" in ground.launch(needs=AGREED).argv


def test_when_the_problem_is_gone_commands_are_contained_again(ground: Ground) -> None:
    sandbox = ground.sandbox()
    link = linked(ground)
    with pytest.raises(PermissionError):
        _ = ground.launch(sandbox=sandbox)
    assert sandbox.containing.level == "none"
    link.unlink()
    (ground.root / "g").rename(link)
    assert "/opt/bwrap" in ground.launch(sandbox=sandbox).argv
    assert sandbox.containing.level == "full"
    _ = linked(ground)
    with pytest.raises(PermissionError):
        _ = ground.launch(sandbox=sandbox)


def test_nothing_runs_in_spite_of_a_problem_but_what_was_judged_so() -> None:
    problem = SandboxProblem()
    found = SandboxCapability(level="full", how="bubblewrap 1")
    assert not problem.stands_in_the_way(None, agreed=False)
    assert problem.applied_to(found) is found
    for _ in range(2):
        with pytest.raises(PermissionError, match=r"it is so\. Run it again"):
            _ = problem.stands_in_the_way("it is so", agreed=False)
        assert problem.applied_to(found).why_not_full == (
            "commands cannot be contained in this workspace: it is so"
        )
    assert problem.stands_in_the_way("it is otherwise", agreed=True)
    assert not problem.stands_in_the_way(None, agreed=True)
    assert problem.applied_to(found) is found
