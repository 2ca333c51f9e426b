"""Effect of a command line on the data of repositories, if it consists of plain commands of git."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from agent_core.workspace.permissions.call_permission import READ_ONLY_COMMANDS
from agent_core.workspace.permissions.policy.commands.git_inspection import (
    PROGRAM_ADDRESS,
    git_starts_programs,
)
from agent_core.workspace.permissions.policy.commands.programs import find_program
from agent_core.workspace.permissions.protected_names import folded
from agent_core.workspace.permissions.shell import PlainCommandLine, read_command

GitUse = Literal["none", "reads", "adds", "loses"]
"""`none`: not only commands of git, or an unknown one; `adds`: everything reachable stays so, also by the reflog."""

GitArgv = tuple[str, ...]
BUILTINS: Final = frozenset({"cd", "echo", "true", "false", "pwd"})
READING: Final = frozenset(
    {"annotate", "blame", "cat-file", "check-ignore", "describe", "diff", "diff-tree", "for-each-ref", "log", "ls-files",
     "ls-tree", "merge-base", "name-rev", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "status", "version",
     "whatchanged"}
)  # fmt: skip
ADDING: Final = frozenset(
    {"add", "am", "apply", "branch", "checkout", "cherry-pick", "clean", "clone", "commit", "fetch", "gc", "init", "merge",
     "mv", "pull", "rebase", "reset", "restore", "revert", "rm", "stage", "stash", "switch", "tag"}
)  # fmt: skip
LOSING: Final = frozenset({"prune", "push", "reflog", "replace", "symbolic-ref", "update-ref"})
"""`push` changes another repository; where that lies on this disk, its hooks run."""
RUNNING: Final = (
    *("--exec", "--interactive", "--open-files-in-pager", "--upload-pack", "--receive-pack", "--template", "--strategy"),
    *("--separate-git-dir", "--recurse-submodules", "--recursive", "--ext-diff", "--textconv", "--filters", "--config"),
    *("--output", "--unsafe-paths", "--build-fake-ancestor"),
)  # fmt: skip
"""Options of commands that name programs, other repositories, settings or files to write."""
RUNNING_LETTERS: Final[Mapping[str, str]] = {
    "rebase": "xis",
    "clone": "uc",
    "merge": "s",
    "pull": "s",
    "cherry-pick": "s",
    "revert": "s",
}
SHALLOW: Final = ("--depth", "--shallow-since", "--shallow-exclude", "--update-shallow")
"""Options that cut off the history of an existing repository: commits behind the cut become unreachable."""
FORCING: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "branch": ("fDMC", ("--force",)),
    "checkout": ("fB", ("--force", "--overwrite-ignore")),
    "switch": ("fC", ("--force", "--force-create", "--discard-changes", "--overwrite-ignore")),
    "clean": ("xX", ()),
    "fetch": ("fpP", ("--force", "--prune", "--prune-tags", "--refmap", "--stdin", *SHALLOW)),
    "gc": ("", ("--prune", "--aggressive", "--cruft", "--force")),
    "pull": ("fp", ("--force", "--prune", *SHALLOW)),
    "tag": ("fd", ("--force", "--delete")),
}
"""Letters and options by which a command may lose what is reachable, or files that git ignores."""
BEFORE: Final = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs"})
"""Options of git itself that change nothing of what it does; besides there is `-C folder`."""
MOST_FOLDERS: Final = 16
GIT_PART: Final = re.compile(r"(?:^|[/=:])\.git(?:/|$)")
HARMLESS_REDIRECTION: Final = re.compile(
    r"(?<=[ \t])(?:2>&1|[12]?>[ \t]?/dev/null|&>[ \t]?/dev/null)(?=[ \t\n;|&]|$)"
)


def git_use(command: str) -> GitUse:
    """Return what a command line does to repositories.

    Beside commands of git it may have `cd`, `echo` and programs that only read; whatever else is in it, a redirection
    or a substitution, makes it `none`.
    """
    if "git" not in command:
        return "none"
    read = read_command(HARMLESS_REDIRECTION.sub("", command))
    if not isinstance(read, PlainCommandLine):
        return "none"
    if any(_names_git_folder(word) for argv in read.commands for word in argv):
        return "none"
    uses = {_use(argv) for argv in read.commands if argv}
    if "none" in uses or not uses:
        return "none"
    return next(use for use in _WORST_FIRST if use in uses)


def writes_data(command: str, *, env_path: str, roots: Sequence[Path]) -> bool:
    """Return whether a command line is to be started with the data of repositories writable. Reads the disk.

    Its programs must not come from the workspace: a `git` that lies there is none.
    """
    if git_use(command) not in {"adds", "loses"}:
        return False
    read = read_command(HARMLESS_REDIRECTION.sub("", command))
    names = (
        {argv[0] for argv in read.commands if argv}
        if isinstance(read, PlainCommandLine)
        else set[str]()
    )
    return all(
        find_program(name, env_path=env_path, roots=roots) is not None for name in names - BUILTINS
    )


def line_starts_programs(command: str, *, cwd: Path, roots: Sequence[Path]) -> bool:
    """Return whether git may start what a repository names, wherever a plain command line works; yes when in doubt.

    Reads the disk, follows `cd` and `-C`.
    """
    read = read_command(HARMLESS_REDIRECTION.sub("", command))
    if not isinstance(read, PlainCommandLine):
        return True
    at, used = {cwd}, set[Path]()
    for argv in read.commands:
        program = argv[0] if argv else ""
        if program == "cd":
            _, word, *more = (*argv, "-")
            if more != ["-"] or word.startswith("-"):
                return True
            # It may fail, stand in a group, or come after `||`: the folders before it stay possible.
            at |= _moved(at, word)
        elif program == "git":
            used |= _worked_in(argv[1:], at)
        if len(at) > MOST_FOLDERS:
            return True
    return any(_starts_programs_in(folder, roots) for folder in used)


def _worked_in(tokens: GitArgv, at: set[Path]) -> set[Path]:
    """Return where git works, given where it is started: each `-C` leads on."""
    while tokens and tokens[0].startswith("-"):
        if tokens[0] == "-C":
            at = _moved(at, tokens[1])
        tokens = tokens[2 if tokens[0] == "-C" else 1 :]
    return at


def _moved(at: Iterable[Path], word: str) -> set[Path]:
    """Return where a word leads, taken as the shell does and as the system does, which differ behind links."""
    whole = [folder / word for folder in at]
    return {*whole, *(Path(os.path.normpath(one)) for one in whole)}


def _starts_programs_in(folder: Path, roots: Sequence[Path]) -> bool:
    """Return whether git may start programs of the repository that it finds from a folder on; yes when in doubt."""
    real = Path(os.path.realpath(folder))
    if not any(real.is_relative_to(root) for root in roots):
        return True
    for place in (real, *real.parents):
        try:
            names = os.listdir(place)  # noqa: PTH208 - strings are enough
        except FileNotFoundError:
            continue  # git fails there
        except OSError:
            return True
        if ".git" in names:
            return git_starts_programs(place)
        if "HEAD" in names:
            return True
    return False


def _names_git_folder(word: str) -> bool:
    same = "/".join(folded(part) for part in word.split("/"))
    return any(GIT_PART.search(spelt) for spelt in (same, word.casefold()))


def _use(argv: GitArgv) -> GitUse:
    if argv[0] != "git":
        return "reads" if argv[0] in BUILTINS | READ_ONLY_COMMANDS else "none"
    own = _without_own_options(argv[1:])
    verb, rest = (own[0], own[1:]) if own else ("", ())
    # Also behind `--`, which may be the value of an option.
    options = [word.partition("=")[0] for word in rest if word.startswith("-") and word != "--"]
    if _has(options, RUNNING_LETTERS.get(verb, ""), RUNNING) or any(
        map(PROGRAM_ADDRESS.match, rest)
    ):
        return "none"
    if verb in READING or (verb == "clean" and _is_dry(rest)):
        return "reads"
    if verb in LOSING:
        return "reads" if verb == "reflog" and (not rest or rest[0] == "show") else "loses"
    use: GitUse = "loses" if _loses(verb, rest, options) else "adds"
    return use if verb in ADDING else "none"


def _without_own_options(tokens: Sequence[str]) -> Sequence[str]:
    """Return what follows the options of git itself; nothing when one of them is not known to change nothing."""
    while tokens and tokens[0].startswith("-"):
        if tokens[0] in BEFORE:
            tokens = tokens[1:]
        elif tokens[0] == "-C" and len(tokens) > 1:
            tokens = tokens[2:]
        else:
            return ()
    return tokens


def _loses(verb: str, rest: Sequence[str], options: Sequence[str]) -> bool:
    if _has(options, *FORCING.get(verb, ("", ()))):
        return True
    places = [word for word in rest if not word.startswith("-")]
    match verb:
        case "branch":
            # Of a branch of another repository git does not look whether it is merged.
            return _has(options, "d", ("--delete",)) and _has(options, "r", ("--remotes",))
        case "clean":
            # Forced twice it deletes repositories too.
            return sum(_forces(word) for word in options) > 1
        case "reset" | "stash":
            at = places[:1]
            return bool(at) and (at != ["HEAD"] if verb == "reset" else at[0] in {"drop", "clear"})
        case "fetch" | "pull":
            # What is written to is named: a ref of this repository, or one that goes from the other.
            return any(word.startswith(("+", ":")) or ":" in word[1:] for word in places[1:])
        case _:
            return False


def _forces(option: str) -> int:
    return option.startswith("--f") if option.startswith("--") else option.count("f")


def _is_dry(arguments: Sequence[str]) -> bool:
    """Return whether `clean` is only to say what it would do; no, when an option might be the value of another."""
    plain = [word for word in arguments if re.fullmatch("-[ndxXqf]+|--dry-run", word)]
    return len(plain) == sum(word.startswith("-") for word in arguments) and _has(
        plain, "n", ("--dry-run",)
    )


def _has(options: Sequence[str], letters: str, long_options: Sequence[str]) -> bool:
    """Return whether one of some options is given: in a bundle of letters, or shortened, as git takes both."""
    for option in options:
        if option.startswith("--"):
            if any(word.startswith(option) for word in long_options):
                return True
        elif not set(letters).isdisjoint(option[1:]):
            return True
    return False


_WORST_FIRST: Final[tuple[GitUse, ...]] = ("loses", "adds", "reads")
