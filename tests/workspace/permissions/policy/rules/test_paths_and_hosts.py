"""Globs and hosts of rules."""

from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy.rules.matching import (
    covers_host,
    covers_path,
    exact_glob,
    may_mean_host,
    may_mean_path,
)

ROOTS = (Path("/ws"), Path("/o[1]"))


@pytest.mark.parametrize(
    ("glob", "path", "covered", "may"),
    [
        ("a", "/ws/a", True, True),
        ("a", "/ws/b/a", True, True),
        ("a", "/o[1]/a", True, True),
        ("a", "/o1/a", False, False),
        ("a", "/a", False, False),
        ("a", "/ws/A", False, True),
        ("a", "/ws/a/b", False, True),
        ("a/", "/ws/a", True, True),
        ("a/", "/ws/b/a", False, False),
        ("./a", "/ws/a", True, True),
        ("a/b", "/ws/a/b", True, True),
        ("a/b", "/ws/x/a/b", False, False),
        ("*.py", "/ws/x/y.py", True, True),
        ("src/*", "/ws/src/a", True, True),
        ("src/*", "/ws/src/a/b", False, True),
        ("src/**", "/ws/src/a/b", True, True),
        ("src/**", "/ws/src", True, True),
        ("src/**/x", "/ws/src/x", True, True),
        ("src/**/x", "/ws/src/a/b/x", True, True),
        ("src/**/x", "/ws/src/a/b/y", False, False),
        ("**/**/x/**", "/ws/a/x/b", True, True),
        ("s?c/a", "/ws/src/a", True, True),
        ("s[qr]c/a", "/ws/src/a", True, True),
        ("/etc/**", "/etc/a", True, True),
        ("/etc", "/etc/a", False, True),
        ("/etc/*", "/ws/a", False, False),
        ("**", "/ws/a/b", True, True),
        ("**", "/etc/a", False, False),
    ],
)
def test_a_glob_covers_paths_name_by_name(
    glob: str, path: str, *, covered: bool, may: bool
) -> None:
    assert covers_path(glob, Path(path), roots=ROOTS) == covered
    assert may_mean_path(glob, Path(path), roots=ROOTS) == may


@pytest.mark.parametrize("name", ["a", "a*", "[x]", "?", "**", "a b", "[", "!", "[!x]"])
def test_an_exact_glob_covers_its_path_and_no_other(name: str) -> None:
    path = Path("/x") / name / "y"
    glob = exact_glob(path)
    assert covers_path(glob, path, roots=ROOTS)
    for other in ("/x/ab/y", "/x/x/y", "/x/q/y", "/x/y", "/x/b/c/y"):
        assert not covers_path(glob, Path(other), roots=ROOTS)


@pytest.mark.timeout(5)
def test_many_stars_take_no_time() -> None:
    glob = "/".join(["**"] * 40 + ["x"])
    assert not covers_path(glob, Path("/ws/" + "/".join("a" * 200)), roots=ROOTS)
    assert not covers_path("*a" * 40 + "b", Path("/ws/" + "a" * 250), roots=ROOTS)


@pytest.mark.parametrize(
    ("pattern", "host", "covered", "may"),
    [
        ("a.org", "a.org", True, True),
        ("a.org", "A.ORG.", True, True),
        ("A.ORG.", "a.org", True, True),
        ("a.org", "b.a.org", False, False),
        ("a.org", "aa.org", False, False),
        ("*.a.org", "b.a.org", True, True),
        ("*.a.org", "c.b.a.org", True, True),
        ("*.a.org", "a.org", False, False),
        ("*.a.org", "ba.org", False, False),
        ("*", "b.org", True, True),
        ("*", "10.0.0.1", True, True),
        ("*", "", False, True),
        ("*", "a b", False, True),
        ("a.org", "a.org\0.b.org", False, True),
        ("a.org", "a.org\n", False, True),
        ("*", "xn--bcher-kva.example", True, True),
        ("*", "b\u00fccher.example", False, True),
        ("*", "a..org", False, True),
        ("*", "-a.org", False, True),
        ("*", "a.org:80", False, True),
        ("*", "a@b.org", False, True),
        ("*", "a" * 254, False, True),
        ("*", "a" * 253, True, True),
        ("*", "[::1]", False, True),
    ],
)
def test_a_host_is_compared_as_the_resolver_would(
    pattern: str, host: str, *, covered: bool, may: bool
) -> None:
    assert covers_host(pattern, host) == covered
    assert may_mean_host(pattern, host) == may
