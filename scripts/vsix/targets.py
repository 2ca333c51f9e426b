"""The platforms an extension is built for, and the tags of the wheels that run there."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

PYTHONS: Final = ("3.11", "3.12", "3.13", "3.14")
EXTRAS: Final = ("export", "images", "mcp")
# The newest glibc that wheels of our libraries ask for is that of 2018; pip wants every older one named too.
_GLIBC: Final = range(28, 4, -1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A platform as the editor names it."""

    name: str
    tags: tuple[str, ...]
    """What pip calls platforms, the best first."""
    extras: tuple[str, ...] = EXTRAS

    def arguments(self, python: str) -> Iterable[str]:
        """Give what makes pip choose wheels for that Python there, whatever pip itself runs on."""
        short = python.replace(".", "")
        yield from ("--python-version", python, "--implementation", "cp")
        for abi in (f"cp{short}", "abi3", "none"):
            yield from ("--abi", abi)
        for tag in self.tags:
            yield from ("--platform", tag)


def _manylinux(machine: str) -> tuple[str, ...]:
    named = tuple(f"manylinux_2_{minor}_{machine}" for minor in _GLIBC)
    return (*named, f"manylinux2014_{machine}", f"manylinux2010_{machine}", f"manylinux1_{machine}")


def _macos(machine: str) -> tuple[str, ...]:
    newer = [f"macosx_{major}_0" for major in (13, 12, 11)]
    older = [f"macosx_10_{minor}" for minor in range(16, 8, -1)]
    return tuple(f"{system}_{kind}" for system in newer + older for kind in (machine, "universal2"))


TARGETS: Final[Mapping[str, Target]] = {
    target.name: target
    for target in (
        # ripgrep has wheels for this one alone; elsewhere one on the PATH is found.
        Target(name="linux-x64", tags=_manylinux("x86_64"), extras=(*EXTRAS, "search")),
        Target(name="linux-arm64", tags=_manylinux("aarch64")),
        # MCP needs cryptography, which has no wheel for Macs with Intel processors since 49.
        Target(name="darwin-x64", tags=_macos("x86_64"), extras=("export", "images")),
        Target(name="darwin-arm64", tags=_macos("arm64")),
    )
}


def target_of(system: str, machine: str) -> Target:
    """Name the target of a machine, by what Python's `platform` says of it.

    Raises:
        LookupError: Tiller does not run there.
    """
    machines = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64", "arm64": "arm64"}
    name = f"{system.lower()}-{machines.get(machine.lower(), machine)}"
    if name not in TARGETS:
        message = f"there is no target for {system} on {machine}: name one of {sorted(TARGETS)}"
        raise LookupError(message)
    return TARGETS[name]


def pre_release_version(version: str, commit_time: datetime) -> str:
    """Return the version of a pre-release: above the release of that minor version, below the next minor version.

    The Marketplace takes three numbers alone, each below 2^31.

    Args:
        version: The version of the release before it.
        commit_time: In UTC; the patch number is its hour.
    """
    major, minor, _ = version.split(".")
    return f"{major}.{minor}.{commit_time:%Y%m%d%H}"
