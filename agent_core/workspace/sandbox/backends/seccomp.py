"""The filter of system calls that contained processes run under, as the bytes that the kernel takes.

Written out as Berkeley Packet Filter, so that no library is needed: eight bytes an instruction.
"""

import os
import struct
from collections.abc import Callable, Mapping, Sequence
from errno import EAFNOSUPPORT, ENOSYS, EPERM
from functools import lru_cache
from typing import Final

from agent_core.kernel.values import Value


def memory_file(name: str, content: bytes) -> int:
    """Return a descriptor of a file in memory with a content, at its beginning; the caller closes it. Linux alone."""
    opened = os.memfd_create(name)
    try:
        left = memoryview(content)
        while left:
            left = left[os.write(opened, left) :]
        _ = os.lseek(opened, 0, os.SEEK_SET)
    except BaseException:
        os.close(opened)
        raise
    return opened


def closing(*descriptors: int | None) -> Callable[[], None]:
    """Return what closes descriptors, once."""
    left = [one for one in descriptors if one is not None]

    def close() -> None:
        while left:
            os.close(left.pop())

    return close


LOAD: Final = 0x20
"""Load a word of `struct seccomp_data`."""
JUMP_EQUAL: Final = 0x15
JUMP_AT_LEAST: Final = 0x35
JUMP_BITS: Final = 0x45
RETURN: Final = 0x06
ALLOW: Final = 0x7FFF0000
ERRNO: Final = 0x00050000
KILL: Final = 0x80000000

NUMBER_AT: Final = 0
ARCHITECTURE_AT: Final = 4
X32_BIT: Final = 0x40000000
"""System calls of x86-64's odd sister: other numbers for the same deeds."""

AF_UNIX: Final = 1
AF_INET: Final = 2
AF_INET6: Final = 10
AF_NETLINK: Final = 16
NETLINK_ROUTE: Final = 0
NEW_NAMESPACES: Final = 0x7E020000
"""CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID and NEWNET."""
SET_USER_ID: Final = 0o4000
TIOCSTI: Final = 0x5412
TIOCLINUX: Final = 0x541C
TIOCSETD: Final = 0x5423


class Machine(Value, frozen=True, kw_only=True):
    """Properties that differ between processors."""

    audit: int
    """AUDIT_ARCH_…"""
    numbers: dict[str, int]
    has_x32: bool


def _numbers(table: str) -> dict[str, int]:
    """Read names with their numbers."""
    pairs = (pair.split() for pair in table.split(","))
    return {name: int(number) for name, number in pairs}


NEW_CALLS: Final = _numbers("""
    pidfd_getfd 438, io_uring_setup 425, io_uring_enter 426, io_uring_register 427, open_tree 428,
    move_mount 429, openat2 437, fchmodat2 452, fsopen 430, fsconfig 431, fsmount 432, fspick 433, clone3 435, mount_setattr 442,
    quotactl_fd 443, open_tree_attr 467
    """)
"""Calls that have the same number everywhere."""
X86_64: Final = Machine(
    audit=0xC000003E,
    has_x32=True,
    numbers=NEW_CALLS
    | _numbers("""
    open 2, ioctl 16, socket 41, creat 85, chmod 90, fchmod 91, mknod 133, openat 257, mknodat 259, fchmodat 268, clone 56, ptrace 101, syslog 103, vhangup 153, pivot_root 155, adjtimex 159,
    chroot 161, acct 163, settimeofday 164, mount 165, umount2 166, swapon 167, swapoff 168, reboot 169,
    sethostname 170, setdomainname 171, iopl 172, ioperm 173, init_module 175, delete_module 176,
    quotactl 179, clock_settime 227, kexec_load 246, add_key 248, request_key 249, keyctl 250, unshare 272,
    perf_event_open 298, open_by_handle_at 304, clock_adjtime 305, setns 308, process_vm_readv 310,
    process_vm_writev 311, kcmp 312, finit_module 313, kexec_file_load 320, bpf 321, userfaultfd 323
    """),
)
AARCH64: Final = Machine(
    audit=0xC00000B7,
    has_x32=False,
    numbers=NEW_CALLS
    | _numbers("""
    ioctl 29, mknodat 33, fchmod 52, fchmodat 53, openat 56, umount2 39, mount 40, pivot_root 41, chroot 51, vhangup 58, quotactl 60, acct 89, unshare 97,
    kexec_load 104, init_module 105, delete_module 106, clock_settime 112, syslog 116, ptrace 117,
    reboot 142, sethostname 161, setdomainname 162, settimeofday 170, adjtimex 171, socket 198,
    add_key 217, request_key 218, keyctl 219, clone 220, swapon 224, swapoff 225, perf_event_open 241,
    open_by_handle_at 265, clock_adjtime 266, setns 268, process_vm_readv 270, process_vm_writev 271,
    kcmp 272, finit_module 273, bpf 280, userfaultfd 282, kexec_file_load 294
    """),
)
MACHINES: Final[Mapping[str, Machine]] = {"x86_64": X86_64, "aarch64": AARCH64, "arm64": AARCH64}
MODE_AT: Final[Mapping[str, int]] = {
    "chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "creat": 1, "mknod": 1, "mknodat": 2, "open": 2, "openat": 3
}  # fmt: skip
"""Which argument of a call is the mode of a file."""
OPENS: Final[Mapping[str, int]] = {"open": 1, "openat": 2}
"""Calls in which that argument means nothing unless their flags, which are this argument, make a file."""
MAKES: Final = 0o100 | 0o20000000
"""O_CREAT and O_TMPFILE, without the bits of O_DIRECTORY that the second has too."""
LOOKED_INTO: Final = frozenset({"socket", "clone", "clone3", "ioctl", "openat2", *MODE_AT})
"""Calls that are judged by their arguments, or answered otherwise than by "not permitted"."""


@lru_cache(maxsize=8)
def seccomp_filter(*, machine: str, internet: bool, unix: bool) -> bytes | None:
    """Return the filter; None for a processor that it is not written for.

    Refused are calls that change mounts, namespaces, keys, the kernel and other processes, injected terminal input,
    sockets of kinds that no build or test needs, and programs that others would run as the user (set-user-ID).
    `clone3`, `openat2` and `io_uring` do not exist: their arguments cannot be
    looked into, and programs fall back to the older calls.

    Args:
        machine: As `os.uname().machine` says.
        internet: Sockets of the internet may be made; without a network namespace nothing else keeps UDP back.
        unix: Sockets of this machine (`AF_UNIX`) may be made: a path leads to other programs of the user, and no
            read-only mount stops it. Without, `socketpair` works all the same: it is a call of its own.
    """
    processor = MACHINES.get(machine)
    if processor is None:
        return None
    families = [AF_INET, AF_INET6, AF_NETLINK] if internet else []
    rules = [*_head(processor), *_forbidden(processor)]
    rules += _sockets(processor.numbers["socket"], [*families, AF_UNIX] if unix else families)
    rules += _namespaces(processor.numbers["clone"])
    rules += _terminal(processor.numbers["ioctl"])
    rules += _answer(processor.numbers["clone3"], ENOSYS)
    rules += _answer(processor.numbers["openat2"], ENOSYS)
    for name, place in MODE_AT.items():
        if name in processor.numbers:
            rules += _modes(processor.numbers[name], place, flags_at=OPENS.get(name))
    rules.append(_instruction(RETURN, value=ALLOW))
    return b"".join(rules)


def _head(machine: Machine) -> Sequence[bytes]:
    rules = [
        _instruction(LOAD, value=ARCHITECTURE_AT),
        _instruction(JUMP_EQUAL, value=machine.audit, if_true=1),
        # Programs for another processor: their calls have other numbers.
        _instruction(RETURN, value=KILL),
        _instruction(LOAD, value=NUMBER_AT),
    ]
    if machine.has_x32:
        rules += [
            _instruction(JUMP_AT_LEAST, value=X32_BIT, if_false=1),
            _instruction(RETURN, value=ERRNO | ENOSYS),
        ]
    return rules


def _forbidden(machine: Machine) -> Sequence[bytes]:
    numbers = sorted(number for name, number in machine.numbers.items() if name not in LOOKED_INTO)
    return [rule for number in numbers for rule in _answer(number, EPERM)]


def _answer(number: int, error: int) -> Sequence[bytes]:
    """Refuse a call; the number is loaded before and after."""
    return (
        _instruction(JUMP_EQUAL, value=number, if_false=1),
        _instruction(RETURN, value=ERRNO | error),
    )


def _sockets(number: int, families: Sequence[int]) -> Sequence[bytes]:
    """Allow sockets of these families alone, and of netlink only what lists interfaces and routes."""
    inner = [_instruction(LOAD, value=_argument_at(0))]
    if AF_NETLINK in families:
        inner += [
            _instruction(JUMP_EQUAL, value=AF_NETLINK, if_false=4),
            _instruction(LOAD, value=_argument_at(2)),
            _instruction(JUMP_EQUAL, value=NETLINK_ROUTE, if_false=1),
            _instruction(RETURN, value=ALLOW),
            _instruction(RETURN, value=ERRNO | EPERM),
        ]
    for family in families:
        if family != AF_NETLINK:
            inner += [
                _instruction(JUMP_EQUAL, value=family, if_false=1),
                _instruction(RETURN, value=ALLOW),
            ]
    inner += [
        _instruction(JUMP_EQUAL, value=AF_UNIX, if_false=1),
        _instruction(RETURN, value=ERRNO | EPERM),
        _instruction(RETURN, value=ERRNO | EAFNOSUPPORT),
    ]
    return _only_for(number, inner)


def _namespaces(number: int) -> Sequence[bytes]:
    """Refuse children in new namespaces."""
    return _only_for(
        number,
        (
            _instruction(LOAD, value=_argument_at(0)),
            _instruction(JUMP_BITS, value=NEW_NAMESPACES, if_false=1),
            _instruction(RETURN, value=ERRNO | EPERM),
            _instruction(RETURN, value=ALLOW),
        ),
    )


def _modes(number: int, place: int, *, flags_at: int | None) -> Sequence[bytes]:
    """Refuse to make a file one that runs with the rights of its owner.

    Set-group-ID is left alone: folders have it for good reasons, and a call does not say what it is about.
    """
    mode = (
        _instruction(LOAD, value=_argument_at(place)),
        _instruction(JUMP_BITS, value=SET_USER_ID, if_false=1),
        _instruction(RETURN, value=ERRNO | EPERM),
        _instruction(RETURN, value=ALLOW),
    )
    if flags_at is None:
        return _only_for(number, mode)
    flags = (
        _instruction(LOAD, value=_argument_at(flags_at)),
        _instruction(JUMP_BITS, value=MAKES, if_true=1),
        _instruction(RETURN, value=ALLOW),
    )
    return _only_for(number, (*flags, *mode))


def _terminal(number: int) -> Sequence[bytes]:
    """Refuse to type on a terminal in somebody's name."""
    refused = [
        rule for request in (TIOCSTI, TIOCLINUX, TIOCSETD) for rule in _answer(request, EPERM)
    ]
    return _only_for(
        number,
        (
            # The kernel looks at the low half of the request alone, so the filter does as well.
            _instruction(LOAD, value=_argument_at(1)),
            *refused,
            _instruction(RETURN, value=ALLOW),
        ),
    )


def _only_for(number: int, inner: Sequence[bytes]) -> Sequence[bytes]:
    """Return rules guarded by a test for a system call; every path must return, as the number is not loaded again."""
    return (_instruction(JUMP_EQUAL, value=number, if_false=len(inner)), *inner)


def _argument_at(index: int) -> int:
    """Return the place of the low half of an argument, on a little-endian machine."""
    return 16 + 8 * index


def _instruction(code: int, *, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("<HBBI", code, if_true, if_false, value)
