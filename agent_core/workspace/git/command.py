"""The one place where an invocation of git is made: its program, its arguments and its environment."""

from collections.abc import Mapping, Sequence
from os import defpath, devnull
from pathlib import Path
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.permissions.policy.commands.programs import (
    find_outside_program,
    outside_path,
)

GIT: Final = "git"
FIXED: Final = (
    "--no-pager",
    "--no-replace-objects",
    "--no-optional-locks",
    *("-c", "core.fsmonitor=false"),
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.attributesFile=/dev/null"),
    *("-c", "core.sshCommand=false"),
    *("-c", "core.askPass="),
    *("-c", "core.quotePath=false"),
    *("-c", "credential.helper="),
    *("-c", "gpg.program=false"),
    *("-c", "protocol.allow=never"),
    *("-c", "submodule.recurse=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
)
"""Options that apply whatever a configuration sets. Filters and text conversions cannot be switched off this way: the
repository chooses their names.
"""
INHERITED: Final = ("HOME", "XDG_CONFIG_HOME", "TMPDIR", "TZ", "SYSTEMROOT")
"""Variables of the user that git gets, beside the PATH. Of the home only the lists of ignored files are read."""
OF_THE_USER: Final = ("GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL")
USER_SETTINGS: Final = ("core.excludesfile", "core.autocrlf", "core.eol")
"""User settings for all their files: without them a review would show files that they keep out of git everywhere."""
QUIET: Final[Mapping[str, str]] = {
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_TERMINAL_PROMPT": "0",
    # A clone that left objects out would fetch them, with programs that the repository names.
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ALLOW_PROTOCOL": "",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_LITERAL_PATHSPECS": "1",
}


class GitCommand(Value, frozen=True, kw_only=True):
    """How to start git once."""

    argv: tuple[str, ...]
    env: Mapping[str, str]


def find_git(env: Mapping[str, str], *, roots: Sequence[Path]) -> str | None:
    """Return the absolute path of git, outside of all roots; None when there is none. Blocking.

    Args:
        env: The environment of the user.
        roots: The folders of all workspaces.
    """
    return find_outside_program(GIT, env_path=env.get("PATH", defpath), roots=roots)


def git_environment(env: Mapping[str, str], *, roots: Sequence[Path]) -> Mapping[str, str]:
    """Return the environment in which git runs. Blocking: looks at the PATH.

    Args:
        env: The environment of the user; git gets a few variables of it.
        roots: The folders of all workspaces; git finds no program in them.
    """
    inherited = {name: env[name] for name in INHERITED if name in env}
    path = outside_path(env.get("PATH", defpath), roots=roots)
    return {**inherited, "PATH": path, **QUIET}


def git_command(
    program: str, *arguments: str, environment: Mapping[str, str], **variables: str
) -> GitCommand:
    """Return the arguments and the environment with which git is started. Pure.

    Args:
        program: As `find_git` returned it.
        arguments: The command of git, with its own arguments.
        environment: As `git_environment` returned it.
        variables: Additional variables, as GIT_DIR; they override the environment.
    """
    return GitCommand(argv=(program, *FIXED, *arguments), env={**environment, **variables})


def user_settings_command(
    program: str, *, env: Mapping[str, str], environment: Mapping[str, str]
) -> GitCommand:
    """Return how git is asked for the `USER_SETTINGS` of this machine and of the user. Pure.

    It opens no repository. It prints name, line feed, value and NUL for each.

    Args:
        program: As `find_git` returned it.
        env: The environment of the user: it may say where their configuration is.
        environment: As `git_environment` returned it.
    """
    names = "|".join(name.removeprefix("core.") for name in USER_SETTINGS)
    plain = git_command(
        program,
        *("config", "--null", "--includes", "--type=path"),
        *("--get-regexp", rf"^core\.({names})$"),
        environment=environment,
        GIT_DIR=devnull,
    )
    closed = {name: value for name, value in plain.env.items() if name not in OF_THE_USER}
    theirs = {name: env[name] for name in OF_THE_USER if name in env}
    return GitCommand(argv=plain.argv, env={**closed, **theirs})
