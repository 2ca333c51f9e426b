"""What containment kept a command from is recognised in its output, and said with what to do."""

from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.denial_messages import (
    EXCHANGE_SAID,
    GIT_DATA_SAID,
    GIT_SAID,
    HIDDEN_SAID,
    MASKED_SAID,
    NETWORK_SAID,
    OUTSIDE_SAID,
    PROTECTED_SAID,
    SOCKETS_SAID,
    CommandLimits,
    denials,
)

WALLS = CommandLimits(
    network=False,
    git="closed",
    guarded=(".vscode", "AGENTS.md"),
    secrets=(".env", "prod.pem"),
    masked=(Path("/home/me/.ssh"), Path("/home/me/.netrc")),
    home=Path("/home/me"),
)
CASES = {
    "curl": ("curl: (6) Could not resolve host: pypi.org", NETWORK_SAID),
    "git": ("fatal: unable to access 'https://x/': Could not resolve host: x", NETWORK_SAID),
    "pip": ("[Errno -3] Temporary failure in name resolution", NETWORK_SAID),
    "npm": ("npm error errno EAI_AGAIN", NETWORK_SAID),
    "go": ("dial tcp: lookup proxy.golang.org: no such host", NETWORK_SAID),
    "cargo": ("[6] Couldn't resolve host name (Could not resolve host: index.crates.io)", NETWORK_SAID),
    "python": ("OSError: [Errno 101] Network is unreachable", NETWORK_SAID),
    "sockets": ("socket(AF_UNIX): Operation not permitted", SOCKETS_SAID),
    "outside": ("touch: cannot touch '/etc/x': Read-only file system", OUTSIDE_SAID),
    "rust": ("error: Read-only file system (os error 30)", OUTSIDE_SAID),
    "node": ("Error: EROFS: read-only file system, open '/home/me/.x'", OUTSIDE_SAID),
    "config": ("error: could not write config file .git/config: Device or resource busy", GIT_SAID),
    "hook": ("cannot create .git/hooks/x: Read-only file system", GIT_SAID),
    "attributes": ("error: .git/info/attributes: Read-only file system", GIT_SAID),
    "data of git": ("fatal: Unable to create '/w/.git/index.lock': Read-only file system", GIT_DATA_SAID),
    "objects": ("error: unable to create temporary file in .git/objects: Read-only file system", GIT_DATA_SAID),
    "ref": ("error: cannot lock ref 'refs/heads/x': Read-only file system", GIT_DATA_SAID),
    "git folder": ("rm: cannot remove '.git': Device or resource busy", GIT_DATA_SAID),
    "crossing": ("mv: cannot move 'package' to 'p2': Invalid cross-device link", EXCHANGE_SAID),
    "crossing in Python": ("OSError: [Errno 18] Invalid cross-device link: 'a' -> 'b'", EXCHANGE_SAID),
    "secret": ("bash: .env: Read-only file system", HIDDEN_SAID.format(name=".env")),
    "secret that is empty": ("cannot read prod.pem: does not exist", HIDDEN_SAID.format(name="prod.pem")),
    "protected": ("bash: AGENTS.md: Read-only file system", PROTECTED_SAID.format(name="AGENTS.md")),
    "renamed": ("mv: cannot move '.vscode': Device or resource busy", PROTECTED_SAID.format(name=".vscode")),
    "masked": ("cat: /home/me/.ssh/id: No such file or directory", MASKED_SAID.format(place="~/.ssh")),
    "masked by ~": ("cannot read ~/.netrc", MASKED_SAID.format(place="~/.netrc")),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_a_denial_is_recognised(case: str) -> None:
    output, said = CASES[case]
    assert denials(f"before\n{output}\nafter\n", exit_code=1, walls=WALLS) == (said,)


@pytest.mark.parametrize("case", CASES)
def test_what_went_well_was_kept_from_nothing(case: str) -> None:
    assert denials(CASES[case][0], exit_code=0, walls=WALLS) == ()


def test_what_a_signal_ended_is_looked_at() -> None:
    assert denials(CASES["outside"][0], exit_code=None, walls=WALLS) == (OUTSIDE_SAID,)


def test_what_was_allowed_is_not_said() -> None:
    walls = replace(WALLS, network=True)
    assert denials(CASES["curl"][0], exit_code=1, walls=walls) == ()
    assert denials(CASES["sockets"][0], exit_code=1, walls=walls) == (SOCKETS_SAID,)
    walls = replace(WALLS, sockets=True)
    assert denials(CASES["sockets"][0], exit_code=1, walls=walls) == ()
    walls = replace(WALLS, git="open")
    assert denials(CASES["hook"][0], exit_code=1, walls=walls) == (OUTSIDE_SAID,)


def test_with_the_data_of_git_open_only_its_settings_were_in_the_way() -> None:
    walls = replace(WALLS, git="data")
    for case in ("config", "hook", "data of git"):
        assert denials(CASES[case][0], exit_code=1, walls=walls) == (GIT_SAID,)


@pytest.mark.parametrize(
    "output",
    ["E assert 1 == 2", "cat: missing: No such file or directory", "error: not found", "permission denied", ""],
)  # fmt: skip
def test_ordinary_failures_are_none(output: str) -> None:
    assert denials(output, exit_code=1, walls=WALLS) == ()


def test_each_is_said_once_and_only_of_the_end() -> None:
    line = CASES["outside"][0] + "\n"
    assert denials(line * 3, exit_code=1, walls=WALLS) == (OUTSIDE_SAID,)
    assert denials(line + "x" * 20_000, exit_code=1, walls=WALLS) == ()
