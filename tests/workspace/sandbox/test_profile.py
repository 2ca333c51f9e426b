"""The command line of bubblewrap: what lies over what."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.profile import Profile, bubblewrap_arguments

ROOT = Path("/home/me/project")
PLAIN = Profile(
    roots=(ROOT,),
    git=(ROOT / ".git",),
    read_only=(ROOT / ".git/config", ROOT / ".vscode"),
    masked_folders=(Path("/home/me/.ssh"), ROOT / "own"),
    masked_files=(Path("/home/me/.netrc"),),
    readable=(Path("/home/me/data/outputs"),),
    kernel=(Path("/proc/sys"),),
    temporary=Path("/data/private"),
    cwd=ROOT,
    network=False,
    forbids_userns=True,
    seccomp_fd=9,
)


def test_the_whole_of_it() -> None:
    assert " ".join(bubblewrap_arguments(PLAIN)) == (
        "--die-with-parent --new-session --unshare-user --unshare-pid --unshare-ipc --unshare-uts "
        "--unshare-cgroup-try --disable-userns --unshare-net --cap-drop ALL --ro-bind / / "
        "--dev /dev --size 1073741824 --tmpfs /dev/shm --proc /proc --ro-bind /proc/sys /proc/sys "
        "--perms 0555 --size 65536 --tmpfs /sys --perms 0555 --size 65536 --tmpfs /run --bind /data/private /tmp --bind /data/private /var/tmp "
        "--perms 0555 --size 65536 --tmpfs /home/me/.ssh --ro-bind /dev/null /home/me/.netrc "
        "--ro-bind /home/me/data/outputs /home/me/data/outputs "
        "--bind /home/me/project /home/me/project "
        "--perms 0555 --size 65536 --tmpfs /home/me/project/own "
        "--bind /home/me/project/.git /home/me/project/.git "
        "--ro-bind /home/me/project/.git/config /home/me/project/.git/config "
        "--ro-bind /home/me/project/.vscode /home/me/project/.vscode "
        "--remount-ro /dev "
        "--seccomp 9 --chdir /home/me/project --"
    )


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        ({"network": True}, ["--unshare-net"]),
        ({"forbids_userns": False}, ["--disable-userns"]),
        ({"seccomp_fd": None}, ["--seccomp", "9"]),
    ],
    ids=["network", "user namespaces", "no filter"],
)
def test_each_choice_changes_one_thing(change: dict[str, object], gone: list[str]) -> None:
    changed = bubblewrap_arguments(replace(PLAIN, **change))
    assert list(changed) == [word for word in bubblewrap_arguments(PLAIN) if word not in gone]


def test_folders_come_before_what_is_in_them() -> None:
    roots = (Path("/w/a/b"), Path("/w/a"), Path("/w/a"))
    arguments = bubblewrap_arguments(replace(PLAIN, roots=roots))
    places = [
        arguments[at + 1]
        for at, word in enumerate(arguments)
        if word == "--bind" and "/w" in arguments[at + 1]
    ]
    assert places == ["/w/a", "/w/a/b"]
