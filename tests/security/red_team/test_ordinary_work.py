"""Ordinary work goes on in full containment: each command alone, in a small real project, without the network."""

import io
import json
import os
import pwd
import shutil
import sys
import sysconfig
import tarfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agent_core.workspace.sandbox.backends.bubblewrap import TEMPORARY
from tests.security.red_team.containment import Commands, Ran
from tests.security.red_team.world import World, world

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="full containment is for Linux"),
    pytest.mark.timeout(120),
]
MANY = 6_000
HISTORY = r"""
echo two > two.txt; git add two.txt; git commit -q -m two
git checkout -q -b topic HEAD~1; echo topic > topic.txt; git add topic.txt; git commit -q -m topic
git checkout -q main
git checkout -q -b dirty main; git checkout -q main
"""


class Work:
    """A project in which commands run."""

    def __init__(self, machine: World, commands: Commands) -> None:
        self.world = machine
        self.root = machine.root
        self.commands = commands

    def run(self, command: str) -> Ran:
        """Run a contained command."""
        return self.commands.run(command)

    def done(self, command: str) -> str:
        """Run a contained command that must succeed and from which nothing is taken away; gives its output."""
        ran = self.run(command)
        assert (ran.refused, ran.exit_code, ran.quarantined) == (None, 0, ()), ran
        return ran.output

    def git(self, *words: str) -> str:
        """Ask git from outside."""
        return self.world.git(*words).strip()

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


@pytest.fixture
def work() -> Iterator[Work]:
    with world() as machine:
        _ = machine.as_user(HISTORY)
        with machine.session() as commands:
            yield Work(machine, commands)


def _program(name: str) -> str:
    """Return where a program lies; skips with a printed reason."""
    found = shutil.which(name, path=os.defpath)
    if found is None:
        pytest.skip(f"this machine has no {name} in {os.defpath}")
    return found


def _interpreter() -> str:
    """Return this interpreter; skips with a printed reason where contained commands do not see it."""
    if any(Path(sys.executable).is_relative_to(folder) for folder in TEMPORARY):
        pytest.skip(f"{sys.executable} is in a temporary folder, which commands have their own of")
    return sys.executable


# git


@pytest.mark.parametrize(
    "command",
    [
        *("git status", "git status --short", "git diff", "git diff HEAD~1", "git log --oneline", "git log -p -1"),
        *("git show HEAD", "git branch -a", "git blame two.txt", "git rev-parse HEAD", "git ls-files", "git stash list"),
        *("git tag", "git reflog", "git describe --always", "git grep print", "git shortlog HEAD", "git remote -v"),
    ],
)  # fmt: skip
def test_git_is_read(work: Work, command: str) -> None:
    work.write("two.txt", "changed\n")
    _ = work.done(command)


@pytest.mark.parametrize(
    ("command", "question", "answer"),
    [
        ("git add two.txt", "diff --cached --name-only", "two.txt"),
        ("git commit -q -a -m three", "log -1 --format=%s", "three"),
        ("git commit -q --amend --no-edit -a", "log -1 --format=%s", "two"),
        ("git stash", "stash list --format=%gd", "stash@{0}"),
        ("git checkout -q -b new", "branch --show-current", "new"),
        ("git switch -q -c newer", "branch --show-current", "newer"),
        ("git checkout two.txt", "status --porcelain --untracked-files=no", ""),
        ("git restore two.txt", "status --porcelain --untracked-files=no", ""),
        ("git tag v1", "tag", "v1"),
        ("git tag -a v2 -m v2", "tag", "v2"),
        ("git branch other", "branch --list other --format=%(refname:short)", "other"),
        ("git rm -q --cached code.py", "ls-files code.py", ""),
        ("git mv file.txt moved.txt", "ls-files moved.txt", "moved.txt"),
    ],
)
def test_git_is_written(work: Work, command: str, question: str, answer: str) -> None:
    work.write("two.txt", "changed\n")
    _ = work.done(command)
    assert work.git(*question.split()) == answer


@pytest.mark.parametrize(
    ("commands", "question", "answer"),
    [
        (("git switch -q topic",), "branch --show-current", "topic"),
        (("git merge -q --no-edit topic",), "log -1 --format=%s", "Merge branch 'topic'"),
        (("git cherry-pick topic",), "log -1 --format=%s", "topic"),
        (("git switch -q topic", "git rebase -q main"), "log --format=%s -2", "topic\ntwo"),
        (("git revert --no-edit HEAD",), "log -1 --format=%s", 'Revert "two"'),
        (("git reset -q --soft HEAD~1", "git commit -q -m again"), "log -1 --format=%s", "again"),
        (
            ("echo x >> two.txt; echo x > new.txt", "git stash -q -u", "git stash pop -q"),
            "stash list",
            "",
        ),
        (("git worktree list",), "branch --show-current", "main"),
        (("git fetch -q .",), "branch --show-current", "main"),
        (("git gc -q",), "fsck --no-progress --no-dangling", ""),
    ],
)
def test_git_goes_from_branch_to_branch(
    work: Work, commands: tuple[str, ...], question: str, answer: str
) -> None:
    for command in commands:
        _ = work.done(command)
    assert work.git(*question.split()) == answer


def test_a_file_is_added_committed_and_seen_by_the_next_command(work: Work) -> None:
    _ = work.done("echo more > more.txt")
    _ = work.done("git add more.txt")
    _ = work.done("git commit -q -m more")
    assert work.done("git log -1 --format=%s").strip() == "more"
    assert work.git("show", "HEAD:more.txt") == "more"


@pytest.mark.parametrize(
    "command",
    [
        "git mv file.txt docs/moved.txt",
        "python3 -c \"import os; os.rename('code.py', 'docs/code.py')\"",
        "ln code.py docs/second.py",
    ],
)
def test_one_step_into_a_folder_that_is_held_in_its_place_is_refused(
    work: Work, command: str
) -> None:
    """The price of holding the folder of a protected file: it is a mount of its own. Copying works."""
    ran = work.run(command)
    assert ran.exit_code not in {0, None}
    assert "cross-device link" in ran.output
    _ = work.done("cp code.py docs/copy.py")
    assert work.git("status", "--porcelain", "--untracked-files=no") == ""


def test_nothing_shows_as_changed_that_nobody_changed(work: Work) -> None:
    """A file that reads as empty inside would be committed as empty."""
    assert work.done("git status --porcelain") == ""
    work.write("two.txt", "changed\n")
    _ = work.done("git commit -q -a -m three")
    assert work.git("show", "--name-only", "--format=", "HEAD") == "two.txt"


def test_a_new_repository_may_be_made_and_worked_in(work: Work) -> None:
    _ = work.done("git init -q fresh")
    _ = work.done("git -C fresh commit -q --allow-empty -m begun")
    assert work.world.git("log", "--format=%s", cwd=work.root / "fresh") == "begun\n"


# Files


@pytest.mark.parametrize(
    ("command", "there", "gone"),
    [
        ("mv src source", "source/deep/main.c", "src"),
        ("mv code.py src/", "src/code.py", "code.py"),
        ("mv code.py docs/", "docs/code.py", "code.py"),
        ("mv src docs/", "docs/src/deep/main.c", "src"),
        ("cp -r src copy", "copy/deep/main.c", "nothing"),
        ("rm -r src", "code.py", "src"),
        ("rm -rf node_modules", "code.py", "node_modules"),
        ("mkdir -p a/b/c && touch a/b/c/d && rmdir a/b/c 2>/dev/null; rm -r a", "code.py", "a"),
        ("ln -s code.py link.py && cat link.py", "link.py", "nothing"),
        ("chmod +x code.py && sed -i s/code/more/ code.py", "code.py", "nothing"),
        ("find . -name '*.c' -newer AGENTS.md; find src -name '*.c' -delete", "src/deep", "src/deep/main.c"),
        ("tar cf all.tar src && tar xf all.tar -C docs", "docs/src/deep/main.c", "nothing"),
    ],
)  # fmt: skip
def test_files_are_moved_copied_and_removed(
    work: Work, command: str, there: str, gone: str
) -> None:
    _ = work.done(command)
    assert (work.root / there).exists()
    assert not (work.root / gone).exists()


def test_thousands_of_files_are_made_and_removed(work: Work) -> None:
    made = (
        f"import os; os.mkdir('many'); [open(f'many/{{at}}', 'x').close() for at in range({MANY})]"
    )
    _ = work.done(f'python3 -c "{made}"')
    assert sum(1 for _ in (work.root / "many").iterdir()) == MANY
    _ = work.done("rm -r many")
    assert not (work.root / "many").exists()


def test_all_files_are_written_anew(work: Work) -> None:
    for at in range(40):
        work.write(f"package/module{at}.py", f"x = {at};\n")
    _ = work.done("find package -name '*.py' -exec sed -i 's/;$//' {} +")
    # As formatters do: a new file beside it takes the place of the old one.
    script = "for f in package/*.py; do sed 's/x =/y =/' $f > $f.new && mv -f $f.new $f; done"
    _ = work.done(script)
    assert (work.root / "package/module7.py").read_text("utf-8") == "y = 7\n"


def test_protected_names_of_an_archive_are_taken_away_and_named(work: Work) -> None:
    with tarfile.open(work.root / "brought.tar", "w") as archive:
        for name in ("brought/code.py", "brought/.github/workflows/ci.yml", "brought/AGENTS.md"):
            member = tarfile.TarInfo(name)
            member.size = len(name)
            archive.addfile(member, io.BytesIO(name.encode()))
    ran = work.run("tar xf brought.tar")
    assert (ran.refused, ran.exit_code) == (None, 0), ran
    assert (work.root / "brought/code.py").exists()
    assert not (work.root / "brought/.github/workflows").exists()
    assert not (work.root / "brought/AGENTS.md").exists()
    assert {path.name for path in ran.quarantined} == {"workflows", "AGENTS.md"}


# Building and testing


def test_make_and_the_compiler_build(work: Work) -> None:
    _program("make")
    _program("gcc")
    work.write("main.c", '#include <stdio.h>\nint main(void) { puts("built"); return 0; }\n')
    work.write("Makefile", "main: main.c\n\tgcc -O1 -o main main.c\nclean:\n\trm -f main\n")
    _ = work.done("make")
    assert work.done("./main") == "built\n"
    _ = work.done("make clean")
    assert not (work.root / "main").exists()


def test_pytest_runs_and_keeps_its_cache(work: Work) -> None:
    work.write("test_it.py", "def test_it(tmp_path):\n    assert tmp_path.exists()\n")
    output = work.done(f"{_interpreter()} -m pytest -q -p no:randomly test_it.py")
    assert "1 passed" in output
    assert (work.root / ".pytest_cache").is_dir()


def test_a_virtual_environment_is_made_and_used(work: Work) -> None:
    _ = work.done(f"{_interpreter()} -m venv --without-pip .venv")
    assert work.done(".venv/bin/python -c 'print(6 * 7)'") == "42\n"


def test_a_project_is_installed_into_its_virtual_environment(work: Work) -> None:
    """With the pip of the outer environment and a backend of the project: nothing is fetched."""
    interpreter = _interpreter()
    packages = Path(sysconfig.get_path("purelib"))
    if not (packages / "pip").is_dir():
        pytest.skip(f"{sys.executable} has no module pip")
    work.write("backend.py", BACKEND)
    work.write("pyproject.toml", PYPROJECT)
    work.write("thing/__init__.py", "NAME = 'thing'\n")
    _ = work.done(f"{interpreter} -m venv --without-pip --system-site-packages .venv")
    pip = f"PYTHONPATH={packages} .venv/bin/python -m pip install -q --no-index --no-deps --no-build-isolation -e ."
    _ = work.done(pip)
    assert (
        work.done("cd / && $OLDPWD/.venv/bin/python -c 'import thing; print(thing.NAME)'")
        == "thing\n"
    )


def test_npm_installs_tests_and_installs_again(work: Work) -> None:
    _program("npm")
    work.write("dep/package.json", json.dumps({"name": "dep", "version": "1.0.0"}))
    work.write("dep/index.js", "module.exports = 'dep'\n")
    package = {
        "name": "it",
        "version": "1.0.0",
        "scripts": {"test": "node -e \"console.log(require('dep'))\""},
        "dependencies": {"dep": "file:./dep"},
    }
    work.write("package.json", json.dumps(package))
    install = "npm install --offline --no-audit --no-fund --loglevel=error"
    _ = work.done(install)
    assert "dep\n" in work.done("npm test")
    _ = work.done(f"rm -rf node_modules && {install}")
    assert "dep\n" in work.done("npm test")


def test_cargo_builds(work: Work) -> None:
    home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
    toolchains = sorted((home / ".rustup" / "toolchains").glob("*/bin"), reverse=True)
    folders = [*map(str, toolchains), "/usr/bin", "/usr/local/bin"]
    if shutil.which("cargo", path=os.pathsep.join(folders)) is None:
        pytest.skip(f"this machine has no cargo in {os.pathsep.join(folders)}")
    work.write("Cargo.toml", '[package]\nname = "it"\nversion = "0.1.0"\nedition = "2021"\n')
    work.write("src/main.rs", 'fn main() { println!("built"); }\n')
    env = {**work.commands.env, "PATH": os.pathsep.join(folders)}
    work.commands = replace(work.commands, env=env)
    _ = work.done("CARGO_HOME=$TMPDIR/cargo cargo build -q --offline")
    assert work.done("target/debug/it") == "built\n"


PYPROJECT = """
[project]
name = "thing"
version = "1.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
BACKEND = """
import os, zipfile

def build_editable(folder, settings=None, metadata=None):
    name = "thing-1.0-py3-none-any.whl"
    files = {
        "thing.pth": os.getcwd(),
        "thing-1.0.dist-info/METADATA": "Metadata-Version: 2.1\\nName: thing\\nVersion: 1.0\\n",
        "thing-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\\nGenerator: it\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n",
    }
    files["thing-1.0.dist-info/RECORD"] = "".join(f"{one},,\\n" for one in files)
    with zipfile.ZipFile(os.path.join(folder, name), "w") as wheel:
        for path, text in files.items():
            wheel.writestr(path, text)
    return name
"""
