"""Every test that seed_ids.toml promises exists, and the guard that watches over it in a run does fail."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.seed_ids import load_not_applicable, load_seed_ids
from tests.support.harness.shared import ROOT

NODE_ID = re.compile(r"(?P<file>tests/[\w./-]+\.py)::(?P<names>[\w:]+)(?P<parameters>\[.+\])?")
SEED_ID = re.compile(r"[A-Z]\.\d+ \d+\.\d+[a-z]?|[A-Z]+-\d{3}|pi \d+(\.\d+)? \S.*\S")

IN_A_CLASS = "tests/storage/adapters/test_memory.py::TestMemoryStore"

SUITE = """
import pytest

def test_passes(): pass

@pytest.mark.skip(reason="no time")
def test_skipped(): pass

@pytest.mark.xfail(reason="known", strict=False)
def test_excused(): assert False

@pytest.mark.parametrize("n", ["a", "b"])
def test_each(n): pass
"""
CONFTEST = """
from tests.support.harness.seed_ids import guard_for

def pytest_configure(config):
    config.pluginmanager.register(guard_for(config, {listed!r}, may_skip={may_skip}))
"""


def test_every_listed_test_exists() -> None:
    problems = [
        f"{seed_id}: {problem}"
        for seed_id, node_ids in load_seed_ids().items()
        for problem in _problems(seed_id, node_ids)
    ]
    assert problems == []


def test_what_does_not_apply_has_a_reason_and_no_tests() -> None:
    reasons = load_not_applicable()
    assert [seed_id for seed_id in reasons if not SEED_ID.fullmatch(seed_id)] == []
    assert reasons.keys() & load_seed_ids().keys() == set()


@pytest.mark.parametrize("reason", ['""', '" "', "5", '["a"]'])
def test_what_does_not_apply_without_a_reason_is_refused(tmp_path: Path, reason: str) -> None:
    table = tmp_path / "seed_ids.toml"
    table.write_text(f'[not_applicable]\n"J.1 1.1" = {reason}\n', encoding="utf-8")
    with pytest.raises(ValueError, match="say why it does not apply"):
        load_not_applicable(table)


@pytest.mark.parametrize(
    ("node_id", "problem"),
    [
        ("tests/architecture/test_seed_ids.py::test_every_listed_test_exists", None),
        ("tests/architecture/test_seed_ids.py::test_nothing_of_the_kind", "has no such test"),
        (f"{IN_A_CLASS}::test_an_unknown_session_is_not_found", None),
        (f"{IN_A_CLASS}::test_nothing_of_the_kind", "has no such test"),
        ("tests/architecture/test_seed_ids.py::test_every_listed_test_exists[a]", "no parameters"),
        ("tests/architecture/test_nowhere.py::test_x", "no such file"),
        ("tests/architecture/test_seed_ids.py", "not a node id"),
    ],
)
def test_a_test_that_is_not_there_is_noticed(node_id: str, problem: str | None) -> None:
    found = list(_problems("J.1 1.1", (node_id,)))
    assert len(found) == (problem is not None)
    assert problem is None or problem in found[0]


def test_an_id_without_tests_or_of_another_form_is_noticed() -> None:
    assert len(list(_problems("J.1 1.1", ()))) == 1
    assert len(list(_problems("whatever", ("tests/conftest.py::load_profile",)))) == 2


@pytest.mark.parametrize(
    ("listed", "chosen", "fails_with"),
    [
        (["test_passes", "test_each", "test_each[a]"], [], None),
        (["test_skipped"], [], "was skipped (Skipped: no time)"),
        (["test_excused"], [], "was skipped (known)"),
        (["test_each[c]"], [], "was not collected"),
        (["test_each[c]", "test_passes"], ["-k", "passes"], None),
    ],
)
def test_a_session_fails_when_a_listed_test_was_skipped_or_missing(
    tmp_path: Path,
    child_env: dict[str, str],
    listed: list[str],
    chosen: list[str],
    fails_with: str | None,
) -> None:
    _write_suite(tmp_path, listed, may_skip=False)
    done = _pytest(tmp_path, *chosen, env=child_env)
    output = done.stdout + done.stderr
    assert (done.returncode, bool(fails_with) and fails_with in output) == (
        (1, True) if fails_with else (0, False)
    ), output


@pytest.mark.parametrize(("name", "code"), [("test_skipped", 0), ("test_excused", 1)])
def test_where_programs_may_be_missing_a_skipped_test_is_only_named(
    tmp_path: Path, child_env: dict[str, str], name: str, code: int
) -> None:
    _write_suite(tmp_path, [name], may_skip=True)
    done = _pytest(tmp_path, env=child_env)
    assert done.returncode == code, done.stdout
    assert f"J.1 1.1: test_it.py::{name} was skipped" in done.stdout


def _write_suite(folder: Path, listed: list[str], *, may_skip: bool) -> None:
    (folder / "test_it.py").write_text(SUITE, encoding="utf-8")
    node_ids = tuple(f"test_it.py::{name}" for name in listed)
    conftest = CONFTEST.format(listed={"J.1 1.1": node_ids}, may_skip=may_skip)
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    (folder / "pytest.toml").write_text(
        f"[pytest]\npythonpath = ['{ROOT}', '{ROOT}/server']\n", encoding="utf-8"
    )


def _pytest(cwd: Path, *arguments: str, env: dict[str, str]):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:randomly", *arguments],
        cwd=cwd, env=env, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip


def _problems(seed_id: str, node_ids: tuple[str, ...]) -> Iterator[str]:
    if not SEED_ID.fullmatch(seed_id):
        yield f"{seed_id!r} is not of the form 'J.1 2.3', 'ABC-001' or 'pi 4.1 words'"
    if not node_ids:
        yield "names no test: leave the id out until one covers it"
    for node_id in node_ids:
        match = NODE_ID.fullmatch(node_id)
        if match is None:
            yield f"{node_id!r} is not a node id"
        elif not (ROOT / match["file"]).is_file():
            yield f"{node_id}: no such file"
        else:
            tree = ast.parse((ROOT / match["file"]).read_text(encoding="utf-8"))
            yield from _missing(tree, node_id, names=match["names"], parameters=match["parameters"])


def _missing(
    tree: ast.Module, node_id: str, *, names: str, parameters: str | None
) -> Iterator[str]:
    decorators: list[str] = []
    scope: ast.AST = tree
    for name in names.split("::"):
        found = _named(scope, name) or list(_inherited(tree, scope, name))
        if not found:
            yield f"{node_id}: the file has no such test"
            return
        scope = found[0]
        decorators.extend(ast.unparse(decorator) for decorator in found[0].decorator_list)
    if parameters and not any("parametrize" in decorator for decorator in decorators):
        yield f"{node_id}: the test has no parameters"


def _named(
    scope: ast.AST, name: str
) -> list[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    return [
        node
        for node in ast.iter_child_nodes(scope)
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == name
    ]


def _inherited(
    tree: ast.Module, scope: ast.AST, name: str
) -> Iterator[ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef]:
    """Give a test that a class has from a class of another file, as the conformance suites do."""
    bases = (
        {ast.unparse(base) for base in scope.bases} if isinstance(scope, ast.ClassDef) else set()
    )
    for node in tree.body:
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tests."):
            continue
        file = ROOT / f"{(node.module or '').replace('.', '/')}.py"
        for base in bases & {alias.name for alias in node.names}:
            there = ast.parse(file.read_text(encoding="utf-8"))
            for suite in _named(there, base):
                yield from _named(suite, name)
