"""Each promise of SECURITY.md names tests that exist, and THREATS.md names files that do."""

import ast
import re
from collections.abc import Iterator

from tests.support.harness.shared import ROOT

PROMISE = re.compile(r"^### (P\d+) .+$", re.MULTILINE)
SHOWN_BY = re.compile(r"^- `(tests/[\w/]+\.py)::(test_\w+)`$", re.MULTILINE)
NOT_PROMISED = re.compile(r"^- \*\*(N\d+)\*\* ", re.MULTILINE)
FILE = re.compile(r"`((?:workspace|session|resources|kernel|server|tests)/[\w/*.]+)`")
PROMISES = tuple(f"P{number}" for number in range(1, 15))
LIMITS = tuple(f"N{number}" for number in range(1, 10))


def test_the_page_makes_these_promises_and_names_these_limits() -> None:
    page = _page()
    assert tuple(PROMISE.findall(page)) == PROMISES
    assert tuple(NOT_PROMISED.findall(page)) == LIMITS


def test_each_promise_names_tests_that_exist() -> None:
    sections = list(_sections(_page()))
    bare = [name for name, section in sections if not SHOWN_BY.findall(section)]
    missing = [
        f"{name}: {path}::{test}"
        for name, section in sections
        for path, test in SHOWN_BY.findall(section)
        if test not in _tests_of(path)
    ]
    assert (bare, missing) == ([], [])


def test_the_threats_name_files_that_exist() -> None:
    page = (ROOT / "agent_core" / "THREATS.md").read_text("utf-8")
    named = FILE.findall(page)
    assert len(named) > len(PROMISES)
    gone = [name for name in named if not _is_there(name)]
    assert gone == []


def _is_there(name: str) -> bool:
    return any([*ROOT.glob(name), *(ROOT / "agent_core").glob(name)])


def _page() -> str:
    return (ROOT / "SECURITY.md").read_text("utf-8")


def _sections(page: str) -> Iterator[tuple[str, str]]:
    """Give each promise with the text up to the next heading."""
    found = list(PROMISE.finditer(page))
    for one in found:
        rest = page[one.end() :]
        yield one.group(1), rest[: rest.index("\n##")]


def _tests_of(path: str) -> set[str]:
    file = ROOT / path
    if not file.is_file():
        return set()
    tree = ast.parse(file.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in tree.body if isinstance(node, kinds)}
