"""The words that start something else than they say, or change what later words mean."""

import re
from typing import Final

SHELLS: Final = frozenset(
    {"ash", "bash", "busybox", "csh", "dash", "elvish", "fish", "ksh", "ksh93", "mksh", "nu", "oksh", "pwsh"}
    | {"rbash", "rksh", "sh", "tcsh", "toybox", "xonsh", "yash", "zsh"}
)  # fmt: skip
"""They run the text behind `-c`, and what they are fed."""

BUILTINS: Final = frozenset(
    {".", "alias", "bg", "bind", "builtin", "cd", "command", "compgen", "complete", "compopt", "coproc", "declare"}
    | {"disown", "enable", "env", "eval", "exec", "export", "fc", "fg", "getopts", "hash", "history", "let", "local"}
    | {"mapfile", "popd", "printf", "pushd", "read", "readarray", "readonly", "set", "shopt", "source", "test"}
    | {"time", "trap", "typeset", "ulimit", "umask", "unalias", "unset", "wait", "["}
)  # fmt: skip
"""Words of bash: they run text, change what later words mean, or count out `a[$(…)]` in an argument (`printf -v`)."""

STARTERS: Final = frozenset(
    {"abduco", "apptainer", "at", "aws-vault", "batch", "bunx", "bwrap", "byobu", "cgexec", "chamber", "chpst"}
    | {"chroot", "chrt", "cmd", "cpulimit", "daemonize", "dbus-launch", "dbus-run-session", "direnv", "distrobox"}
    | {"doas", "docker", "doppler", "dotenv", "dtach", "dumb-init", "eatmydata", "entr", "envdir", "execlineb"}
    | {"expect", "faketime", "fakechroot", "fakeroot", "firejail", "flatpak", "flatpak-spawn", "flock", "gdb"}
    | {"genv", "gnice", "gosu", "gtimeout", "gxargs", "hyperfine", "ionice", "kubectl", "linux32", "linux64", "lldb"}
    | {"ltrace", "lxc", "machinectl", "mosh", "nerdctl", "nice", "nix", "nix-shell", "nodemon", "nohup", "npx"}
    | {"nsenter", "numactl", "osascript", "parallel", "perf", "pipenv", "pipx", "pkexec", "pnpx", "podman"}
    | {"poetry", "prlimit", "proot", "proxychains", "proxychains4", "rlwrap", "rsh", "run-parts", "runcon"}
    | {"runuser", "s6-setuidgid", "schroot", "screen", "script", "sem", "setarch", "setpriv", "setsid", "setuidgid"}
    | {"sg", "socat", "softlimit", "sops", "srun", "ssh", "sshpass", "start-stop-daemon", "stdbuf", "strace", "su"}
    | {"su-exec", "sudo", "sudoedit", "systemd-inhibit", "systemd-run", "taskset", "timelimit", "timeout", "tini"}
    | {"tmux", "toolbox", "torify", "torsocks", "trickle", "tsocks", "unbuffer", "unshare", "uv", "uvx", "vagrant"}
    | {"valgrind", "watch", "watchexec", "wine", "wsl", "xargs", "xvfb-run", "zellij"}
)  # fmt: skip
"""Programs that start the program that their arguments name, here or elsewhere."""

INTERPRETERS: Final = frozenset(
    {"awk", "bun", "clojure", "dc", "deno", "ed", "elixir", "emacs", "emacsclient", "erl", "escript", "ex", "gawk"}
    | {"ghci", "gnuplot", "groovy", "gsed", "guile", "ipython", "irb", "java", "jshell", "julia", "kotlin", "lua"}
    | {"luajit", "m4", "mawk", "mysql", "nawk", "node", "nodejs", "nvim", "ocaml", "octave", "perl", "php", "psql"}
    | {"pypy", "pypy3", "python", "python2", "python3", "qjs", "r", "racket", "raku", "rscript", "ruby", "runghc"}
    | {"runhaskell", "sbcl", "scala", "sed", "sqlite3", "swift", "tclsh", "ts-node", "tsx", "vi", "view", "vim"}
    | {"vimdiff", "wish", "zx"}
)  # fmt: skip
"""Programs that run what an argument says in a language of their own."""

WRAPPERS: Final = SHELLS | BUILTINS | STARTERS | INTERPRETERS
"""Words that no allow rule covers. `is_wrapper` also knows them by path, version and letter case."""

LOADER: Final = re.compile(r"ld(-[a-z0-9_-]+)?\.so(\.\d+)?|ld-[a-z0-9_.-]+")
VERSION: Final = re.compile(r"[-.]?\d[\d.]*(-dbg|t|d|m)?$")
EXTENSION: Final = re.compile(r"\.(exe|com|cmd|bat)$")


def is_wrapper(word: str) -> bool:
    """Return whether the first word of a command starts something else than it says."""
    name = base_name(word)
    return (
        name in WRAPPERS or VERSION.sub("", name) in WRAPPERS or LOADER.fullmatch(name) is not None
    )


def is_shell(word: str) -> bool:
    """Return whether the first word of a command is a shell."""
    name = base_name(word)
    return name in SHELLS or VERSION.sub("", name) in SHELLS


def base_name(word: str) -> str:
    """Return a program's name without folder, letter case and the endings that Windows knows."""
    return EXTENSION.sub("", word.rstrip("/").rpartition("/")[2].casefold())
