"""Changes one thing at a time in a package and looks whether its tests notice.

For a package's own test, at campaign size:

    report = mutate("agent_core/workspace/permissions/policy", tests=["tests/workspace/permissions/policy"], at_most=300)
    assert report.share_killed >= 0.85, report.told()

Nothing in the checkout is changed: each mutant is a copy of the tree of packages in a folder of its own, and the tests
run in a process that imports from there. By hand, with what survived:

    python -m tests.support.harness.mutation agent_core/workspace/permissions/policy tests/workspace/permissions/policy --at-most 100
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from typing_extensions import override

ROOT = Path(__file__).resolve().parents[3]
COPIED = ("agent_core", "server", "tests", "pyproject.toml")
SEED = 7
LIMIT_S = 120.0
FACTOR = 5.0
"""How many times longer than the unchanged package a mutant may take; a longer one counts as noticed."""

TABLE_WORDS = 8
"""So many make a table."""

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.Mult: ast.Add,
}  # fmt: skip

Fate = Literal["killed", "survived", "slow"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One change."""

    path: str
    line: int
    change: str
    text: str
    """The whole file with the change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What became of the mutants."""

    fates: tuple[tuple[Mutant, Fate], ...]
    possible: int
    """How many mutants there would be; those that were run are drawn from them."""

    @property
    def share_killed(self) -> float:
        """The share that the tests noticed, by failing or by not coming to an end."""
        return sum(fate != "survived" for _, fate in self.fates) / max(len(self.fates), 1)

    def told(self) -> str:
        """Say the figures, and each mutant that survived."""
        left = [
            f"{one.path}:{one.line}: {one.change}" for one, fate in self.fates if fate == "survived"
        ]
        slow = sum(fate == "slow" for _, fate in self.fates)
        head = (
            f"{len(self.fates)} of {self.possible} mutants run, {self.share_killed:.1%} noticed "
            f"({slow} by time), {len(left)} survived"
        )
        return "\n".join([head, *left])


def mutate(
    package: str, *, tests: Sequence[str], at_most: int, workers: int = 2, seed: int = SEED
) -> Report:
    """Run the tests of a package against changes of it, drawn evenly at random.

    Args:
        package: A folder or a file, from the root of the checkout.
        tests: What pytest is given.
        at_most: How many mutants to run. At 0 the paths alone are checked and the test is skipped, so that a file
            that has moved is noticed at every size.
        workers: How many at once.
        seed: Draws the mutants.

    Raises:
        AssertionError: A path does not exist, or the tests fail without any change.
    """
    paths = [package, *(test.partition("::")[0] for test in tests if not test.startswith("-"))]
    absent = [path for path in paths if not (ROOT / path).exists()]
    assert not absent, f"these paths do not exist: {absent}"
    if at_most == 0:
        pytest.skip("runs the tests hundreds of times: make campaign")
    everything = [one for path in _files(package) for one in mutants_of(path)]
    drawn = random.Random(seed).sample(everything, min(at_most, len(everything)))  # noqa: S311 - a test
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [_copied_tree(Path(folder) / str(number)) for number in range(workers)]
        limit_s = _unchanged_s(trees[0], tests) * FACTOR + 5
        with ThreadPoolExecutor(workers) as pool:
            shares = [drawn[number::workers] for number in range(workers)]
            runs = pool.map(
                lambda tree, share: _run_share(tree, share, tests, limit_s), trees, shares
            )
            fates = tuple(fate for share in runs for fate in share)
    return Report(fates=fates, possible=len(everything))


def mutants_of(path: Path) -> Iterator[Mutant]:
    """Make every mutant of a file."""
    name = path.relative_to(ROOT).as_posix()
    tree = ast.parse(path.read_text("utf-8"))
    count = _Places().number(tree)
    for place in range(count):
        changed = deepcopy(tree)
        places = _Places(place)
        changed = places.visit(changed)
        line, change = places.told
        text = ast.unparse(ast.fix_missing_locations(changed))
        yield Mutant(path=name, line=line, change=change, text=text)


class _Places(ast.NodeTransformer):
    """Counts the places where something can be changed, and changes the wanted one."""

    def __init__(self, wanted: int = -1) -> None:
        self.wanted = wanted
        self.seen = 0
        self.told = (0, "")

    def number(self, tree: ast.AST) -> int:
        """Count the places."""
        self.visit(deepcopy(tree))
        return self.seen

    @override
    def visit(self, node: ast.AST) -> ast.AST:
        if _is_plain_data(node):
            return node
        if isinstance(node, ast.AnnAssign):
            if node.value is not None:
                value = self.visit(node.value)
                assert isinstance(value, ast.expr)
                node.value = value
            return node
        before = ast.unparse(node) if isinstance(node, ast.expr | ast.stmt) else ""
        for make in _changes(node):
            self.seen += 1
            if self.seen - 1 == self.wanted:
                changed = make(node)
                self.told = (
                    getattr(node, "lineno", 0),
                    f"{_short(before)}  ->  {_short(ast.unparse(changed))}",
                )
                return changed
        return self._inside(node)

    def _statement(self, node: ast.stmt) -> ast.stmt:
        changed = self.visit(node)
        assert isinstance(changed, ast.stmt)
        return changed

    def _inside(self, node: ast.AST) -> ast.AST:
        """Go on to what can change behaviour: not docstrings, annotations, decorators or default messages."""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            node.body[:] = [self._statement(one) for one in node.body]
            return node
        if isinstance(node, ast.Raise | ast.JoinedStr):
            return node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            return node
        return self.generic_visit(node)


def _is_plain_data(node: ast.AST) -> bool:
    """Tell what is left as it is: imports, types, exports, and sets and tables of words, whose members are a matter of choice."""
    match node:
        case (
            ast.Import()
            | ast.ImportFrom()
            | ast.Set()
            | ast.Subscript(value=ast.Name(id="Literal"))
        ):
            return True
        case ast.Assign(targets=[ast.Name(id="__all__")]):
            return True
        case ast.AnnAssign(annotation=ast.Name(id="Final"), value=ast.Tuple() as table):
            # The tests walk a long one, member by member: they read the changed word too.
            return _words_in(table) >= TABLE_WORDS
        case ast.Call(func=ast.Attribute(value=ast.Name(id="log"))):
            return True
        case _:
            return False


def _words_in(table: ast.expr) -> int:
    """Count the words of a table; 0: it holds something else."""
    leaves = [
        one
        for one in ast.walk(table)
        if not isinstance(one, ast.Tuple | ast.Starred | ast.expr_context)
    ]
    plain = all(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in leaves)
    return len(leaves) if plain else 0


def _changes(node: ast.AST) -> Iterator[Callable[[Any], ast.AST]]:  # noqa: C901, PLR0912 - one table of what can be changed
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield lambda n: ast.Compare(n.left, [COMPARISONS[type(op)]()], n.comparators)
        case ast.BoolOp(op=op):
            yield lambda n: ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), n.values)
            for index in range(len(node.values)):
                yield lambda n, i=index: _without(n, i)
        case ast.UnaryOp(op=ast.Not()):
            yield lambda n: n.operand
        case ast.BinOp(op=op) if type(op) in ARITHMETIC and not _is_type(node):
            yield lambda n: ast.BinOp(n.left, ARITHMETIC[type(op)](), n.right)
        case ast.Constant(value=bool(value)):
            yield lambda n: ast.Constant(not value)
        case ast.Constant(value=int(value)):
            yield lambda n: ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if value and " " not in value:
            yield lambda n: ast.Constant(value + "~")
        case ast.IfExp():
            yield lambda n: n.body
            yield lambda n: n.orelse
        case ast.If():
            yield lambda n: ast.If(ast.UnaryOp(ast.Not(), n.test), n.body, n.orelse)
        case ast.Return(value=value) if value is not None and not _is_none(value):
            yield lambda n: ast.Return(ast.Constant(None))
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log")))):
            return
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield lambda n: ast.Pass()
        case ast.Continue():
            yield lambda n: ast.Break()
        case _:
            return


def _without(node: ast.BoolOp, index: int) -> ast.expr:
    left = [value for at, value in enumerate(node.values) if at != index]
    return left[0] if len(left) == 1 else ast.BoolOp(node.op, left)


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def _is_type(node: ast.BinOp) -> bool:
    """Tell `int | None` from arithmetic, as far as names tell."""
    names = [side.id for side in (node.left, node.right) if isinstance(side, ast.Name)]
    return isinstance(node.op, ast.BitOr) and bool(names) and names[0][0].isupper()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:87]}..."


def _files(package: str) -> list[Path]:
    place = ROOT / package
    return [place] if place.is_file() else sorted(place.rglob("*.py"))


def _copied_tree(folder: Path) -> Path:
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    # Tests find reference data beside the checkout.
    shared = ROOT.parent / "shared"
    link = folder.parent / "shared"
    if shared.is_dir() and not link.exists():
        link.symlink_to(shared)
    return folder


def _unchanged_s(tree: Path, tests: Sequence[str]) -> float:
    import time  # noqa: PLC0415 - only to learn how long the tests take

    start = time.perf_counter()
    fate, words = _run_tests(tree, tests, LIMIT_S)
    assert fate == "survived", f"the tests fail without any change:\n{words}"
    return time.perf_counter() - start


def _run_share(
    tree: Path, share: Sequence[Mutant], tests: Sequence[str], limit_s: float
) -> list[tuple[Mutant, Fate]]:
    done: list[tuple[Mutant, Fate]] = []
    for mutant in share:
        path = tree / mutant.path
        before = path.read_text("utf-8")
        path.write_text(mutant.text, "utf-8")
        try:
            done.append((mutant, _run_tests(tree, tests, limit_s)[0]))
        finally:
            path.write_text(before, "utf-8")
    return done


def _run_tests(tree: Path, tests: Sequence[str], limit_s: float) -> tuple[Fate, str]:
    options = [
        "-x",
        "-q",
        "-p",
        "no:randomly",
        "-p",
        "no:cacheprovider",
        "--no-header",
        "--tb=line",
    ]
    # Bytecode of another second with the same size would be taken for current.
    mine = dict(os.environ)  # noqa: TID251 - the child's
    env = {
        **mine,
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": f"{tree}{os.pathsep}{tree / 'server'}",
        "TILLER_CAMPAIGN": "0",
    }
    try:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "pytest", *options, *tests],
            cwd=tree, env=env, capture_output=True, text=True, timeout=limit_s, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return "slow", ""
    return ("survived" if ran.returncode == 0 else "killed"), ran.stdout + ran.stderr


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("package")
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--at-most", type=int, default=100)
    parser.add_argument("--seed", type=int, default=SEED)
    given = parser.parse_args()
    print(mutate(given.package, tests=given.tests, at_most=given.at_most, seed=given.seed).told())
