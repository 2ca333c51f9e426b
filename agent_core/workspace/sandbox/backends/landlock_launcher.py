"""Started with `python -I -S` in place of a command: takes rights away from itself, then becomes the command.

Uses the standard library alone, and nothing else of ours: it runs before anything is set up, in milliseconds.
"""

import ctypes
import json
import os
import resource
import struct
import sys

CREATE_RULESET = 444
ADD_RULE = 445
RESTRICT_SELF = 446
VERSION_FLAG = 1
BENEATH = 1
SET_NO_NEW_PRIVS = 38
SET_SECCOMP = 22
FILTER_MODE = 2
NO_RIGHTS = 125
DROP_FROM_BOUNDING_SET = 24
CHANGE_AMBIENT_SET = 47
CLEAR_AMBIENT_SET = 4
CAPABILITY_VERSION = 0x20080522
MOST_CAPABILITIES = 64
NOT_PERMITTED = 1
NO_SUCH = 22

EXECUTE = 1
WRITE_FILE = 2
READ_FILE = 4
READ_DIR = 8
REFER = 1 << 13
TRUNCATE = 1 << 14
IOCTL_DEV = 1 << 15
FIRST_RIGHTS = (1 << 13) - 1
BY_VERSION = ((2, REFER), (3, TRUNCATE), (5, IOCTL_DEV))
FOR_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
TCP = 3
TCP_SINCE = 4
SCOPES = 3
SCOPES_SINCE = 6


def main(argv: list[str]) -> None:
    """Restrict and become the command; ends with an exit code when that is not possible."""
    if argv == ["--version"]:
        sys.stdout.write(f"{version()}\n")
        return
    rules: dict[str, object] = json.loads(rules_text(argv[0]))  # pyright: ignore[reportAny] - our own words
    try:
        restrict(rules)
    except OSError as error:
        # Never without it: whoever started this believes that it holds.
        sys.stderr.write(f"containment failed: {error}\n")
        sys.exit(NO_RIGHTS)
    os.execvp(argv[1], argv[1:])  # noqa: S606 - it becomes the command


def rules_text(word: str) -> str:
    """Return the rules: they stand there, or in the file of the descriptor that is named."""
    if not word.isdigit():
        return word
    with open(int(word), encoding="utf-8") as file:  # noqa: PTH123 - a descriptor
        return file.read()


def version() -> int:
    """Return the version of Landlock; below 1: there is none."""
    return syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(VERSION_FLAG))


def restrict(rules: "dict[str, object]") -> None:
    """Restrict this process: resource limits, no new privileges, Landlock, capabilities and seccomp.

    Raises:
        OSError: The system refuses.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit = int(str(rules["file_bytes"]))
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    check(prctl(SET_NO_NEW_PRIVS, 1, 0, 0, 0))
    landlock(rules)
    drop_capabilities()
    seccomp(rules["seccomp"])


def landlock(rules: "dict[str, object]") -> None:
    """Allow what the rules name, and nothing else."""
    abi_version = version()
    if abi_version < 1:
        raise OSError(0, "there is no Landlock")
    rights = FIRST_RIGHTS
    for since, more in BY_VERSION:
        rights |= more if abi_version >= since else 0
    net = TCP if abi_version >= TCP_SINCE and not rules["network"] else 0
    scopes = SCOPES if abi_version >= SCOPES_SINCE else 0
    given = struct.pack("=QQQ", rights, net, scopes)[
        : 8 if abi_version < TCP_SINCE else 16 if abi_version < SCOPES_SINCE else 24
    ]
    ruleset = check(syscall(CREATE_RULESET, given, ctypes.c_size_t(len(given)), ctypes.c_uint32(0)))
    reading = (EXECUTE | READ_FILE | READ_DIR) & rights
    allow(ruleset, "/", READ_DIR)
    for path in listed(rules["read"]):
        allow(ruleset, path, reading)
    for path in listed(rules["write"]):
        allow(ruleset, path, rights & ~(1 << 6) & ~(1 << 11))
    check(syscall(RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)))
    os.close(ruleset)


def allow(ruleset: int, path: str, rights: int) -> None:
    """Allow something below a path; one that is gone is passed over."""
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not os.path.isdir(path):  # noqa: PTH112 - no pathlib: it costs milliseconds
            rights &= FOR_FILES
        if rights:
            rule = struct.pack("=Qi", rights, opened)
            check(
                syscall(
                    ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(BENEATH), rule, ctypes.c_uint32(0)
                )
            )
    finally:
        os.close(opened)


def drop_capabilities() -> None:
    """Drop every capability: root without one reads neither memory nor environment of our other processes.

    With `no_new_privs`, which is set, no program that is started gets one back.
    """
    for number in range(MOST_CAPABILITIES):
        if prctl(DROP_FROM_BOUNDING_SET, number, 0, 0, 0) < 0:
            # No such capability, or not for us to drop: then there is nothing to give up but what `capset` clears.
            if ctypes.get_errno() not in (NOT_PERMITTED, NO_SUCH):
                check(-1)
            break
    if prctl(CHANGE_AMBIENT_SET, CLEAR_AMBIENT_SET, 0, 0, 0) < 0 and ctypes.get_errno() != NO_SUCH:
        check(-1)
    header = struct.pack("=Ii", CAPABILITY_VERSION, 0)
    made: int = ctypes.CDLL(None, use_errno=True).capset(header, bytes(24))  # pyright: ignore[reportAny] - ctypes tells no types
    check(made)


def seccomp(content: object) -> None:
    """Load a filter of system calls, given in hexadecimal."""
    if not isinstance(content, str):
        return
    code = bytes.fromhex(content)
    held = ctypes.create_string_buffer(code, len(code))
    program = struct.pack("@HxxxxxxP", len(code) // 8, ctypes.addressof(held))
    check(prctl(SET_SECCOMP, FILTER_MODE, ctypes.c_char_p(program), 0, 0))


def syscall(*arguments: object) -> int:
    """Make a system call."""
    made: int = ctypes.CDLL(None, use_errno=True).syscall(*arguments)  # pyright: ignore[reportAny] - ctypes tells no types
    return made


def prctl(*arguments: object) -> int:
    """Change something of this process."""
    made: int = ctypes.CDLL(None, use_errno=True).prctl(*arguments)  # pyright: ignore[reportAny] - as above
    return made


def listed(value: object) -> "list[str]":
    """Read a list of texts."""
    if not isinstance(value, list):
        return []
    return [str(one) for one in value]  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - typing is slow to import


def check(result: int) -> int:
    """Raise what the system said."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    main(sys.argv[1:])
