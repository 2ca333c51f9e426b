"""The tool find: files and folders by glob, the same with ripgrep and without it."""

import time
from collections.abc import Mapping

import pytest

from agent_core.kernel import JsonValue
from agent_core.kernel.text import DEFAULT_MAX_BYTES
from tests.support.workspace.searches import ENGINES, Engine, searching_with
from tests.tools.conftest import Bench, details, words

TREE = ("a.ex", "lib/b.ex", "lib/deep/er/c.ex", "lib/deep/c.exs", "src/lib/d.ex", "src/[x].ts")
NOTHING = "No files found matching pattern"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, bench: Bench) -> Engine:
    chosen: Engine = request.param
    bench.workspace = searching_with(chosen, bench.workspace)
    return chosen


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        pytest.param("*.ex", "a.ex lib/b.ex lib/deep/er/c.ex src/lib/d.ex", id="name"),
        pytest.param("**/*.ex", "a.ex lib/b.ex lib/deep/er/c.ex src/lib/d.ex", id="any depth"),
        pytest.param("c.ex", "lib/deep/er/c.ex", id="whole name"),
        pytest.param("C.ex", "", id="case counts"),
        pytest.param("*.EX", "", id="case of an ending counts"),
        pytest.param("lib", "lib/ src/lib/", id="folders"),
        pytest.param("lib/", "lib/ src/lib/", id="folders alone"),
        pytest.param("b.ex/", "", id="no folder"),
        pytest.param("lib/*.ex", "lib/b.ex src/lib/d.ex", id="path at any depth"),
        pytest.param("/lib/*.ex", "lib/b.ex", id="path from the folder"),
        pytest.param("./lib/*.ex", "lib/b.ex", id="path from here"),
        pytest.param("lib/**", "lib/b.ex lib/deep/ lib/deep/c.exs lib/deep/er/ lib/deep/er/c.ex src/lib/d.ex", id="all below"),
        pytest.param("lib/**/c.*", "lib/deep/c.exs lib/deep/er/c.ex", id="between"),
        pytest.param("lib/**/b.ex", "lib/b.ex", id="no folder between"),
        pytest.param("*.{exs,ts}", "lib/deep/c.exs src/[x].ts", id="braces"),
        pytest.param("{lib,src}/*.{ex,ts}", "lib/b.ex src/[x].ts src/lib/d.ex", id="braces in a path"),
        pytest.param("[bd].ex", "lib/b.ex src/lib/d.ex", id="class"),
        pytest.param("[!a-c].ex", "src/lib/d.ex", id="negated class"),
        pytest.param("?.exs", "lib/deep/c.exs", id="one character"),
        pytest.param(r"\[x\].ts", "src/[x].ts", id="escaped"),
        pytest.param("[[]x*", "src/[x].ts", id="a class of a bracket"),
        pytest.param("*x*", "a.ex lib/b.ex lib/deep/c.exs lib/deep/er/c.ex src/[x].ts src/lib/d.ex", id="inside"),
        pytest.param("*.xyz", "", id="nothing"),
        pytest.param("[", "", id="an open bracket"),
        pytest.param("{a", "", id="an open brace"),
    ],
)  # fmt: skip
async def test_what_fits_is_found(bench: Bench, engine: Engine, pattern: str, found: str) -> None:
    for name in TREE:
        bench.put(name, "")
    outcome = await bench.run("find", pattern=pattern)
    assert (outcome.status, words(outcome).split()) == ("ok", found.split() or NOTHING.split())
    assert details(outcome) == {
        "pattern": pattern,
        "path": str(bench.root),
        "engine": engine,
        "result_count": len(found.split()),
        "limit_reached": False,
        "truncated": False,
    }


async def test_an_absolute_pattern_is_about_the_folder(bench: Bench, engine: Engine) -> None:
    bench.put("sub/a.txt", "")
    bench.put("sub/sub/a.txt", "")
    outcome = await bench.run("find", pattern=f"{bench.root}/sub/*.txt")
    assert (words(outcome), details(outcome)["engine"]) == ("sub/a.txt", engine)


async def test_hidden_files_are_found(bench: Bench, engine: Engine) -> None:
    bench.put(".secret/hidden.txt", "")
    bench.put("visible.txt", "")
    outcome = await bench.run("find", pattern="*.txt")
    assert (words(outcome), details(outcome)["engine"]) == (
        ".secret/hidden.txt\nvisible.txt",
        engine,
    )


async def test_ignored_files_are_not(bench: Bench, engine: Engine) -> None:
    bench.put(".gitignore", "ignored.txt\nout/\n*.log\n!keep.log\n")
    bench.put(".ignore", "private*\n")
    bench.put("sub/.gitignore", "/only-here.txt\n")
    for name in ("ignored.txt", "out/a.txt", "a.log", "keep.log", "private.txt", ".git/a.txt"):
        bench.put(name, "")
    for name in ("sub/ignored.txt", "sub/only-here.txt", "sub/deep/only-here.txt", "seen.txt"):
        bench.put(name, "")
    outcome = await bench.run("find", pattern="*.{txt,log}")
    assert words(outcome).split() == ["keep.log", "seen.txt", "sub/deep/only-here.txt"]
    inside = await bench.run("find", pattern="*", path="sub")
    assert words(inside).split() == [".gitignore", "deep/", "deep/only-here.txt"]
    assert details(inside)["engine"] == engine


@pytest.mark.parametrize(
    ("line", "found"),
    [
        pytest.param("src/build", "x/ x/build x/y", id="of the same name further down"),
        pytest.param("/src/x/build", "x/ x/y build", id="further down"),
        pytest.param("src/*/build", "x/ x/y build", id="any folder"),
        pytest.param("sr?/**/build", "x/ x/y", id="any depth"),
        pytest.param("/src/x/", "build", id="folder"),
    ],
)
async def test_a_path_in_an_ignore_file_above_the_folder_is_that_path_alone(
    bench: Bench, engine: Engine, line: str, found: str
) -> None:
    bench.put(".gitignore", f"*.log\n{line}\n")
    for name in ("src/build", "src/x/build", "src/x/y", "src/x/a.log"):
        bench.put(name, "")
    outcome = await bench.run("find", pattern="*", path="src")
    assert set(words(outcome).split()) == set(found.split())
    # ripgrep reads such a line wrongly.
    assert details(outcome)["engine"] == "builtin"


@pytest.mark.parametrize(
    "line", ["/build", "other/x", "src", "**/gone", "other/**/x", "a b/", "# src/x"]
)
async def test_other_lines_above_the_folder_are_left_to_ripgrep(
    bench: Bench, engine: Engine, line: str
) -> None:
    bench.put(".gitignore", f"{line}\n")
    bench.put("src/x/build", "")
    outcome = await bench.run("find", pattern="*", path="src")
    assert (words(outcome).split(), details(outcome)["engine"]) == (["x/", "x/build"], engine)


async def test_ignore_files_end_at_a_repository(bench: Bench, engine: Engine) -> None:
    bench.put(".gitignore", "*.log\n")
    bench.put("repo/.git/info/exclude", "mine.txt\n")
    for name in ("repo/a.log", "repo/mine.txt", "repo/module/.git", "repo/module/mine.txt"):
        bench.put(name, "")
    outcome = await bench.run("find", pattern="*.*", path="repo")
    assert words(outcome).split() == ["a.log", "module/mine.txt"]
    assert details(outcome)["engine"] == engine


async def test_outside_a_repository_ignore_files_hold_for_all_below(
    bench: Bench, engine: Engine
) -> None:
    bench.put(".gitignore", "*.log\n")
    for name in ("repo/.git/HEAD", "repo/a.log", "repo/a.txt", "b.log"):
        bench.put(name, "")
    outcome = await bench.run("find", pattern="*.*")
    assert words(outcome).split() == [".gitignore", "repo/a.txt"]
    assert details(outcome)["engine"] == engine


async def test_links_are_neither_followed_nor_found(bench: Bench, engine: Engine) -> None:
    bench.put("real/a.txt", "")
    (bench.root / "link").symlink_to("real")
    (bench.root / "link.txt").symlink_to("real/a.txt")
    (bench.root / "round").symlink_to(".")
    (bench.root / "gone.txt").symlink_to("nowhere")
    outcome = await bench.run("find", pattern="*")
    assert (words(outcome).split(), details(outcome)["engine"]) == (["real/", "real/a.txt"], engine)


async def test_an_empty_folder_is_not_found(bench: Bench, engine: Engine) -> None:
    (bench.root / "empty").mkdir()
    bench.put("full/a", "")
    outcome = await bench.run("find", pattern="*")
    assert (words(outcome).split(), details(outcome)["engine"]) == (["full/", "full/a"], engine)


async def test_no_more_are_given_than_asked_for(bench: Bench, engine: Engine) -> None:
    for n in range(8):
        bench.put(f"{n}.txt", "")
    outcome = await bench.run("find", pattern="*", limit=5)
    assert words(outcome) == (
        "0.txt\n1.txt\n2.txt\n3.txt\n4.txt\n\n"
        "[5 results limit reached. Use limit=10 for more, or refine pattern]"
    )
    told = details(outcome)
    assert (told["result_count"], told["limit_reached"], told["truncated"]) == (5, True, True)
    assert told["engine"] == engine


async def test_exactly_as_many_as_asked_for_are_all(bench: Bench, engine: Engine) -> None:
    for n in range(5):
        bench.put(f"{n}.txt", "")
    outcome = await bench.run("find", pattern="*", limit=5)
    assert words(outcome) == "0.txt\n1.txt\n2.txt\n3.txt\n4.txt"
    assert (details(outcome)["limit_reached"], details(outcome)["engine"]) == (False, engine)


async def test_more_than_fits_is_cut(bench: Bench, engine: Engine) -> None:
    for n in range(400):
        bench.put(f"{n:03}-{'n' * 200}.txt", "")
    outcome = await bench.run("find", pattern="*.txt", limit=300)
    shown, _, notice = words(outcome).rpartition("\n\n")
    assert notice == (
        "[300 results limit reached. Use limit=600 for more, or refine pattern. 50.0KB limit reached]"
    )
    assert len(shown.encode()) <= DEFAULT_MAX_BYTES
    assert shown.splitlines()[-1].endswith("n.txt")
    assert details(outcome)["engine"] == engine


async def test_odd_names_are_one_line_each(bench: Bench, engine: Engine) -> None:
    bench.put("new\nline.txt", "")
    bench.put("sp ace.txt", "")
    with open(bytes(bench.root) + b"/bad\xff.txt", "wb"):  # noqa: ASYNC230,PTH123 - a name that is no text
        pass
    outcome = await bench.run("find", pattern="*.txt")
    assert words(outcome).split("\n") == ["bad\ufffd.txt", r"new\nline.txt", "sp ace.txt"]
    assert details(outcome)["engine"] == engine


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("**/a*/" * 12 + "b", id="folders"),
        pytest.param("*[ab]?a" * 12 + "b", id="classes"),
        pytest.param("*a" * 60 + "b", id="stars"),
        pytest.param("{a,b}" * 9 + "*" * 50 + "c", id="braces"),
    ],
)
async def test_no_pattern_takes_long(bench: Bench, engine: Engine, pattern: str) -> None:
    bench.put("/".join(["a" * 100] * 20) + f"/{'a' * 200}", "")
    begun = time.monotonic()
    outcome = await bench.run("find", pattern=pattern)
    assert time.monotonic() - begun < 5
    assert (words(outcome), details(outcome)["engine"]) == (NOTHING, engine)


@pytest.mark.parametrize(
    ("pattern", "told"),
    [
        pytest.param("../*.py", "The pattern '../*.py' leads out of the searched folder", id="up"),
        pytest.param("/", "'/' matches nothing", id="root"),
        pytest.param("{a,b}" * 12, "The braces in ", id="braces"),
        pytest.param("a" * 2_000, "The pattern has 2000 characters, more than 1000", id="long"),
    ],
)
async def test_a_pattern_that_cannot_be_is_explained(bench: Bench, pattern: str, told: str) -> None:
    outcome = await bench.run("find", pattern=pattern)
    assert outcome.status == "error"
    assert words(outcome).startswith(told)


@pytest.mark.parametrize("pattern", [None, 42, [], {"a": 1}, True])
async def test_a_pattern_of_another_type_is_refused(bench: Bench, pattern: JsonValue) -> None:
    outcome = await bench.run("find", pattern=pattern)
    assert outcome.status == "error"
    assert words(outcome).startswith(
        'Validation failed for tool "find":\n  - pattern: Input should be a valid string\n'
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({}, "  - pattern: Field required", id="no pattern"),
        pytest.param({"pattern": " "}, "  - pattern: The pattern is empty", id="empty"),
        pytest.param({"pattern": "*", "limit": "x"}, "  - limit: Input should be", id="limit"),
        pytest.param({"pattern": "*", "path": 42}, "  - path: Input should be", id="path"),
    ],
)
async def test_arguments_that_do_not_fit_are_explained(
    bench: Bench, arguments: Mapping[str, JsonValue], problem: str
) -> None:
    outcome = await bench.call("find", arguments)
    assert outcome.status == "error"
    assert words(outcome).splitlines()[1].startswith(problem)


@pytest.mark.parametrize(
    ("path", "told"),
    [
        pytest.param("gone", "Path not found: {root}/gone", id="missing"),
        pytest.param("a.txt", "Not a directory: {root}/a.txt. ", id="file"),
        pytest.param("/etc", "'/etc' leads outside the workspace", id="outside"),
    ],
)
async def test_a_path_that_is_no_folder_is_named(bench: Bench, path: str, told: str) -> None:
    bench.put("a.txt", "")
    outcome = await bench.run("find", pattern="*", path=path)
    assert outcome.status == "error"
    assert words(outcome).startswith(told.format(root=bench.root))
