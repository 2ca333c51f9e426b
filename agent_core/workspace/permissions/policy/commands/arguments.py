"""Finds the arguments that make another command of an allowed one: they lead outside, or name what is started."""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from agent_core.workspace.files.paths import is_inside
from agent_core.workspace.permissions.call_permission import READ_ONLY_COMMANDS
from agent_core.workspace.permissions.protected_names import is_protected, is_secret

SEPARATORS: Final = re.compile(r"[=:,;@|]")
"""Behind these an argument may go on with a path: `--out=/x`, `user@host:/x`, `-v /:/x`, `@/x`."""
SHORT_OPTION: Final = re.compile(r"-+[A-Za-z0-9_-]*")
FEWEST_LETTERS: Final = 3
"""Of an abbreviated option, dashes included: `--o` may already be `--output`."""

SHORT_CHARS: Final = 2
"""Of an option that is a dash and a letter."""

STARTING: Final[Mapping[str, frozenset[str]]] = {
    "git": frozenset(
        {
            "--cc-cmd", "--config", "--config-env", "--exec", "--exec-path", "--ext-diff", "--extcmd", "--open-files-in-pager", "--output",
            "--output-directory", "--receive-pack", "--sendmail-cmd", "--separate-git-dir", "--smtp-server", "--recurse-submodules", "--submodule", "--template", "--textconv",
            "--upload-pack", "-c", "-O", "-x",
        }
    ),
    "npm": frozenset(
        {
            "--cache", "--git", "--globalconfig", "--init-module", "--node-options", "--onload-script", "--prefix",
            "--registry", "--script-shell", "--shell", "--userconfig", "--workspace", "-C", "-w",
        }
    ),
    "pytest": frozenset(
        {
            "--basetemp", "--confcutdir", "--config-file", "--debug", "--junit-xml", "--junitxml", "--log-file",
            "--override-ini", "--pastebin", "--pdbcls", "--pyargs", "--rootdir", "-c", "-o", "-p",
        }
    ),
    "cargo": frozenset({"--config", "--manifest-path", "--target-dir", "-C", "-Z"}),
    "go": frozenset({"-exec", "-gccgoflags", "-ldflags", "-o", "-overlay", "-toolexec", "-vettool", "-C", "-modfile"}),
    "make": frozenset({"--directory", "--eval", "--file", "--include-dir", "--makefile", "-C", "-f", "-I"}),
    "find": frozenset({"-delete", "-exec", "-execdir", "-fls", "-fprint", "-fprint0", "-fprintf", "-ok", "-okdir"}),
    "rg": frozenset({"--hostname-bin", "--pre", "--search-zip", "-z"}),
    "sort": frozenset({"--compress-program", "--output", "--temporary-directory", "-o", "-T"}),
    "tar": frozenset({"--checkpoint-action", "--to-command", "--use-compress-program", "-I", "-F"}),
    "sed": frozenset({"--in-place", "--file", "-i", "-f"}),
    "ruff": frozenset({"--config", "--output-file", "-o"}),
    "mypy": frozenset({"--config-file", "--python-executable", "--install-types"}),
    "eslint": frozenset(
        {
            "--config", "--format", "--output-file", "--parser", "--plugin", "--resolve-plugins-relative-to", "--rulesdir",
            "-c", "-f", "-o",
        }
    ),
    "fd": frozenset({"--exec", "--exec-batch", "-X", "-x"}),
    "tree": frozenset({"-o"}),
    "date": frozenset({"--set", "-s"}),
    "man": frozenset({"--html", "--pager", "-H", "-P"}),
    "jest": frozenset(
        {
            "--config", "--env", "--globalSetup", "--globalTeardown", "--preset", "--reporters", "--resolver", "--rootDir",
            "--runner", "--setupFiles", "--setupFilesAfterEnv", "--testRunner", "--transform", "-c",
        }
    ),
    "mocha": frozenset({"--config", "--import", "--loader", "--node-option", "--package", "--require", "-n", "-r"}),
    "vitest": frozenset({"--config", "--dir", "--outputFile", "--root", "-c", "-r"}),
    "prettier": frozenset({"--config", "--plugin"}),
    "rspec": frozenset({"--options", "--out", "--require", "-I", "-O", "-o", "-r"}),
    "rubocop": frozenset({"--config", "--out", "--require", "-c", "-o", "-r"}),
    "flake8": frozenset({"--append-config", "--config", "--output-file"}),
    "tox": frozenset({"--conf", "--override", "--workdir", "-c", "-x"}),
    "pip": frozenset(
        {
            *(f"--{name}" for name in ("extra-index-url", "find-links", "index-url", "prefix", "python")),
            *("--root", "--target", "-f", "-i", "-t"),
        }
    ),
    "gradle": frozenset({"--build-file", "--init-script", "--project-dir", "--settings-file", "-I", "-b", "-c", "-p"}),
    "mvn": frozenset({"--file", "--settings", "--toolchains", "-f", "-s", "-t"}),
    "ctest": frozenset({"--build-and-test", "--script", "-S"}),
}  # fmt: skip
"""Options that name a program, a file to be written or another configuration; a rule allows them when it says them.

The list is comfort: it keeps a rule from meaning more than its owner had in mind. Containment is what holds.
"""
SAME_OPTIONS: Final[Mapping[str, str]] = {
    "pnpm": "npm", "yarn": "npm", "py.test": "pytest", "gmake": "make", "fdfind": "fd", "pip3": "pip",
}  # fmt: skip
READING: Final = READ_ONLY_COMMANDS | {"git"}
"""They may be told the names of protected files: git changes no other than its own by a name."""
SETTERS: Final = frozenset({"gmake", "just", "make"})
"""Programs to which `name=value` sets a variable, and those can name programs: `make test SHELL=./x`."""


def misleading(
    program: str, arguments: Sequence[str], *, cwd: Path, roots: Sequence[Path]
) -> str | None:
    """Return the first argument that no rule covers by its beginning alone; None when there is none.

    Args:
        program: The command's first word.
        arguments: Its arguments behind those that the rule names.
        cwd: Where it would run.
        roots: The folders of the workspace.
    """
    name = PurePosixPath(program).name
    starting = STARTING.get(SAME_OPTIONS.get(name, name), frozenset())
    for word in arguments:
        if name in SETTERS and "=" in word:
            return word
        if _starts_something(word, starting) or _leads_outside(word, cwd, roots):
            return word
        if _names_guarded(word, name, cwd, roots):
            return word
    return None


def _names_guarded(word: str, name: str, cwd: Path, roots: Sequence[Path]) -> bool:
    """Return whether a word names what is always asked about: a file of secrets, or a protected one that may be changed."""
    guarded = is_secret if name in READING else is_protected
    places = (Path(os.path.normpath(cwd / piece)) for piece in _pieces(word))
    return any(guarded(place, roots=roots) is not None for place in places if place != cwd)


def _starts_something(word: str, options: frozenset[str]) -> bool:
    name = word.split("=", 1)[0]
    if name.startswith("--"):
        return len(name) >= FEWEST_LETTERS and any(one.startswith(name) for one in options)
    if not word.startswith("-"):
        return False
    # `-ofile` and `-xo file` say `-o` too, but not where a single dash begins whole words.
    has_single_dash_names = any(len(one) > SHORT_CHARS and one[1] != "-" for one in options)
    letters = {one[1] for one in options if len(one) == SHORT_CHARS}
    return name in options or (not has_single_dash_names and bool(letters & set(name[1:])))


def _leads_outside(word: str, cwd: Path, roots: Sequence[Path]) -> bool:
    return any(_is_outside(piece, cwd, roots) for piece in _pieces(word))


def _pieces(word: str) -> list[str]:
    """Return what may be a path in a word."""
    pieces = SEPARATORS.split(word)
    return pieces + [
        SHORT_OPTION.sub("", piece, count=1) for piece in pieces if piece.startswith("-")
    ]


def _is_outside(piece: str, cwd: Path, roots: Sequence[Path]) -> bool:
    if piece.startswith("~"):
        return True
    if not (piece.startswith("/") or ".." in piece.split("/")):
        return False
    return not is_inside(Path(os.path.normpath(cwd / piece)), roots)
