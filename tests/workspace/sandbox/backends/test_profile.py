"""The command line of bubblewrap: what lies over what."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.backends.bubblewrap import (
    Profile,
    bubblewrap_arguments,
    writable_places,
)

ROOT = Path("/home/me/project")
PLAIN = Profile(
    roots=(ROOT,),
    held={
        ROOT / ".git": "writable",
        ROOT / ".git/config": "read-only",
        ROOT / ".vscode": "read-only",
        ROOT / ".env": "empty file",
        ROOT / ".ssh": "empty folder",
    },
    masked_folders=(Path("/home/me/.ssh"), ROOT / "own"),
    masked_files=(Path("/home/me/.netrc"),),
    empty_file=Path("/data/empty"),
    readable=(Path("/home/me/data/outputs"),),
    kernel=(Path("/proc/sys"),),
    temporary=Path("/data/private"),
    cwd=ROOT,
    network=False,
    forbids_userns=True,
)


def test_the_whole_of_it() -> None:
    assert " ".join(bubblewrap_arguments(PLAIN)) == (
        "--die-with-parent --new-session --unshare-user --unshare-pid --unshare-ipc --unshare-uts "
        "--unshare-cgroup-try --disable-userns --unshare-net --cap-drop ALL --ro-bind / / "
        "--dev /dev --size 1073741824 --tmpfs /dev/shm --proc /proc --ro-bind /proc/sys /proc/sys "
        "--perms 0555 --size 65536 --tmpfs /sys --perms 0555 --size 65536 --tmpfs /run --bind /data/private /tmp --bind /data/private /var/tmp "
        "--perms 0555 --size 65536 --tmpfs /home/me/.ssh --ro-bind /data/empty /home/me/.netrc "
        "--ro-bind /home/me/data/outputs /home/me/data/outputs "
        "--bind /home/me/project /home/me/project "
        "--perms 0555 --size 65536 --tmpfs /home/me/project/own "
        "--ro-bind /data/empty /home/me/project/.env "
        "--bind /home/me/project/.git /home/me/project/.git "
        "--ro-bind /home/me/project/.git/config /home/me/project/.git/config "
        "--perms 0555 --size 65536 --tmpfs /home/me/project/.ssh "
        "--ro-bind /home/me/project/.vscode /home/me/project/.vscode "
        "--remount-ro /dev "
        "--chdir /home/me/project --"
    )


@pytest.mark.parametrize(
    ("change", "gone"),
    [
        ({"network": True}, ["--unshare-net"]),
        ({"forbids_userns": False}, ["--disable-userns"]),
    ],
    ids=["network", "user namespaces"],
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


def test_what_is_writable_is_known_from_the_arguments() -> None:
    assert [str(one) for one in writable_places(bubblewrap_arguments(PLAIN))] == [
        "/dev/shm", "/sys", "/run", "/tmp", "/var/tmp", "/home/me/.ssh", "/home/me/project",  # noqa: S108 - inside
        "/home/me/project/own", "/home/me/project/.git", "/home/me/project/.ssh",
    ]  # fmt: skip


def test_in_a_closed_home_only_the_workspace_and_what_is_shown_are_there() -> None:
    closed = replace(PLAIN, closed=(Path("/home/me"),), masked_folders=(Path("/home/me/.ssh"),))
    words = " ".join(bubblewrap_arguments(closed))
    assert "--ro-bind /home/me/data/outputs /home/me/data/outputs " in words
    assert "--tmpfs /home/me/.ssh" not in words
    # Programs ask for it at every start; it shows as empty.
    assert " /home/me/.netrc" in words
    assert words.index("--remount-ro /home/me ") > words.index("--bind /home/me/project ")
    assert words.index("--tmpfs /home/me ") < words.index("--bind /home/me/project ")
