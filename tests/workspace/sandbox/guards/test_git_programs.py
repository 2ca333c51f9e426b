"""Where hooks and settings of git lead in a workspace."""

import os
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.guards.git import MOST_INCLUDES, first_made, git_programs
from tests.workspace.sandbox.guards.test_holds import git, indexed, put

TRACKED = ("tools/there.sh", "tools/deep/other.sh", "plain")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = Path(os.path.realpath(tmp_path)) / "root"
    git(root, "init", "-q")
    for name in TRACKED:
        put(root / name)
    return root


def led_to(root: Path, *settings: Path) -> tuple[set[str], set[str]]:
    """Return what is there, and what is vacant, from the root."""
    found = git_programs(indexed(root), roots=(root,), settings=settings)
    assert found.problem is None
    there, vacant = ({os.path.relpath(one, root) for one in each} for each in (found.there, found.vacant))  # fmt: skip
    return there, vacant


@pytest.mark.parametrize(
    ("text", "there", "vacant"),
    [
        ("[core]\n\thooksPath = tools\n", {"tools"}, set()),
        ("[core]\n\thooksPath = none\n", set(), {"none"}),
        ('[core]\n\thookspath = "tools"\n', {"tools"}, set()),
        ("[core] fsmonitor = tools/there.sh\n", {"tools/there.sh"}, set()),
        ("[CORE]\n\tFsMonitor=./tools/there.sh\n", {"tools/there.sh"}, set()),
        ('[filter "x"]\n\tclean = tools/none.sh %f\n', set(), {"tools/none.sh"}),
        ('[filter "x"]\n\tsmudge = sh tools/there.sh\n', {"tools/there.sh"}, set()),
        ('[diff "x"]\n\ttextconv = sh plain\n', {"plain"}, set()),
        ('[diff "x"]\n\ttextconv = plain\n', set(), set()),
        ('[merge "x"]\n\tdriver = env A=tools/there.sh -x tools/deep/other.sh\n', {"tools/there.sh", "tools/deep/other.sh"}, set()),
        ("[alias]\n\tst = !tools/there.sh\n", {"tools/there.sh"}, set()),
        ("[alias]\n\tst = status tools/there.sh\n", set(), set()),
        ("[core]\n\tpager = less; tools/there.sh | cat\n", {"tools/there.sh"}, set()),
        ("[core]\n\teditor = vi --rc=tools/there.sh\n", {"tools/there.sh"}, set()),
        ("[core]\n\teditor = -tools/there.sh ~/x/y tools\n", set(), set()),
        ("[core]\n\teditor = sh \\\n tools/there.sh\n", {"tools/there.sh"}, set()),
        ("[core]\n\teditor = ../outside/x\n", set(), set()),
        ("[user]\n\tname = tools/there.sh\n", set(), set()),
        ("[include]\n\tpath = ../more\n", {"more"}, set()),
        ("[include]\n\tpath = ../none\n", set(), {"none"}),
        ("[pre]\n\tsomehook = tools/there.sh\n", {"tools/there.sh"}, set()),
    ],
)  # fmt: skip
def test_settings_lead_to_files(root: Path, text: str, there: set[str], vacant: set[str]) -> None:
    put(root / "more")
    put(root / ".git/config", text)
    assert led_to(root) == (there, vacant)


def test_what_is_included_counts_in_turn_and_so_does_what_the_user_sets(root: Path) -> None:
    put(root / ".git/config", "[include]\n\tpath = ../a\n")
    put(root / "a", '[includeIf "x"]\n\tpath = "b"\n[core]\n\tpager = tools/there.sh\n')
    put(root / "b", "[include]\n\tpath = a\n[core]\n\teditor = tools/none\n")
    assert led_to(root) == ({"a", "b", "tools/there.sh"}, {"tools/none"})
    own = put(root.parent / "gitconfig", "[core]\n\thooksPath = plain/hooks\n\tpager = tools/deep/other.sh\n")  # fmt: skip
    git(root / "sub", "init", "-q")
    there, vacant = led_to(root, own, root.parent / "none", root.parent)
    assert there == {"a", "b", "tools/there.sh", "tools/deep/other.sh"}
    assert vacant == {"tools/none", "plain/hooks", "sub/plain/hooks", "sub/tools/deep/other.sh"}


def test_links_among_hooks_and_settings_lead_too(root: Path) -> None:
    (root / ".git/hooks/pre-commit").symlink_to("../../tools/there.sh")
    (root / ".git/hooks/pre-push").symlink_to("../../tools/none.sh")
    (root / ".git/hooks/post-merge").symlink_to("../../../outside")
    (root / ".git/config").unlink()
    (root / ".git/config").symlink_to("../plain")
    put(root / "plain", "[core]\n\thooksPath = moved\n")
    (root / "moved").mkdir()
    (root / "moved/x").symlink_to("../tools/deep/other.sh")
    put(root / "moved/y")
    there, vacant = led_to(root)
    assert there == {"tools/there.sh", "plain", "moved", "tools/deep/other.sh"}
    assert vacant == {"tools/none.sh"}


def test_the_repository_around_a_root_counts(root: Path) -> None:
    put(root / ".git/config", "[core]\n\tpager = tools/deep/other.sh\n")
    found = git_programs(indexed(root / "tools"), roots=(root / "tools",))
    assert found.there == {root / "tools/deep/other.sh"}


def test_a_bare_repository_counts(root: Path) -> None:
    git(root, "init", "-q", "--bare", "bare")
    put(root / "bare/config", "[core]\n\thooksPath = ../tools\n")
    assert led_to(root) == ({"tools"}, set())


def test_settings_that_are_not_read_are_a_problem(root: Path) -> None:
    include = "[include]\n\tpath = {}\n"
    put(root / ".git/config", "".join(include.format(f"../{one}") for one in range(MOST_INCLUDES)))
    found = git_programs(indexed(root), roots=(root,))
    assert "more than 32 files of settings" in str(found.problem)
    assert (found.there, found.vacant) == (frozenset(), frozenset())
    put(root / ".git/config", "#" * 70_000)
    assert "too long to be read" in str(git_programs(indexed(root), roots=(root,)).problem)


def test_what_is_made_at_a_vacant_place_is_found_or_the_link_that_leads_there(root: Path) -> None:
    place = root / "a/b/c"
    assert first_made(place, (root,)) is None
    (root / "a/b").mkdir(parents=True)
    assert first_made(place, (root,)) is None
    put(place)
    assert first_made(place, (root,)) == place
    assert first_made(place, (root / "a/b", root)) == place
    assert first_made(root.parent / "x", (root,)) is None
    (root / "l").symlink_to("a")
    assert first_made(root / "l/b/c", (root,)) == root / "l"
    (root / "a/m").symlink_to("none")
    assert first_made(root / "a/m", (root,)) == root / "a/m"
