"""Which command lines a rule is about: by its beginning, its program, and what its arguments may do."""

import os
from pathlib import Path

import pytest

from agent_core.workspace.permissions.policy.commands.arguments import STARTING, misleading
from agent_core.workspace.permissions.policy.commands.prefixes import spelt_as
from agent_core.workspace.permissions.policy.commands.programs import find_program
from tests.workspace.permissions.policy.world import World, command_rule, make_world, verdict


@pytest.mark.parametrize(
    ("argv", "command", "found"),
    [
        ("npm test", "npm test", "run"),
        ("npm test", "  npm   test  ", "run"),
        ("npm test", "npm test a b", "run"),
        ("npm test", "npm test && npm test x", "run"),
        ("npm test", "npm", "ask"),
        ("npm test", "npm testx", "ask"),
        ("npm test", "npm run test", "ask"),
        ("npm test", "npm --x test", "ask"),
        ("npm test", "npmx test", "ask"),
        ("npm test", "npm test && ls", "ask"),
        ("npm test", "npm test | ls", "ask"),
        ("npm test", "npm test; ls", "ask"),
        ("npm test", "npm test > x", "ask"),
        ("npm test", "npm test $x", "ask"),
        ("npm test", "X=1 npm test", "ask"),
        ("npm test", "", "ask"),
        ("npm test", "./npm test", "ask"),
        ("npm test", "bin/npm test", "ask"),
        ("npm test", "/bin/npm test", "ask"),
        ("sudo", "sudo ls", "ask"),
        ("xargs", "xargs rm", "ask"),
        ("python3", "python3 x.py", "ask"),
        ("git status", "git status", "run"),
        ("git status", "git -c a=b status", "ask"),
        ("git diff", "git diff --output=x", "ask"),
        ("ls", "ls ../x", "ask"),
        ("ls", "ls /etc", "ask"),
        ("ls", "ls src/../x", "run"),
        ("ls /etc", "ls /etc", "run"),
        ("ls /etc", "ls /etc /root", "ask"),
        ("nothere", "nothere", "ask"),
    ],
)  # fmt: skip
def test_an_allow_rule_covers_plain_commands_that_begin_with_it(
    lasting: World, argv: str, command: str, found: str
) -> None:
    rule = lasting.allow(*argv.split())
    assert verdict(lasting.command(command), lasting.situation(rule)) == found


def test_each_command_of_a_line_needs_a_rule(world: World) -> None:
    rules = (world.allow("ls"), world.allow("npm", "test"))
    assert verdict(world.command("ls && npm test; ls | npm test"), world.situation(*rules)) == "run"
    assert verdict(world.command("ls && npm test && cat x"), world.situation(*rules)) == "ask"


def test_a_program_is_looked_up_again_and_must_be_the_one_that_was_meant(world: World) -> None:
    rule = world.allow("ls")
    situation = world.situation(rule)
    before = world.base / "before"
    before.mkdir()
    path = f"{before}:{world.bin}"
    assert verdict(world.command("ls", path=path), situation) == "run"
    (before / "ls").write_text("", "utf-8")
    assert verdict(world.command("ls", path=path), situation) == "run"
    (before / "ls").chmod(0o755)
    assert verdict(world.command("ls", path=path), situation) == "ask"
    assert verdict(world.command(f"{world.bin}/ls", path=path), situation) == "run"
    assert verdict(world.command(f"{world.bin}/../bin/ls"), situation) == "ask"
    assert verdict(world.command(f"{before}/ls"), situation) == "ask"
    unpinned = command_rule("allow", "ls")
    assert verdict(world.command("ls"), world.situation(unpinned)) == "ask"


def test_git_is_allowed_outside_of_containment_only_where_it_starts_nothing(world: World) -> None:
    rules = (world.allow("git", "status"), world.allow("git", "fetch", host="*"))
    for containment in ("none", "partial"):
        situation = world.situation(*rules, containment=containment)
        assert verdict(world.command("git status", git_starts_programs=True), situation) == "ask"
        assert verdict(world.command("git status"), situation) == "run"
    full = world.situation(*rules, containment="full")
    fetch = world.command("git fetch", "network", git_starts_programs=True)
    assert verdict(fetch, full) == "run"
    assert verdict(fetch, world.situation(*rules)) == "ask"


def test_programs_are_found_as_a_shell_finds_them_but_not_in_the_workspace(tmp_path: Path) -> None:
    world = make_world(tmp_path, ["a", "b"])
    inside = world.root / "bin"
    inside.mkdir()
    (inside / "a").symlink_to(world.bin / "a")
    (world.bin / "led").symlink_to(inside / "real")
    (inside / "real").write_text("", "utf-8")
    (inside / "real").chmod(0o755)
    (world.bin / "plain").write_text("", "utf-8")
    (world.bin / "folder").mkdir()
    (world.bin / "b2").symlink_to("b")

    def find(word: str, *folders: str) -> str | None:
        return find_program(word, env_path=os.pathsep.join(folders), roots=(world.root,))

    here = str(world.bin)
    assert find("a", here) == f"{here}/a"
    assert find("a", "/nowhere", here) == f"{here}/a"
    assert find("b2", here) == f"{here}/b2"
    assert find("a", str(inside), here) is None
    assert find("led", here) is None
    for word in (
        "plain",
        "folder",
        "gone",
        "",
        "x\0y",
        "led/",
        "./a",
        "bin/a",
        f"{here}/./a",
        f"{inside}/real",
    ):
        assert find(word, here) is None, word
    assert find(f"{here}/a", "") == f"{here}/a"
    for relative in ("", ".", "bin"):
        assert find("a", relative, here) is None
        assert find("a", here, relative) == f"{here}/a"
    assert find("a") is None


def test_a_script_is_held_to_only_with_what_it_is_run_by(tmp_path: Path) -> None:
    world = make_world(tmp_path, ["real"])
    inside = world.root / "bin"
    inside.mkdir()

    def script(folder: Path, name: str, line: str) -> None:
        (folder / name).write_text(f"{line}\n", "utf-8")
        (folder / name).chmod(0o755)

    def find(word: str, *folders: Path) -> str | None:
        path = os.pathsep.join(str(one) for one in folders)
        return find_program(word, env_path=path, roots=(world.root,))

    script(world.bin, "node", "#!/bin/sh")
    script(world.bin, "direct", f"#!{world.bin}/node")
    for name, line in {
        "by name": "#!/usr/bin/env node", "by options": "#! /usr/bin/env  -S node --x", "by script": "#!/usr/bin/env direct"
    }.items():  # fmt: skip
        script(world.bin, name, line)
        assert find(name, world.bin) == f"{world.bin}/{name}"
    script(inside, "node", "#!/bin/sh")
    for name in ("by name", "by options"):
        assert find(name, inside, world.bin) is None
        assert find(name, world.bin, inside) == f"{world.bin}/{name}"
    assert find("by script", inside, world.bin) == f"{world.bin}/by script"
    for name, line in {
        "in the workspace": f"#!{inside}/node", "relative": "#!bin/node", "nothing": "#!", "round": "#!/usr/bin/env round",
        "sets": "#!/usr/bin/env -S A=1 node", "gone": "#!/usr/bin/env no-such-program", "bare": "#!/usr/bin/env",
    }.items():  # fmt: skip
        script(world.bin, name, line)
        assert find(name, world.bin) is None, name


def test_no_rule_covers_what_git_is_told_to_start(world: World) -> None:
    for words in (
        "bisect run x", "config core.pager x", "config --global alias.x !x", "difftool", "filter-branch", "mergetool",
        "submodule foreach x", "submodule --quiet foreach x",
    ):  # fmt: skip
        argv = ("git", *words.split())
        for rule in (world.allow("git"), world.allow(*argv[:2]), world.allow(*argv)):
            assert verdict(world.command(" ".join(argv)), world.situation(rule)) == "ask", words
    for words in ("bisect start", "submodule status", "log config", "diff -- config"):
        argv = ("git", *words.split())
        assert verdict(world.command(" ".join(argv)), world.situation(world.allow("git"))) == "run"


@pytest.mark.parametrize(
    ("prefix", "argv", "found"),
    [
        ("rm", "rm", True),
        ("rm", "rm x", True),
        ("rm", "/bin/rm x", True),
        ("rm", "RM x", True),
        ("/bin/rm", "rm x", True),
        ("rm", "rmdir x", False),
        ("rm -rf", "rm -rf x", True),
        ("rm -rf", "rm -fr x", True),
        ("rm -rf", "rm -r -f x", True),
        ("rm -rf", "rm -rfv x", True),
        ("rm -rf", "rm x -r -f", True),
        ("rm -rf", "rm -r x", False),
        ("rm -rf", "rm -r -- -f", False),
        ("rm -rf", "rm --rf x", False),
        ("rm -rf", "rm", False),
        ("git push", "git push -f", True),
        ("git push", "git -C . push", True),
        ("git push", "git --no-pager push", True),
        ("git push", "git --git-dir=x push", True),
        ("git push", "git --git-dir=x y push", False),
        ("git push", "git -c a=b -c c=d push", True),
        ("git push", "git stash push", False),
        ("git push", "git commit -m push", False),
        ("git push", "git -C x y push", False),
        ("git push", "git", False),
        ("git push", "git -C", False),
        ("git push --force", "git push --force", True),
        ("git push --force", "git push x --force=1", True),
        ("git push --force", "git push", False),
        ("git push --force", "git push --forced", False),
        ("npm run a", "npm run a", True),
        ("npm run a", "npm --x run -y z a", True),
        ("npm run a", "npm a run", False),
        ("cat -", "cat -", True),
        ("cat -", "cat -n", False),
        ("x -- y", "x -- y", True),
        ("x -- y", "x y", False),
    ],
)
def test_a_rule_that_denies_means_other_spellings_too(
    prefix: str, argv: str, *, found: bool
) -> None:
    assert spelt_as(tuple(prefix.split()), tuple(argv.split())) == found


def test_nothing_is_spelt_as_a_command_without_words() -> None:
    assert not spelt_as(("rm",), ())


@pytest.mark.parametrize(
    "command", ["ls; rm -rf x", "ls && /bin/rm -r -f x", "rm -rf x | ls"]
)  # fmt: skip
def test_a_denied_command_is_refused_anywhere_in_a_line(lasting: World, command: str) -> None:
    situation = lasting.situation(command_rule("deny", "rm", "-rf"), mode="yolo")
    assert verdict(lasting.command(command), situation) == "refuse"


HARMLESS = [
    ("git", "HEAD~1 -- src/a.py"), ("git", "main..feature"), ("git", "--stat -U5 --cached"), ("git", "--"),
    ("npm", "-- --watch=false"), ("pytest", "-x tests/a.py::b"), ("pytest", "-k a/b -vv --tb=short"),
    ("go", "-count=1 -run X ./..."), ("find", ". -name x -type f"), ("tool", "--output=x -o x -c y"),
    ("ls", "-la src/../lib"), ("ls", "--color=auto"), ("ls", "{root}/src"), ("ls", "-I{root}/src"),
    ("make", "-j4 all"), ("ls", "a..b"), ("ls", "-"), ("cat", "AGENTS.md"), ("git", "diff .github/workflows/ci.yml"), ("ls", ".git"),
    ("tool", ".env.example"), ("date", "+%s"), ("tree", "-L 2 src"), ("fd", "-e py x"),
]  # fmt: skip
MISLEADING = [
    ("git", "--output=x"), ("git", "--outpu=x"), ("git", "--o x"), ("git", "--ext-diff"), ("git", "--textconv"),
    ("git", "-Ox"), ("/usr/bin/git", "--output=x"), ("npm", "--prefix x"), ("npm", "--node-options=--require=./x"),
    ("npm", "-C x"), ("pnpm", "--prefix x"), ("yarn", "--prefix x"), ("pytest", "--rootdir x"), ("pytest", "-c x"),
    ("pytest", "-vvc x"), ("pytest", "-pevil"), ("py.test", "-c x"), ("go", "-exec x"), ("go", "-o=x"), ("go", "-C x"),
    ("find", ". -delete"), ("find", ". -exec rm {} +"), ("make", "-f x"), ("make", "--eval=x"), ("gmake", "-fx"),
    ("ls", "/etc"), ("ls", "../x"), ("ls", "src/../../x"), ("ls", "~"), ("ls", "~root/x"), ("ls", "--x=/etc"),
    ("ls", "-I/etc"), ("ls", "--x=../y"), ("ls", "a:/etc"), ("ls", "a,/etc"), ("ls", "@/etc"), ("ls", "a;/etc"),
    ("ls", "a|/etc"), ("ls", "file:///etc"), ("ls", "https://a.org"), ("ls", "--x=~"), ("ls", "{root}x"),
    ("ls", "{root}/.."), ("ls", "--x={root}/.."), ("ls", "-x../.."), ("make", "test SHELL=./x"), ("just", "a=b"),
    ("cat", "a .env"), ("ls", "-la .ssh"), ("git", "diff -- src/.env"), ("tool", "--out=.git/config"), ("tool", ".GIT/hooks/x"),
    ("tool", "a AGENTS.md"), ("tool", "-o.vscode/tasks.json"), ("git", "rebase -x y"), ("git", "clean -fdx"), ("fdfind", "a -x b"), ("tree", "-ao x"), ("date", "-s x"), ("man", "-Px ls"),
]  # fmt: skip


def _misleading(program: str, words: str, world: World) -> str | None:
    cut = words.replace("{root}", str(world.root)).split()
    return misleading(program, cut, cwd=world.root, roots=(world.root,))


@pytest.mark.parametrize(("program", "words"), HARMLESS)
def test_ordinary_arguments_are_covered_by_the_beginning(
    lasting: World, program: str, words: str
) -> None:
    assert _misleading(program, words, lasting) is None


@pytest.mark.parametrize(("program", "words"), MISLEADING)
def test_an_argument_that_leads_elsewhere_is_not(lasting: World, program: str, words: str) -> None:
    assert _misleading(program, words, lasting) is not None


def test_every_listed_option_is_found_alone_and_with_a_value(lasting: World) -> None:
    for program, options in STARTING.items():
        for option in options:
            assert _misleading(program, option, lasting) == option
            assert _misleading(program, f"x {option}=y", lasting) == f"{option}=y"


STARTERS = {
    "git": "--upload-pack=x", "npm": "--script-shell=x", "pytest": "-p", "cargo": "--config=x", "go": "-exec",
    "make": "--eval=x", "find": "-exec", "rg": "--pre=x", "sort": "--compress-program=x", "tar": "--to-command=x",
    "sed": "--in-place", "ruff": "--config=x", "mypy": "--python-executable=x", "eslint": "--plugin=x", "fd": "--exec",
    "tree": "-o", "date": "--set=x", "man": "--pager=x", "jest": "--runner=x", "mocha": "--require=x", "vitest": "--config=x",
    "prettier": "--plugin=x", "rspec": "--require=x", "rubocop": "--require=x", "flake8": "--config=x", "tox": "--override=x",
    "pip": "--target=x", "gradle": "--init-script=x", "mvn": "--settings=x", "ctest": "--script=x",
    # Other names of the same.
    "pnpm": "--script-shell=x", "yarn": "--script-shell=x", "py.test": "-p", "gmake": "--eval=x", "fdfind": "--exec",
    "pip3": "--target=x", "just": "SHELL=./x",
}  # fmt: skip


@pytest.mark.parametrize("program", STARTERS)
def test_no_rule_covers_the_option_by_which_a_program_starts_another(
    lasting: World, program: str
) -> None:
    assert _misleading(program, f"sub {STARTERS[program]}", lasting) == STARTERS[program]
    assert _misleading(program, "sub", lasting) is None


def test_a_relative_argument_is_taken_from_where_the_command_stands(world: World) -> None:
    deep = world.root / "a" / "b"
    assert misleading("ls", ["../.."], cwd=deep, roots=(world.root,)) is None
    assert misleading("ls", ["../../.."], cwd=deep, roots=(world.root,)) == "../../.."
