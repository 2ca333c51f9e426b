"""What the keeper of a contained command reports."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.backends.keeper import (
    EXCHANGED,
    EXCHANGED_SAID,
    KeeperReport,
    find_shell,
    keeper_script,
    lacks_mounts,
    limits_processes,
    memory_bytes,
    order_of,
    planned_mounts,
    read_report,
)
from agent_core.workspace.sandbox.backends.seccomp import memory_file


@pytest.mark.parametrize(
    ("said", "report"),
    [
        ("key 0 2\n", KeeperReport(exit_code=0, signal=None, processes=2)),
        ("key 7 3\n", KeeperReport(exit_code=7, signal=None, processes=3)),
        ("key 137 2\n", KeeperReport(exit_code=137, signal=None, processes=2)),
        (
            "keeper: line 1: 5 Killed (exec)\nkey 137 2\n",
            KeeperReport(exit_code=None, signal=9, processes=2),
        ),
        ("key 143 2\n", KeeperReport(exit_code=143, signal=None, processes=2)),
        ("x Terminated\nkey 143 12\n", KeeperReport(exit_code=None, signal=15, processes=12)),
        ("key 141 2\n", KeeperReport(exit_code=None, signal=13, processes=2)),
        ("key 130 2\n", KeeperReport(exit_code=None, signal=2, processes=2)),
        ("no such thing\nkey 127 2\n", KeeperReport(exit_code=127, signal=None, processes=2)),
        ("said x\nkey 128 2\n", KeeperReport(exit_code=128, signal=None, processes=2)),
        ("said x\nkey 129 2\n", KeeperReport(exit_code=None, signal=1, processes=2)),
        ("", None),
        ("0 2\n", None),
        ("other 0 2\n", None),
        ("0 2\nkey 3 2\n", KeeperReport(exit_code=3, signal=None, processes=2)),
        ("key 0 2", None),
        ("bwrap: cannot\n", None),
        ("xkey 0 2\n", None),
        ("key 9999 2\n", None),
    ],
)
def test_a_report_is_read(said: str, report: KeeperReport | None) -> None:
    assert read_report(said, key="key") == report


def test_two_processes_are_the_keeper_and_its_init() -> None:
    assert KeeperReport(exit_code=0, signal=None, processes=2).was_alone
    assert not KeeperReport(exit_code=0, signal=None, processes=3).was_alone


def test_limits_are_set_where_they_count() -> None:
    plain = keeper_script(memory_bytes=None, limits_processes=False)
    assert "ulimit -c 0" in plain
    assert "ulimit -f 8388608" in plain
    assert "ulimit -u" not in plain
    assert "ulimit -d" not in plain
    whole = keeper_script(memory_bytes=4096, limits_processes=True)
    assert "ulimit -d 4 " in whole
    assert "ulimit -u 2048 " in whole


@pytest.mark.parametrize(
    ("release", "counts"),
    [("5.13.19-x", False), ("5.14", True), ("5.14.0-1", True), ("6.0", True), ("4.19.1", False), ("6.x", True)],
)  # fmt: skip
def test_processes_are_limited_where_only_those_of_the_command_count(
    release: str, counts: bool
) -> None:
    assert limits_processes(release) is counts


def test_the_machine_has_a_shell_and_memory() -> None:
    assert Path(str(find_shell())).name == "bash"
    assert (memory_bytes() or 0) > 1 << 20


@pytest.mark.parametrize(
    "shell",
    ["/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/run/current-system/sw/bin/bash"],
)
def test_the_shell_is_found_where_systems_keep_it(
    shell: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda path, mode: (path, mode) == (shell, os.X_OK))
    assert find_shell() == shell


def test_a_system_without_it_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda _path, _mode: False)
    assert find_shell() is None


def test_memory_that_the_system_does_not_tell_is_not_limited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = {"SC_PHYS_PAGES": 3, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr(os, "sysconf", told.__getitem__)
    assert memory_bytes() == 12_288

    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    assert memory_bytes() is None


# The check of the mounts before the command


def mounts() -> list[str]:
    """Return where something is mounted for this process, as the kernel writes it."""
    lines = Path("/proc/self/mountinfo").read_text("utf-8").splitlines()
    return [line.split(" ")[4] for line in lines]


def kept(planned: list[str], writable: list[str]) -> tuple[int, str, str]:
    """Run a command with the keeper; returns its exit code, its output, and the report."""
    read, write = os.pipe()
    key = memory_file("key", b"key\n")
    script = keeper_script(memory_bytes=None, limits_processes=False)
    arguments = [
        str(write),
        str(key),
        *("".join(f"{one}\n" for one in each) for each in (planned, writable)),
    ]
    with subprocess.Popen(
        [str(find_shell()), "-c", script, "keeper", *arguments, "echo", "ran"],
        pass_fds=(write, key), stdout=subprocess.PIPE, text=True,
    ) as started:  # fmt: skip
        os.close(write)
        os.close(key)
        with os.fdopen(read, encoding="utf-8") as output:
            said = output.read()
        assert started.stdout is not None
        report = started.stdout.readline()
        # With processes of others in sight it stops and waits.
        started.kill()
    return int(report.split()[1]), said, report


linux = pytest.mark.skipif(sys.platform != "linux", reason="mounts are told in /proc on Linux")


@linux
def test_with_all_mounts_as_planned_the_command_runs() -> None:
    code, said, _ = kept(planned=["/"], writable=mounts())
    assert (code, said) == (0, "ran\n")


@linux
@pytest.mark.parametrize("missing", ["/nowhere", "/a b", "/*", "/.", "/$(x)]"])
def test_without_one_of_the_planned_mounts_nothing_runs(missing: str) -> None:
    code, said, report = kept(planned=["/", missing], writable=mounts())
    assert (code, said) == (EXCHANGED, f"{EXCHANGED_SAID}\n")
    assert read_report(report, key="key") == KeeperReport(
        exit_code=EXCHANGED, signal=None, processes=2
    )


@linux
def test_a_mount_that_was_planned_twice_is_wanted_once() -> None:
    code, said, _ = kept(planned=["/", "/"], writable=mounts())
    assert (code, said) == (0, "ran\n")


@linux
def test_with_a_writable_mount_that_was_not_planned_nothing_runs() -> None:
    code, said, _ = kept(planned=["/proc"], writable=[one for one in mounts() if one != "/"])
    assert (code, said) == (EXCHANGED, f"{EXCHANGED_SAID}\n")


def test_mounts_are_written_as_the_kernel_does() -> None:
    assert planned_mounts([Path("/a b"), Path("/c\td"), Path("/e\nf"), Path("/g\\h"), Path("/#i")]) == (
        "/a\\040b\n/c\\011d\n/e\\012f\n/g\\134h\n/#i\n"
    )  # fmt: skip
    assert planned_mounts([]) == ""


# An order for a keeper that waits


def ordered(
    order: bytes,
    *,
    planned: str = "",
    before: Callable[[int], None] = lambda _: None,
    inside: tuple[str, ...] = (),
) -> tuple[str, int | None]:
    """Return the report of a keeper without containment for an order, and its exit code if it ran nothing.

    Args:
        order: The order.
        planned: Mounts that must be there.
        before: Called with the keeper's process while it waits.
        inside: Words before the command of the keeper.
    """
    reading, writing = os.pipe()
    script = keeper_script(memory_bytes=None, limits_processes=False)
    writable = "".join(f"{one}\n" for one in mounts())
    output = os.open(os.devnull, os.O_WRONLY)
    argv = [
        *inside,
        str(find_shell()),
        "-c",
        script,
        "keeper",
        str(output),
        str(reading),
        planned,
        writable,
    ]
    with subprocess.Popen(
        argv, pass_fds=(reading, output), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as started:  # fmt: skip
        os.close(reading)
        os.close(output)
        assert started.stdout is not None
        assert started.stdout.readline() == "\n"
        before(started.pid)
        os.write(writing, order)
        os.close(writing)
        for line in started.stdout:
            if line.startswith("some-key "):
                # With processes of others in sight it stops and waits.
                started.kill()
                return line, None
        return "", started.wait()


@linux
def test_an_order_is_run_only_whole() -> None:
    order = order_of(("sh", "-c", "exit 7"), cwd=Path("/"), key="some-key")
    assert ordered(order)[0].startswith("some-key 7 ")
    for size in range(0, len(order) - len("some-key\n"), 5):
        assert ordered(order[:size]) == ("", EXCHANGED), order[:size]


@linux
def test_an_order_is_not_run_without_one_of_the_planned_mounts() -> None:
    order = order_of(("sh", "-c", "exit 7"), cwd=Path("/"), key="some-key")
    assert ordered(order, planned="/\n")[0].startswith("some-key 7 ")
    assert ordered(order, planned="/\n/nowhere\n")[0] == f"some-key {EXCHANGED} 2\n"


@pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="mounts, which root may on Linux"
)
@pytest.mark.parametrize(
    ("change", "code"),
    [(("--bind", "/", "{}"), EXCHANGED), (("--bind", "-o", "ro", "/", "{}"), 7), ((), 7)],
)
def test_an_order_is_not_run_after_something_was_mounted_to_be_written_to(
    change: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    def mount(keeper: int) -> None:
        if change:
            words = [word.format(tmp_path) for word in change]
            _ = subprocess.run(["nsenter", "-t", str(keeper), "-m", "mount", *words], check=True)

    order = order_of(("sh", "-c", "exit 7"), cwd=Path("/"), key="some-key")
    report, _ = ordered(order, before=mount, inside=("unshare", "-m"))
    assert report.startswith(f"some-key {code} ")


@linux
def test_an_order_whose_folder_is_gone_is_not_run(tmp_path: Path) -> None:
    order = order_of(("echo", "done"), cwd=tmp_path / "none", key="some-key")
    assert ordered(order) == ("", EXCHANGED)


def test_a_word_with_a_nul_is_no_order() -> None:
    with pytest.raises(ValueError, match="null"):
        _ = order_of(("echo", "a\0b"), cwd=Path("/"), key="k")


def test_a_planned_mount_that_lacks_is_seen() -> None:
    there = b"30 1 8:1 / / rw - ext4 x rw\n31 30 8:1 /a /w/a\\040b ro - ext4 x rw\n"
    assert not lacks_mounts(there, "/\n/w/a\\040b\n")
    assert not lacks_mounts(there, "")
    assert lacks_mounts(there, "/w/a\n")
    assert lacks_mounts(b"", "/\n")
