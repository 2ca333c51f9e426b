"""State that a process of `tiller run` has from the shell that started it, to be passed to another process of the user.

The client describes itself, and the process that runs for it takes all of that over, except `confinement`, which
has to be equal on both sides. Linux only. Imports next to nothing: a person waits for this module.
"""

import os
import resource
import sys
from _json import encode_basestring_ascii as quoted
from collections.abc import Iterable, Mapping
from signal import SIG_BLOCK, SIG_IGN, SIGHUP, SIGINT, SIGQUIT, SIGTSTP, getsignal, pthread_sigmask

import tiller_server

IGNORABLE = (SIGHUP, SIGINT, SIGQUIT, SIGTSTP)
"""Signals that a shell or `nohup` may have switched off."""
LIMITS = tuple(
    sorted({getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")})
)
_STATUS = (
    *("Uid:", "Gid:", "Groups:", "NoNewPrivs:", "Seccomp:"),
    *("CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"),
)
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")


def confinement() -> str:
    """Return the rights that the system and this installation grant a process, as one text to be compared.

    Users, groups, capabilities, system call filter, namespaces; the Python environment and the package.
    """
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:  # noqa: PTH123 - pathlib costs 5 ms
        status = [line for line in file if line.startswith(_STATUS)]
    spaces = [_namespace(name) for name in _NAMESPACES]
    return "\n".join(
        (*status, *spaces, sys.prefix, str(tiller_server.__file__), sys.getfilesystemencoding())
    )


def request(arguments: Iterable[str], env: Mapping[str, str]) -> bytes:
    """Return the command line and all that this process has from its shell, as JSON. Blocking."""
    umask = os.umask(0)
    _ = os.umask(umask)
    streams = (sys.stdin, sys.stdout, sys.stderr)
    encodings = ",".join(f"[{quoted(one.encoding)},{quoted(one.errors or '')}]" for one in streams)
    variables = ",".join(f"{quoted(name)}:{quoted(text)}" for name, text in env.items())
    limits = ",".join("[{},{}]".format(*resource.getrlimit(which)) for which in LIMITS)
    ignored = [number for number in IGNORABLE if getsignal(number) == SIG_IGN]
    members = (
        f'"arguments":[{",".join(quoted(word) for word in arguments)}]',
        f'"confinement":{quoted(confinement())}',
        f'"encodings":[{encodings}]',
        f'"env":{{{variables}}}',
        f'"ignored":[{_numbers(ignored)}]',
        f'"blocked":[{_numbers(pthread_sigmask(SIG_BLOCK, ()))}]',
        f'"limits":[{limits}]',
        f'"priority":{os.getpriority(os.PRIO_PROCESS, 0)}',
        f'"umask":{umask}',
    )
    return f"{{{','.join(members)}}}".encode()


def _numbers(values: Iterable[int]) -> str:
    return ",".join(str(int(value)) for value in values)


def _namespace(name: str) -> str:
    try:
        return os.readlink(f"/proc/self/ns/{name}")  # noqa: PTH115 - as above
    except OSError:
        return ""
