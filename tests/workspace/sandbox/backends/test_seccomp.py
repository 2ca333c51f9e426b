"""The filter of system calls, run as the kernel runs it: call by call, with its arguments."""

import struct

import pytest

from agent_core.workspace.sandbox.backends.seccomp import seccomp_filter

ALLOW, KILL = 0x7FFF0000, 0x80000000
EPERM, ENOSYS, EAFNOSUPPORT = 0x50001, 0x50026, 0x50061
X86_64, AARCH64 = 0xC000003E, 0xC00000B7


def verdict(
    number: int, *arguments: int, machine: str = "x86_64", audit: int | None = None, **kind: bool
) -> int:
    """Interpret the filter for one call."""
    code = seccomp_filter(machine=machine, **({"internet": True, "unix": False} | kind))
    assert code is not None
    audit = audit if audit is not None else {"x86_64": X86_64}.get(machine, AARCH64)
    given = (*arguments, *(0 for _ in range(6 - len(arguments))))
    data = struct.pack("<IIQ6Q", number, audit, 0, *given)
    at = accumulator = 0
    while True:
        operation, yes, no, value = struct.unpack_from("<HBBI", code, at * 8)
        at += 1
        match operation:
            case 0x20:
                (accumulator,) = struct.unpack_from("<I", data, value)
            case 0x15:
                at += yes if accumulator == value else no
            case 0x35:
                at += yes if accumulator >= value else no
            case 0x45:
                at += yes if accumulator & value else no
            case 0x06:
                return value
            case _:
                pytest.fail(f"no such instruction: {operation:#x}")


FORBIDDEN = {
    "x86_64": [
        101, 103, 153, 155, 159, 161, 163, 164, 165, 166, 167, 168, 169, 170, 171, 172, 173, 175, 176, 179, 227, 246,
        248, 249, 250, 272, 298, 304, 305, 308, 310, 311, 312, 313, 320, 321, 323, 425, 426, 427, 428, 429, 430, 431,
        432, 433, 438, 442, 443, 467,
    ],
    "aarch64": [
        39, 40, 41, 51, 58, 60, 89, 97, 104, 105, 106, 112, 116, 117, 142, 161, 162, 170, 171, 217, 218, 219, 224,
        225, 241, 265, 266, 268, 270, 271, 272, 273, 280, 282, 294, 425, 426, 427, 428, 429, 430, 431, 432, 433, 438,
        442, 443, 467,
    ],
}  # fmt: skip
OTHERWISE = {"x86_64": {16, 41, 56, 435, 437}, "aarch64": {29, 198, 220, 435, 437}}


@pytest.mark.parametrize("machine", FORBIDDEN)
def test_exactly_these_calls_are_refused(machine: str) -> None:
    refused = [
        number
        for number in range(600)
        if number not in OTHERWISE[machine] and verdict(number, machine=machine) != ALLOW
    ]
    assert refused == FORBIDDEN[machine]
    assert {verdict(number, machine=machine) for number in refused} == {EPERM}


@pytest.mark.parametrize("machine", FORBIDDEN)
def test_children_in_new_namespaces_are_refused(machine: str) -> None:
    clone = {"x86_64": 56, "aarch64": 220}[machine]
    assert verdict(clone, 17, machine=machine) == ALLOW
    for bit in (0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000):
        assert verdict(clone, bit | 17, machine=machine) == EPERM
    assert verdict(clone, 0x10000 | 0x40000 | 0x80000, machine=machine) == ALLOW
    assert verdict(435, machine=machine) == ENOSYS


MODES = {
    "x86_64": {85: 1, 90: 1, 91: 1, 133: 1, 259: 2, 268: 2, 452: 2},
    "aarch64": {33: 2, 52: 1, 53: 2, 452: 2},
}
"""Which argument of a call is the mode of a file: creat, chmod, fchmod, mknod, mknodat, fchmodat, fchmodat2."""
OPENS = {"x86_64": {2: (1, 2), 257: (2, 3)}, "aarch64": {56: (2, 3)}}
"""And of open and openat the flags, and the mode."""


@pytest.mark.parametrize("machine", FORBIDDEN)
def test_no_file_runs_with_the_rights_of_its_owner(machine: str) -> None:
    for number, place in MODES[machine].items():
        for mode in (0o4000, 0o4755, 0o6755, 0o104755):
            before = [0o4000] * place
            assert verdict(number, *before, mode, machine=machine) == EPERM
        for mode in (0, 0o755, 0o2775, 0o1777):
            assert verdict(number, *before, mode, machine=machine) == ALLOW
    for number, (flags_at, mode_at) in OPENS[machine].items():
        for flags, mode, expected in (
            (0o100, 0o4755, EPERM),
            (0o20200000, 0o4755, EPERM),
            (0o102, 0o755, ALLOW),
            # Without a file that is made there is no such argument: anything may stand there.
            (0o200000, 0o4755, ALLOW),
            (0o2, 0o7777, ALLOW),
        ):
            arguments = [0o4000] * 4
            arguments[flags_at], arguments[mode_at] = flags, mode
            assert verdict(number, *arguments, machine=machine) == expected
    # What it makes stands in memory, where the filter cannot look.
    assert verdict(437, machine=machine) == ENOSYS


@pytest.mark.parametrize("machine", FORBIDDEN)
def test_nobody_types_on_a_terminal_for_others(machine: str) -> None:
    ioctl = {"x86_64": 16, "aarch64": 29}[machine]
    for request in (0x5412, 0x541C, 0x5423, (1 << 32) | 0x5412):
        assert verdict(ioctl, 0, request, machine=machine) == EPERM
    assert verdict(ioctl, 0x5412, 0x5401, machine=machine) == ALLOW


@pytest.mark.parametrize("machine", FORBIDDEN)
@pytest.mark.parametrize(
    ("kind", "families"),
    [
        ({"internet": True, "unix": False}, {2: ALLOW, 10: ALLOW, 1: EPERM}),
        ({"internet": True, "unix": True}, {2: ALLOW, 10: ALLOW, 1: ALLOW}),
        ({"internet": False, "unix": True}, {2: EAFNOSUPPORT, 10: EAFNOSUPPORT, 1: ALLOW}),
        ({"internet": False, "unix": False}, {2: EAFNOSUPPORT, 10: EAFNOSUPPORT, 1: EPERM}),
    ],
    ids=["of the internet", "both", "of this machine", "none at all"],
)
def test_sockets_are_of_few_kinds(
    machine: str, kind: dict[str, bool], families: dict[int, int]
) -> None:
    call = {"x86_64": 41, "aarch64": 198}[machine]
    found = {family: verdict(call, family, 1, 0, machine=machine, **kind) for family in range(48)}
    some = kind["internet"]
    assert found == {
        family: families.get(family, ALLOW if family == 16 and some else EAFNOSUPPORT)
        for family in range(48)
    }
    if some:
        assert verdict(call, 16, 3, 9, machine=machine, **kind) == EPERM


def test_calls_of_another_processor_end_the_program() -> None:
    assert verdict(0, audit=0x40000003) == KILL
    assert verdict(0x40000000 + 39) == ENOSYS
    assert verdict(0x40000000, machine="aarch64") == ALLOW
    assert verdict(0x3FFFFFFF) == ALLOW


def test_for_an_unknown_processor_there_is_none() -> None:
    assert seccomp_filter(machine="riscv64", internet=True, unix=False) is None
    assert seccomp_filter(machine="arm64", internet=True, unix=True) == seccomp_filter(
        machine="aarch64", internet=True, unix=True
    )
