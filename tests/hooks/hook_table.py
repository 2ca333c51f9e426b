"""The table of all points of hooks, made from the code and from the list of tests that show them.

`python -m tests.hooks.hook_table` writes it.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_core.hooks import POINTS, Point

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "agent_core/hooks/POINTS.md"
TESTS = ROOT / "tests/hooks/points.toml"
CORE = ROOT / "agent_core"
HEAD = """\
# Points of hooks

Where code of others is asked or told something. A function that listens gets a value of the class below and a
context; what it may answer stands under *answers*, and nothing (`None`) means `GoOn()`, except where a failure is
`closed`: there a check that fails, or says nothing, means no. How the answers of several become one:

- *notify*: there are none;
- *gate*: the first one stops, later functions are not asked;
- *chain*: each function sees what the one before it made;
- *first wins*: the first one decides, later functions are not asked;
- *collect*: all are kept, in order;
- *last override*: all are asked, the last one counts.

A limit is 5 s (`hooks.timeoutS`), a `long` one 120 s (`hooks.longTimeoutS`). This page is generated; a point without a
place where it is asked, or without a test, fails the build.

| Point | Class | Answers | Composition | Failure | Limit | Asked in | Shown by |
| --- | --- | --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """Write the table."""
    asked, tests = asked_in(), shown_by()
    return HEAD + "".join(_row(one, asked, tests) for one in POINTS.values())


def asked_in() -> Mapping[str, tuple[str, ...]]:
    """Give the files that make a value of a point, by the name of its class."""
    wanted = {point.input.__name__ for point in POINTS.values()}
    found: dict[str, list[str]] = {}
    for file in sorted(CORE.rglob("*.py")):
        if file.parent.name == "hooks":
            continue
        for name in sorted(wanted & set(_made(file))):
            found.setdefault(name, []).append(file.relative_to(CORE).as_posix())
    return {name: tuple(files) for name, files in found.items()}


def shown_by() -> Mapping[str, tuple[str, ...]]:
    """Give the tests that show a point where it is asked, by its name."""
    table = tomllib.loads(TESTS.read_text(encoding="utf-8"))
    return {name: tuple(tests) for name, tests in table["points"].items()}


def _made(file: Path) -> Iterator[str]:
    """Give the names that are called in a file, or handed on to be called."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        yield node.func.id
        if node.func.id == "partial" and isinstance(node.args[0], ast.Name):
            yield node.args[0].id


def _row(
    point: Point, asked: Mapping[str, tuple[str, ...]], tests: Mapping[str, tuple[str, ...]]
) -> str:
    name = point.input.__name__
    answers = ", ".join(f"`{one.__name__}`" for one in point.outcomes if one.__name__ != "GoOn")
    cells = (
        f"`{point.name}`",
        f"`{name}`",
        answers or "–",
        ", ".join(point.composition),
        point.on_failure,
        point.limit,
        ", ".join(f"`{one}`" for one in asked.get(name, ())),
        ", ".join(f"`{one.rpartition('::')[2]}`" for one in tests.get(point.name, ())),
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    _ = PAGE.write_text(page(), encoding="utf-8")
