"""The tool grep: matching lines of files, the same with ripgrep and without it."""

import base64
from collections.abc import Mapping

import pytest

from agent_core.kernel import JsonValue
from agent_core.kernel.text import DEFAULT_MAX_BYTES
from tests.support.workspace.searches import ENGINES, Engine, searching_with
from tests.tools.conftest import Bench, details, words

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
TEN = "".join(f"line {n} x\n" for n in range(1, 11))
LONG = f"{'a' * 600} needle {'b' * 3_000_000}"

Case = tuple[Mapping[str, str | bytes], Mapping[str, JsonValue], str]

CASES = [
    pytest.param(
        ({"file.txt": "one\ntwo\nhello world\n"}, {"pattern": "hello", "path": "file.txt"},
         "file.txt:3: hello world"),
        id="one file",
    ),
    pytest.param(
        ({"a.txt": "a test\n", "b.txt": "nothing\n", "sub/c.txt": "x\ntest c\n"},
         {"pattern": "test"},
         "a.txt:1: a test\nsub/c.txt:2: test c"),
        id="many files",
    ),
    pytest.param(
        ({"a.txt": "text\n"}, {"pattern": "nonexistent", "path": "a.txt"}, "No matches found"),
        id="nothing in a file",
    ),
    pytest.param(({}, {"pattern": "x"}, "No matches found"), id="nothing in a folder"),
    pytest.param(
        ({"sub/deep/a.txt": "hit\n", "a.txt": "hit\n"}, {"pattern": "hit", "path": "sub"},
         "deep/a.txt:1: hit"),
        id="paths from the searched folder",
    ),
    pytest.param(
        ({"a.txt": TEN}, {"pattern": "x", "limit": 1, "context": 1},
         ("a.txt:1: line 1 x\na.txt-2- line 2 x\n\n"
         "[1 matches limit reached. Use limit=2 for more, or refine pattern]")),
        id="limit and context",
    ),
    pytest.param(
        ({"a.txt": "1\n2\nhit\n4\n5\n6\n7\nhit\nhit\n10\n"},
         {"pattern": "hit", "context": 1},
         "a.txt-2- 2\na.txt:3: hit\na.txt-4- 4\na.txt-7- 7\na.txt:8: hit\na.txt:9: hit\na.txt-10- 10"),
        id="context",
    ),
    pytest.param(
        ({"a.txt": "hit\n2\nhit\n4\n5\n6\nhit\n"}, {"pattern": "hit", "context": 2, "limit": 2},
         ("a.txt:1: hit\na.txt-2- 2\na.txt:3: hit\na.txt-4- 4\na.txt-5- 5\n\n"
         "[2 matches limit reached. Use limit=4 for more, or refine pattern]")),
        id="the context of the last match ends before the next one",
    ),
    pytest.param(
        ({"a.txt": TEN}, {"pattern": "x", "limit": 2, "context": 3},
         ("a.txt:1: line 1 x\na.txt:2: line 2 x\na.txt-3- line 3 x\na.txt-4- line 4 x\na.txt-5- line 5 x\n\n"
         "[2 matches limit reached. Use limit=4 for more, or refine pattern]")),
        id="matches beyond the limit are context",
    ),
    pytest.param(
        ({"a.txt": "hit\nend"}, {"pattern": "hit", "context": 3, "limit": 1}, "a.txt:1: hit\na.txt-2- end"),
        id="context up to the end",
    ),
    pytest.param(
        ({"a.txt": TEN}, {"pattern": "x", "limit": 10},
         "\n".join(f"a.txt:{n}: line {n} x" for n in range(1, 11))),
        id="as many as the limit are all",
    ),
    pytest.param(
        ({"a.txt": "foo.bar(baz)\nfooxbar(baz)\n"}, {"pattern": r"foo\.bar\("},
         "a.txt:1: foo.bar(baz)"),
        id="escaped characters",
    ),
    pytest.param(
        ({"a.txt": "foo.bar(baz)\nfooxbar(baz)\n"}, {"pattern": "foo.bar(", "literal": True},
         "a.txt:1: foo.bar(baz)"),
        id="literal",
    ),
    pytest.param(
        ({"a.txt": "Hello World\n"}, {"pattern": "hello", "ignoreCase": True},
         "a.txt:1: Hello World"),
        id="any case",
    ),
    pytest.param(
        ({"a.txt": "Hello World\n"}, {"pattern": "hello", "ignore_case": "true"},
         "a.txt:1: Hello World"),
        id="any case by another name",
    ),
    pytest.param(
        ({"a.txt": "Hello World\n"}, {"pattern": "hello"}, "No matches found"), id="case counts"
    ),
    pytest.param(
        ({"a.ex": "test\n", "b.js": "test\n", "s/c.ex": "test\n"},
         {"pattern": "test", "glob": "*.ex"}, "a.ex:1: test\ns/c.ex:1: test"),
        id="glob",
    ),
    pytest.param(
        ({"a.ex": "test\n", "b.js": "test\n", "s/c.ex": "test\n"},
         {"pattern": "test", "glob": "s/*.{js,ex}"}, "s/c.ex:1: test"),
        id="glob with a folder",
    ),
    pytest.param(
        ({"a.ex": "test\n", "b.js": "test\n"}, {"pattern": "test", "glob": "!*.js"},
         "a.ex:1: test"),
        id="glob that leaves out",
    ),
    pytest.param(
        ({".gitignore": "*.log\n", "a.log": "test\n", ".git/x.log": "test\n"},
         {"pattern": "test", "glob": "*.log"}, "a.log:1: test"),
        id="a glob prevails over ignore files, but for git's own",
    ),
    pytest.param(
        ({"p.png": PNG + b"\0test\n", "a.txt": "test\n"}, {"pattern": "test"}, "a.txt:1: test"),
        id="binary",
    ),
    pytest.param(
        ({"p.bin": b"test\n\0\1\n"}, {"pattern": "test", "path": "p.bin"}, "No matches found"),
        id="a binary file by name",
    ),
    pytest.param(
        ({".gitignore": "no.txt\nout/\n", "no.txt": "x\n", "out/a.txt": "x\n", "yes.txt": "x\n",
          "sub/.gitignore": "/b.txt\n", "sub/b.txt": "x\n", "sub/d/b.txt": "x\n"},
         {"pattern": "^x"}, "sub/d/b.txt:1: x\nyes.txt:1: x"),
        id="ignored files",
    ),
    pytest.param(
        ({".gitignore": "no.txt\na.*\n", "sub/no.txt": "x\n", "sub/a.txt": "x\n", "sub/b.txt": "x\n"},
         {"pattern": "x", "path": "sub"}, "b.txt:1: x"),
        id="ignore files above the searched folder",
    ),
    pytest.param(
        ({".gitignore": "no.txt\n", "no.txt": "x\n"}, {"pattern": "x", "path": "no.txt"},
         "no.txt:1: x"),
        id="an ignored file by name",
    ),
    pytest.param(
        ({".rc": "x\n", ".hid/a": "x\n", ".git/config": "x\n"}, {"pattern": "x"},
         ".hid/a:1: x\n.rc:1: x"),
        id="hidden files but not git's",
    ),
    pytest.param(
        ({"a.txt": "end;\r\nend; \r\n"}, {"pattern": ";$"}, "a.txt:1: end;"), id="crlf"
    ),
    pytest.param(({"a.txt": "no newline"}, {"pattern": "line$"}, "a.txt:1: no newline"), id="no end"),
    pytest.param(
        ({"a.txt": "größe 🌍\n"}, {"pattern": "GRÖSSE|GRÖẞE|größe"}, "a.txt:1: größe 🌍"), id="unicode"
    ),
    pytest.param(
        ({"a.txt": "héllo\n".encode("utf-16")}, {"pattern": "héllo"}, "a.txt:1: héllo"), id="utf-16"
    ),
    pytest.param(
        ({"a.txt": b"\xef\xbb\xbfhello\n"}, {"pattern": "^hello"}, "a.txt:1: hello"), id="mark"
    ),
    pytest.param(({"a.txt": "-x -y\n"}, {"pattern": "-y"}, "a.txt:1: -x -y"), id="a leading dash"),
    pytest.param(
        ({"a.txt": "--files\n"}, {"pattern": "--files", "literal": True}, "a.txt:1: --files"),
        id="a pattern like an option",
    ),
    pytest.param(
        ({"-a.txt": "x\n", "-": "x\n"}, {"pattern": "x", "path": "-a.txt"}, "-a.txt:1: x"),
        id="a file like an option",
    ),
    pytest.param(
        ({"a.txt": "x" * 500 + "\n" + "x" * 501 + "\n"}, {"pattern": "x"},
         (f"a.txt:1: {'x' * 500}\na.txt:2: {'x' * 500}... [truncated]\n\n"
         "[Some lines truncated to 500 chars. Use read tool to see full lines]")),
        id="long lines",
    ),
    pytest.param(
        ({"a.txt": f"1\n{LONG}\n3\n"}, {"pattern": "needle", "context": 1},
         (f"a.txt-1- 1\na.txt:2: {'a' * 500}... [truncated]\na.txt-3- 3\n\n"
         "[Some lines truncated to 500 chars. Use read tool to see full lines]")),
        id="a line of megabytes",
    ),
    pytest.param(
        ({"a.txt": "é\t\"\\" * 40_000 + "\n"}, {"pattern": "é"},
         (f"a.txt:1: {('é' + chr(9) + chr(34) + chr(92)) * 125}... [truncated]\n\n"
         "[Some lines truncated to 500 chars. Use read tool to see full lines]")),
        id="a long line with very many matches",
    ),
    pytest.param(
        ({"a.txt": "ab" * 100 + "\n"}, {"pattern": "b*"}, f"a.txt:1: {'ab' * 100}"),
        id="empty matches",
    ),
    pytest.param(
        ({"b.txt": TEN, "a.txt": "y\n" * 3 + LONG + "\n"},
         {"pattern": "x|needle", "limit": 11},
         f"a.txt:4: {'a' * 500}... [truncated]\n"
         + "\n".join(f"b.txt:{n}: line {n} x" for n in range(1, 11))
         + "\n\n[Some lines truncated to 500 chars. Use read tool to see full lines]"),
        id="files in order",
    ),
    pytest.param(({"a.txt": "x\n"}, {"pattern": "x", "limit": 0}, "a.txt:1: x"), id="no limit"),
    pytest.param(({"a.txt": "x\n"}, {"pattern": "x", "path": None, "glob": None}, "a.txt:1: x"), id="nulls"),
    pytest.param(({"a.txt": "x\n"}, {"pattern": "x", "context": -2}, "a.txt:1: x"), id="negative"),
]  # fmt: skip


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, bench: Bench) -> Engine:
    chosen: Engine = request.param
    bench.workspace = searching_with(chosen, bench.workspace)
    return chosen


async def test_a_path_in_an_ignore_file_above_the_folder_is_that_path_alone(
    bench: Bench, engine: Engine
) -> None:
    bench.put(".gitignore", "src/build\n")
    for name in ("src/build", "src/x/build"):
        bench.put(name, "hit\n")
    outcome = await bench.run("grep", pattern="hit", path="src")
    assert words(outcome) == "x/build:1: hit"
    file = await bench.run("grep", pattern="hit", path="src/x/build")
    assert (words(file), details(file)["engine"]) == ("build:1: hit", engine)


@pytest.mark.parametrize("case", CASES)
async def test_what_matches_is_given(bench: Bench, engine: Engine, case: Case) -> None:
    files, arguments, told = case
    for name, content in files.items():
        bench.put(name, content)
    outcome = await bench.call("grep", arguments)
    assert (outcome.status, words(outcome)) == ("ok", told)
    assert details(outcome)["engine"] == engine


async def test_the_facts_are_told(bench: Bench, engine: Engine) -> None:
    bench.put("a.txt", "x\nx\ny\n")
    bench.put("b.txt", "x\n")
    bench.put("c.txt", "y\n")
    assert details(await bench.run("grep", pattern="x")) == {
        "pattern": "x",
        "path": str(bench.root),
        "engine": engine,
        "file_count": 2,
        "match_count": 3,
        "limit_reached": False,
        "lines_truncated": False,
        "truncated": False,
    }


async def test_more_than_fits_is_cut(bench: Bench, engine: Engine) -> None:
    for n in range(20):
        bench.put(f"{n:02}.txt", f"common word {n} {'-' * 60}\n" * 100)
    outcome = await bench.run("grep", pattern="common", limit=5_000)
    shown, _, notice = words(outcome).rpartition("\n\n")
    assert notice == "[50.0KB limit reached]"
    assert len(shown.encode()) <= DEFAULT_MAX_BYTES
    assert shown.startswith("00.txt:1: common word 0 -")
    told = details(outcome)
    assert (told["match_count"], told["truncated"], told["limit_reached"]) == (2_000, True, False)
    assert told["truncation"]["truncated_by"] == "bytes"
    assert told["engine"] == engine


async def test_every_notice_stands_in_one_bracket(bench: Bench, engine: Engine) -> None:
    bench.put("a.txt", f"{'x' * 600}\n" * 1_000)
    outcome = await bench.run("grep", pattern="x", limit=500)
    assert words(outcome).rpartition("\n\n")[2] == (
        "[500 matches limit reached. Use limit=1000 for more, or refine pattern. "
        "50.0KB limit reached. "
        "Some lines truncated to 500 chars. Use read tool to see full lines]"
    )
    assert details(outcome)["engine"] == engine


async def test_a_link_is_not_followed(bench: Bench, engine: Engine) -> None:
    bench.put("real/a.txt", "x\n")
    (bench.root / "folder").symlink_to("real")
    (bench.root / "file").symlink_to("real/a.txt")
    outcome = await bench.run("grep", pattern="x")
    assert (words(outcome), details(outcome)["engine"]) == ("real/a.txt:1: x", engine)


async def test_an_unreadable_file_is_passed_over(plain_bench: Bench) -> None:
    plain_bench.put("a.txt", "x\n").chmod(0)
    plain_bench.put("b.txt", "x\n")
    outcome = await plain_bench.run("grep", pattern="x")
    assert (outcome.status, words(outcome)) == ("ok", "b.txt:1: x")
    plain_bench.workspace = searching_with("builtin", plain_bench.workspace)
    outcome = await plain_bench.run("grep", pattern="x")
    assert (outcome.status, words(outcome)) == ("ok", "b.txt:1: x")


async def test_a_line_in_another_encoding_is_read_as_well_as_can_be(bench: Bench) -> None:
    bench.put("a.txt", b"\xff\xfe\xfdab hello\n"[2:])
    outcome = await bench.run("grep", pattern="hello")
    assert words(outcome) == "a.txt:1: \ufffdab hello"


async def test_a_pattern_that_is_none_is_explained(bench: Bench, engine: Engine) -> None:
    bench.put("a.txt", "text\n")
    outcome = await bench.run("grep", pattern="(")
    assert outcome.status == "error"
    first, *_, last = words(outcome).splitlines()
    assert first.startswith("The pattern '(' is not a valid regular expression: ")
    assert (
        last
        == "Escape special characters with a backslash, or set literal to true to search for the text as it is."
    )
    assert engine == "builtin" or "unclosed group" in words(outcome)


async def test_a_glob_that_is_none_is_explained(bench: Bench) -> None:
    outcome = await bench.run("grep", pattern="x", glob="[")
    assert (outcome.status, words(outcome)) == (
        "error",
        "The glob '[' is not valid: error parsing glob '[': unclosed character class; missing ']'",
    )


@pytest.mark.parametrize(
    ("glob", "told"),
    [
        pytest.param("../*.py", "The pattern '../*.py' leads out of the searched folder", id="up"),
        pytest.param("!", "'' matches nothing", id="nothing left out"),
        pytest.param("/", "'/' matches nothing", id="root"),
        pytest.param("a" * 2_000, "The pattern has 2000 characters", id="long"),
    ],
)
@pytest.mark.usefixtures("engine")
async def test_a_glob_that_fits_nothing_is_explained(bench: Bench, glob: str, told: str) -> None:
    outcome = await bench.run("grep", pattern="x", glob=glob)
    assert outcome.status == "error"
    assert words(outcome).startswith(told)


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"pattern": "(x|y)" * 2_000}, id="a long pattern"),
        pytest.param({"pattern": "x", "glob": "a\0b"}, id="a NUL in the glob"),
    ],
)
async def test_what_no_text_has_is_not_found(
    bench: Bench, arguments: Mapping[str, JsonValue]
) -> None:
    bench.put("a.txt", "text\n")
    outcome = await bench.call("grep", arguments)
    assert (outcome.status, words(outcome)) == ("ok", "No matches found")


@pytest.mark.parametrize("pattern", [None, 42, [], {"a": 1}, True])
async def test_a_pattern_of_another_type_is_refused(bench: Bench, pattern: JsonValue) -> None:
    outcome = await bench.run("grep", pattern=pattern, path=".")
    assert outcome.status == "error"
    assert words(outcome).startswith(
        'Validation failed for tool "grep":\n  - pattern: Input should be a valid string\n'
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        pytest.param({}, "  - pattern: Field required", id="no pattern"),
        pytest.param({"pattern": ""}, "  - pattern: The pattern is empty", id="empty"),
        pytest.param({"pattern": "a\nb"}, "  - pattern: The pattern has more than one line", id="lines"),
        pytest.param({"pattern": "a\0"}, "  - pattern: The pattern has a NUL", id="nul"),
        pytest.param({"pattern": "a" * 3_000_000}, "  - pattern: The pattern has 3000000 characters", id="long"),
        pytest.param({"pattern": "a", "limit": True}, "  - limit: Input should be a number", id="limit"),
        pytest.param({"pattern": "a", "context": "many"}, "  - context: Input should be", id="context"),
        pytest.param({"pattern": "a", "path": 42}, "  - path: Input should be a valid string", id="path"),
        pytest.param({"pattern": "a", "glob": 1}, "  - glob: Input should be a valid string", id="glob"),
    ],
)  # fmt: skip
async def test_arguments_that_do_not_fit_are_explained(
    bench: Bench, arguments: Mapping[str, JsonValue], problem: str
) -> None:
    outcome = await bench.call("grep", arguments)
    assert outcome.status == "error"
    assert words(outcome).splitlines()[1].startswith(problem)


async def test_a_missing_path_is_named(bench: Bench) -> None:
    outcome = await bench.run("grep", pattern="x", path="gone")
    assert (outcome.status, words(outcome)) == ("error", f"Path not found: {bench.root / 'gone'}")


async def test_a_path_outside_is_refused(bench: Bench) -> None:
    outcome = await bench.run("grep", pattern="x", path="../..")
    assert outcome.status == "error"
    assert "leads outside the workspace" in words(outcome)
