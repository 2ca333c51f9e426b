"""The environment of a tool's processes: the variables of tool chains and those that the user's settings list. Pure.

Variables that would pass are checked a second time, against names and values of secrets, loaders of code, and ways to
other programs.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from agent_core.kernel.values import Value
from agent_core.workspace.sandbox.toolchains import VARIABLE_PREFIXES, VARIABLES

SECRET_NAME_PARTS: Final = frozenset(
    {
        *("APIKEY", "AUTH", "AUTHORIZATION", "BEARER", "COOKIE", "CREDENTIAL", "CREDENTIALS", "CREDS"),
        *("KEY", "KEYS", "PASS", "PASSPHRASE", "PASSWD", "PASSWORD", "PASSWORDS", "PAT", "PRIVATE", "PWD"),
        *("SECRET", "SECRETS", "SIGNATURE", "TOKEN", "TOKENS", "WEBHOOK"),
    }
)  # fmt: skip
"""A name with one of these between underscores names a secret."""
SECRET_ENDINGS: Final = (
    "APIKEY",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "TOKEN",
    "CREDENTIALS",
)
NO_SECRETS: Final = frozenset({"PWD", "OLDPWD", "PATH", "HOME"})
PASSWORD_IN_URL: Final = re.compile(
    r"[a-z][a-z0-9+.-]*://[^@\s]*:[^@\s]+@|(?:https?|socks[0-9a-z]*)://[^/@\s]+@", re.IGNORECASE
)
"""Over HTTP a user without a password is a token."""
PROXY: Final = "_PROXY"
"""Ends the names of variables with the address of a proxy: that may come without its scheme, `user:password@host`."""

LOADERS: Final = frozenset(
    {
        # Shells
        *("BASH_ENV", "ENV", "PROMPT_COMMAND", "PS0", "PS4", "SHELLOPTS", "BASHOPTS", "IFS", "CDPATH"),
        *("GLOBIGNORE", "ZDOTDIR", "FPATH", "BASH_LOADABLES_PATH", "BASH_XTRACEFD", "EXECIGNORE"),
        # The C library
        *("GCONV_PATH", "GLIBC_TUNABLES", "HOSTALIASES", "LOCPATH", "MALLOC_TRACE", "NIS_PATH", "NLSPATH"),
        *("RESOLV_HOST_CONF", "RES_OPTIONS", "TZDIR"),
        # Interpreters
        *("PYTHONSTARTUP", "PYTHONHOME", "PYTHONINSPECT", "PYTHONBREAKPOINT", "PYTHONEXECUTABLE"),
        *("PYTHONUSERBASE", "PYTHONWARNINGS", "PYTHONPLATLIBDIR", "PYTEST_ADDOPTS", "PYTEST_PLUGINS"),
        *("NODE_OPTIONS", "NODE_REPL_EXTERNAL_MODULE", "PERL5OPT", "PERL5DB", "PERL5LIB", "PERLLIB"),
        *("RUBYOPT", "RUBYLIB", "LUA_INIT", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS"),
        *("R_PROFILE", "R_PROFILE_USER", "R_ENVIRON", "R_ENVIRON_USER", "PHP_INI_SCAN_DIR", "PHPRC"),
        # Builders
        *("RUSTC", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_RUSTC_WRAPPER", "RUSTDOC"),
        *("MAKEFLAGS", "GNUMAKEFLAGS", "MAKEFILES", "CMAKE_TOOLCHAIN_FILE", "GOFLAGS", "MAVEN_OPTS"),
        *("GRADLE_OPTS", "SBT_OPTS", "ANT_OPTS"),
        # Programs that are run for others
        *("LESSOPEN", "LESSCLOSE", "MANPAGER", "BROWSER", "SSH_ASKPASS", "SUDO_ASKPASS", "GIT_ASKPASS"),
        *("FCEDIT", "HISTFILE", "INPUTRC", "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "RIPGREP_CONFIG_PATH"),
        *("WGETRC", "CURL_HOME", "FZF_DEFAULT_COMMAND", "FZF_DEFAULT_OPTS", "TAR_OPTIONS", "RSYNC_RSH"),
    }
)  # fmt: skip
"""Variables that name code or options of other programs."""
LOADER_PREFIXES: Final = (
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "LUA_INIT_",
    "CARGO_TARGET_",
    "_RLD",
    "PIP_CONFIG",
)
GIT_KEPT: Final = re.compile(
    "GIT_("
    + "|".join(
        (
            "(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|EDITOR|SEQUENCE_EDITOR|PAGER|TERMINAL_PROMPT",
            "OPTIONAL_LOCKS|CONFIG_NOSYSTEM|CEILING_DIRECTORIES|SSL_CAINFO|SSL_CAPATH",
        )
    )
    + ")"
)
"""Of git's variables only these; the others say what it runs, and where. Editors and pagers are set by the tool."""
NPM_RUNS: Final = re.compile(
    r"npm_config_(node_options|script_shell|shell|git|init_module|globalconfig|userconfig)",
    re.IGNORECASE,
)

DOORS: Final = frozenset(
    {
        *("SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_AGENT_LAUNCHER", "GPG_AGENT_INFO", "GPG_TTY", "XAUTHORITY"),
        *("DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"),
        *("XDG_RUNTIME_DIR", "TMUX", "TMUX_PANE", "STY", "NVIM", "NVIM_LISTEN_ADDRESS", "EMACS_SERVER_FILE"),
        *("DOCKER_HOST", "CONTAINER_HOST", "GNOME_KEYRING_CONTROL", "SESSION_MANAGER", "PULSE_SERVER"),
        *("I3SOCK", "SWAYSOCK", "KITTY_LISTEN_ON", "WEZTERM_UNIX_SOCKET", "INVOCATION_ID", "NOTIFY_SOCKET"),
        *("LISTEN_FDS", "LISTEN_PID", "JOURNAL_STREAM", "TMPDIR", "TMP", "TEMP"),
    }
)  # fmt: skip
"""Ways to other programs of the user, which are closed inside."""
DOOR_PREFIXES: Final = ("VSCODE_", "TILLER_", "HYPRLAND_", "ALACRITTY_")
KEPT: Final = frozenset({"TILLER_PROCESS_ID"})
"""The mark by which a command's processes are known."""


class ScrubbedEnvironment(Value, frozen=True, kw_only=True):
    """An environment, and what was taken out of it."""

    env: Mapping[str, str]
    removed: tuple[str, ...]
    """Names, sorted."""


def scrubbed(env: Mapping[str, str], *, passed: Collection[str] = ()) -> ScrubbedEnvironment:
    """Return the variables that reach a process of a tool.

    Args:
        env: The user's environment.
        passed: Variables that the user's own settings list besides: names, or prefixes that end in `*`. Only a whole
            name admits a variable that is a secret, a loader of code or a way to another program.
    """
    # An allowlist: no list of secrets' names is complete (decision 0062).
    kept = {name: value for name, value in env.items() if _passes(name, value, passed)}
    return ScrubbedEnvironment(env=kept, removed=tuple(sorted(env.keys() - kept.keys())))


def is_secret(name: str, value: str) -> bool:
    """Return whether a variable holds a secret, by its name or because it is an address with a password."""
    if name in NO_SECRETS:
        return False
    upper = name.upper()
    by_name = bool(SECRET_NAME_PARTS.intersection(upper.split("_"))) or upper.endswith(
        SECRET_ENDINGS
    )
    is_login = upper.endswith(PROXY) and upper != f"NO{PROXY}" and "@" in value
    return by_name or is_login or PASSWORD_IN_URL.search(value) is not None


def steers_programs(name: str) -> bool:
    """Return whether a variable makes programs load or run other code, or leads to other programs of the user."""
    return _runs_others(name) or _is_door(name)


def _passes(name: str, value: str, passed: Collection[str]) -> bool:
    if name in KEPT or name in passed:
        return True
    beginnings = tuple(one[:-1] for one in passed if one.endswith("*"))
    is_listed = name in VARIABLES or name.startswith((*VARIABLE_PREFIXES, *beginnings))
    return is_listed and not is_secret(name, value) and not steers_programs(name)


def _runs_others(name: str) -> bool:
    if name.startswith("GIT_"):
        return GIT_KEPT.fullmatch(name) is None
    return (
        name in LOADERS or name.startswith(LOADER_PREFIXES) or NPM_RUNS.fullmatch(name) is not None
    )


def _is_door(name: str) -> bool:
    return name in DOORS or name.startswith(DOOR_PREFIXES)
