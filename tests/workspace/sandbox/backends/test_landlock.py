"""What Landlock allows and forbids: what is told to the launcher, and what the launcher makes of it."""

import ctypes
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, NoReturn

import pytest

from agent_core.workspace.permissions.call_permission import Needs
from agent_core.workspace.sandbox.backends import landlock as module, landlock_launcher as launcher
from agent_core.workspace.sandbox.backends.keeper import FILE_BYTES
from agent_core.workspace.sandbox.backends.landlock import (
    LAUNCHER,
    PYTHON,
    LandlockSandbox,
    all_but,
    launcher_rules,
    try_landlock,
)
from agent_core.workspace.sandbox.backends.seccomp import closing, memory_file, seccomp_filter
from agent_core.workspace.sandbox.values import Boundaries, Launch, SandboxCapability, SandboxReport

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Landlock is for Linux")
FOUND = SandboxCapability(level="partial", how="Landlock 7", why_not_full="told")
ENV = {"PATH": os.defpath, "LANG": "C", "MY_TOKEN": "x"}
MOST_OF_AN_ARGUMENT = 131_072
NONE: frozenset[Needs] = frozenset()
EVERYTHING = (1 << 16) - 1
MAKE_DEVICES = (1 << 6) | (1 << 11)
RUN, WRITE, READ, LIST, TRUNCATE, CONTROL = 1, 2, 4, 8, 1 << 14, 1 << 15
"""Rights, as the kernel numbers them."""
# Asked of the system: what does not work although it is there must not be passed over.
needed = pytest.mark.skipif(launcher.version() < 1, reason="this system has no Landlock")


def rules(**more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"writable": (), "secret": (), "readable": (), "network": False}
    return json.loads(launcher_rules(**{**given, **more}))


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = Path(os.path.realpath(tmp_path))
    for name in ("inside", "outside", "secret"):
        (top / name).mkdir()
        (top / name / "file").write_text("told\n", encoding="utf-8")
    return top


# What the launcher is told


def test_the_launcher_is_told_what_may_be_written_and_read(top: Path) -> None:
    told = rules(
        writable=(top / "inside",), secret=(top / "secret",), readable=(top / "secret/file",)
    )
    devices = ["null", "zero", "full", "random", "urandom"]
    assert told["write"] == [str(top / "inside"), *(f"/dev/{name}" for name in devices)]
    assert told["file_bytes"] == FILE_BYTES
    assert told["read"][-1] == str(top / "secret/file")
    assert str(top / "secret") not in told["read"]


@pytest.mark.parametrize("network", [True, False])
@pytest.mark.parametrize("sockets", [True, False])
def test_sockets_are_of_the_kinds_that_were_asked_for(network: bool, sockets: bool) -> None:
    told = rules(network=network, sockets=sockets)
    content = seccomp_filter(machine=os.uname().machine, internet=network, unix=sockets)
    assert told["network"] is network
    assert told["seccomp"] == (None if content is None else content.hex())


def test_a_processor_without_a_filter_is_told_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    here = os.uname()
    monkeypatch.setattr(os, "uname", lambda: os.uname_result((*here[:4], "pdp11")))
    assert rules()["seccomp"] is None


def test_everything_but_the_secrets_is_named_and_no_links(top: Path) -> None:
    (top / "link").symlink_to("secret")
    shown = all_but([top / "secret", Path("/")])
    assert {str(top / "inside"), str(top / "outside")} <= set(shown)
    assert not {str(top), str(top / "secret"), str(top / "link"), "/"} & set(shown)
    for parent in top.parents:
        assert str(parent) not in shown
    assert all_but([]) == ["/"]
    assert not {"/", "/dev", "/sys"} & set(rules()["read"])
    assert all_but([top / "none/key"])  # a folder that is not there hides nothing else


def test_no_more_is_named_than_the_launcher_can_open(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SHOWN", 3)
    assert len(all_but([top / "secret"])) == 3


def test_of_too_many_neighbours_those_of_the_most_crowded_folder_are_left_out(
    top: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = len(all_but([top / "secret/file"]))
    for number in range(everything):
        (top / f"outside{number}").mkdir()
    near = top / "secret/near"
    near.write_text("told\n", encoding="utf-8")
    monkeypatch.setattr(module, "MOST_SHOWN", everything + 1)
    shown = all_but([top / "secret/file"])
    assert str(near) in shown
    crowd = [path for path in shown if Path(path).parent == top]
    assert len(shown) == everything + 1
    assert len(crowd) < everything


def test_nothing_inside_of_a_secret_folder_is_named(top: Path) -> None:
    (top / "secret/deep").mkdir()
    (top / "secret/deep/key").write_text("told\n", encoding="utf-8")
    (top / "secret/deep/beside").write_text("told\n", encoding="utf-8")
    shown = all_but([top / "secret", top / "secret/deep/key"])
    assert not [path for path in shown if path.startswith(str(top / "secret"))]


# How a command is started


def launched(top: Path, *, needs: frozenset[Needs] = NONE, **more: Any) -> tuple[LandlockSandbox, Launch, dict[str, Any]]:  # fmt: skip
    boundaries = Boundaries(roots=(top / "inside",), env={}, **more)
    sandbox = LandlockSandbox(FOUND, boundaries, homes=(top,))
    launch = sandbox.wrap(("sh", "-c", "true"), cwd=top / "inside", env=ENV, needs=needs)
    (told,) = launch.pass_fds
    assert launch.argv[len(PYTHON) + 1] == str(told)
    return sandbox, launch, json.loads(launcher.rules_text(str(os.dup(told))))


def test_a_command_is_started_by_the_launcher_without_secrets(top: Path) -> None:
    (top / ".netrc").write_text("x", encoding="utf-8")
    sandbox, launch, told = launched(top, hidden=(top / "secret",), readable=(top / "outside",))
    assert launch.argv[: len(PYTHON) + 1] == (*PYTHON, str(LAUNCHER))
    assert launch.argv[len(PYTHON) + 2 :] == ("sh", "-c", "true")
    private = launch.env["TMPDIR"]
    assert told["write"][:2] == [str(top / "inside"), private]
    assert not {str(top / "secret"), str(top / ".netrc")} & set(told["read"])
    assert told["read"][-1] == str(top / "outside")
    assert (launch.env["LANG"], "MY_TOKEN" in launch.env) == ("C", False)
    assert launch.env["XDG_CACHE_HOME"] == f"{private}/.cache"
    assert launch.env["npm_config_cache"] == f"{private}/.npm"
    assert told["network"] is False
    assert sandbox.containing is FOUND
    sandbox.close()
    assert not Path(private).exists()


def test_what_was_agreed_to_is_open(top: Path) -> None:
    sandbox, _, told = launched(top, needs=frozenset({"network"}))
    assert told["network"] is True
    sandbox.close()


def test_a_program_that_is_not_there_is_named(top: Path) -> None:
    sandbox = LandlockSandbox(FOUND, Boundaries(roots=(top / "inside",), env={}), homes=())
    with pytest.raises(FileNotFoundError, match="none-such"):
        _ = sandbox.wrap(("none-such",), cwd=top, env=ENV, needs=NONE)


@pytest.mark.parametrize("into", ["away", None])
def test_what_a_command_made_is_taken_away(top: Path, into: str | None) -> None:
    place = None if into is None else top / into
    sandbox, launch, _ = launched(top, quarantine=place)
    made = top / "inside/AGENTS.md"
    made.write_text("x", encoding="utf-8")
    assert launch.after is not None
    assert launch.after("", 0) == SandboxReport(quarantined=(made,))
    assert not made.exists()
    (kept,) = (place or Path(launch.env["TMPDIR"], "quarantine")).iterdir()
    assert kept.name.startswith("AGENTS.md.")
    assert kept.read_text("utf-8") == "x"
    sandbox.close()


# Whether it works here


@pytest.mark.parametrize(
    ("said", "version"),
    [
        ((b"7\n", b"in\n"), 7), ((b"1\n", b"in\n"), 1), ((b"0\n", b"in\n"), None), ((b"-1\n", b"in\n"), None),
        ((b"7\n", b"\n"), None), ((b"7\n", b"in in\n"), None), ((b"\n", b"in\n"), None),
    ],
)  # fmt: skip
def test_it_works_where_a_version_is_told_and_a_program_runs_inside(
    monkeypatch: pytest.MonkeyPatch, said: tuple[bytes, bytes], version: int | None
) -> None:
    answers = iter(said)

    def run(argv: list[str], **_more: object) -> subprocess.CompletedProcess[bytes]:
        return subprocess.CompletedProcess(argv, 0, next(answers), b"")

    monkeypatch.setattr(subprocess, "run", run)
    assert try_landlock() == version


@pytest.mark.parametrize("error", [OSError("no"), subprocess.TimeoutExpired("x", 1)])
def test_what_cannot_be_tried_does_not_work(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def run(*_words: object, **_more: object) -> NoReturn:
        raise error

    monkeypatch.setattr(subprocess, "run", run)
    assert try_landlock() is None


# What the launcher makes of it


class Kernel:
    """Answers system calls as a version of Landlock would, and keeps what was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, version: int) -> None:
        self.version = version
        self.made: tuple[bytes, int] = (b"", 0)
        self.allowed: dict[str, int] = {}
        self.restricted = 0
        self.opened = os.open("/dev/null", os.O_RDONLY)
        monkeypatch.setattr(launcher, "syscall", self.call)

    def call(self, number: int, *words: Any) -> int:
        match number:
            case launcher.CREATE_RULESET if words[0] is None:
                return self.version
            case launcher.CREATE_RULESET:
                self.made = (words[0], words[1].value)
                return self.opened
            case launcher.ADD_RULE:
                assert (words[0].value, words[1].value) == (self.opened, launcher.BENEATH)
                rights = int.from_bytes(words[2][:8], sys.byteorder)
                descriptor = int.from_bytes(words[2][8:12], sys.byteorder)
                self.allowed[os.readlink(f"/proc/self/fd/{descriptor}")] = rights  # noqa: PTH115 - of the kernel
                return 0
            case launcher.RESTRICT_SELF:
                assert words[0].value == self.opened
                self.restricted += 1
                return 0
            case _:
                raise AssertionError(number)


@pytest.mark.parametrize(
    ("version", "asked"),
    [
        (1, [(1 << 13) - 1]),
        (2, [(1 << 14) - 1]),
        (3, [(1 << 15) - 1]),
        (4, [(1 << 15) - 1, 3]),
        (5, [EVERYTHING, 3]),
        (6, [EVERYTHING, 3, 3]),
    ],
)
def test_everything_that_a_version_knows_is_taken_away(
    monkeypatch: pytest.MonkeyPatch, top: Path, version: int, asked: list[int]
) -> None:
    kernel = Kernel(monkeypatch, version)
    told: dict[str, object] = {"read": [str(top / "outside"), str(top / "gone")], "write": [str(top / "inside"), "/dev/null"], "network": False}  # fmt: skip
    launcher.landlock(told)
    given, size = kernel.made
    assert size == len(given)
    assert struct.unpack(f"={len(asked)}Q", given) == tuple(asked)
    rights = asked[0]
    assert kernel.allowed == {
        "/": LIST,
        str(top / "outside"): RUN | READ | LIST,
        str(top / "inside"): rights & ~MAKE_DEVICES,
        "/dev/null": rights & (RUN | WRITE | READ | TRUNCATE | CONTROL),
    }
    assert kernel.restricted == 1
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(kernel.opened)


def test_the_network_is_left_alone_when_it_was_agreed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = Kernel(monkeypatch, 6)
    launcher.landlock({"read": [], "write": [], "network": True})
    assert int.from_bytes(kernel.made[0][8:16], sys.byteorder) == 0


@pytest.mark.parametrize("version", [0, -1])
def test_without_landlock_nothing_is_started(
    monkeypatch: pytest.MonkeyPatch, version: int, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = Kernel(monkeypatch, version)
    monkeypatch.setattr(launcher, "prctl", lambda *_words: 0)
    monkeypatch.setattr(resource, "setrlimit", lambda *_words: None)
    with pytest.raises(SystemExit) as ended:
        launcher.main([launcher_rules(writable=(), secret=(), readable=(), network=False), "true"])
    assert ended.value.code == 125
    assert capsys.readouterr().err == "containment failed: [Errno 0] there is no Landlock\n"
    os.close(kernel.opened)


def test_its_version_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = Kernel(monkeypatch, 5)
    launcher.main(["--version"])
    assert capsys.readouterr().out == "5\n"
    os.close(kernel.opened)


@pytest.mark.parametrize(("hard", "set_to"), [(-1, 1000), (500, 500), (2000, 1000)])
def test_limits_are_set_and_rights_given_up_first(
    monkeypatch: pytest.MonkeyPatch, hard: int, set_to: int
) -> None:
    done: list[object] = []
    limits = resource
    monkeypatch.setattr(limits, "getrlimit", lambda _which: (0, hard))
    monkeypatch.setattr(limits, "setrlimit", lambda which, pair: done.append((which, pair)))
    monkeypatch.setattr(launcher, "prctl", lambda *words: done.append(words) or 0)
    monkeypatch.setattr(launcher, "landlock", lambda _rules: done.append("landlock"))
    monkeypatch.setattr(launcher, "drop_capabilities", lambda: done.append("capabilities"))
    launcher.restrict({"file_bytes": 1000, "seccomp": None})
    assert done == [
        (limits.RLIMIT_CORE, (0, 0)),
        (limits.RLIMIT_FSIZE, (set_to, set_to)),
        (38, 1, 0, 0, 0),
        "landlock",
        "capabilities",
    ]


def test_what_the_system_refuses_is_raised_in_its_words(monkeypatch: pytest.MonkeyPatch) -> None:
    assert launcher.check(0) == 0
    assert launcher.check(7) == 7
    monkeypatch.setattr(ctypes, "get_errno", lambda: 1)
    with pytest.raises(PermissionError, match="Operation not permitted"):
        _ = launcher.check(-1)
    assert launcher.listed("no list") == []
    assert launcher.listed([1, "a"]) == ["1", "a"]


def test_a_launcher_that_fails_does_not_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LAUNCHER", Path("/none/such.py"))
    assert try_landlock() is None


@needed
def test_what_the_system_has_works() -> None:
    assert try_landlock() == launcher.version()


@needed
@pytest.mark.parametrize(
    ("command", "works"),
    [
        ("echo x > inside/new && mkdir inside/d && mv inside/new inside/d", True),
        ("cat outside/file && ls .", True),
        ("echo x > outside/new", False),
        ("cat secret/file", False),
        ("mknod inside/pipe p", True),
        ("mknod inside/disk b 7 0", False),
        ("ulimit -c 1", False),
        ("exec 3<>/dev/tcp/127.0.0.1/9", False),
        ("grep -q '^NoNewPrivs:.*1' /proc/self/status", True),
        ("grep -q '^Seccomp:.*2' /proc/self/status", True),
        ("echo x > /dev/shm/tiller-made", False),
        ("cat /dev/shm/tiller-*", False),
        ("head -c 1 /dev/kmsg", False),
        ("cat /sys/kernel/uevent_seqnum", False),
        ("cat /sys/devices/system/cpu/online && nproc && head -c 1 /dev/urandom", True),
        ("head -c 1 /proc/$PPID/environ", False),
        (
            "! grep -E '^Cap(Inh|Prm|Eff|Bnd|Amb):' /proc/self/status | grep -v 0000000000000000",
            True,
        ),
    ],
)
def test_a_command_has_what_it_was_given(top: Path, command: str, works: bool) -> None:
    for number in range(1_500):
        # More neighbours than fit into one argument of a program.
        (top / f"{number:04}{'x' * 96}").mkdir()
    told = launcher_rules(
        writable=(top / "inside",), secret=(top / "secret",), readable=(), network=False
    )
    assert len(told) > MOST_OF_AN_ARGUMENT
    opened = memory_file("rules", told.encode())
    shared = Path(tempfile.mkstemp(dir="/dev/shm", prefix="tiller-")[1])
    ended = subprocess.run(
        [*PYTHON, str(LAUNCHER), str(opened), "bash", "-c", command],
        cwd=top,
        env={"PATH": os.defpath},
        capture_output=True,
        check=False,
        pass_fds=(opened,),
    )
    closing(opened)()
    shared.unlink()
    assert (ended.returncode == 0) == works, ended.stderr.decode()
