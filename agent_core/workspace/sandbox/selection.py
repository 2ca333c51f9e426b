"""Chooses how the processes of one workspace are contained."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from agent_core.workspace.sandbox.backends.uncontained import Uncontained
from agent_core.workspace.sandbox.values import Boundaries, Sandbox, SandboxCapability

NOT_A_ROOT: Final = tuple(
    Path(f"/{one}")
    for one in ("tmp", "var", "run", "etc", "usr", "bin", "sbin", "lib", "boot", "home", "root", "opt")
)  # fmt: skip
"""A workspace that is one of these, or around one, cannot be laid open for writing."""
NEVER_INSIDE: Final = tuple(Path(f"/{one}") for one in ("proc", "sys", "dev", "boot"))


def sandbox_for(containing: SandboxCapability, boundaries: Boundaries) -> Sandbox:
    """Return the containment for a workspace: never a lower rung without saying why. Blocking."""
    homes = homes_of(boundaries.env)
    why = why_uncontainable(boundaries.roots, homes=homes)
    if why is not None:
        uncontainable = SandboxCapability(level="none", how="nothing", why_not_full=why)
        return Uncontained(uncontainable, passed=boundaries.passed_variables)
    match containing.level, containing.how.partition(" ")[0]:
        case "full", _:
            from agent_core.workspace.sandbox.backends.bubblewrap import Bubblewrap  # noqa: PLC0415 - one of three is needed

            return Bubblewrap(containing, boundaries, homes=homes)
        case "partial", "Landlock":
            from agent_core.workspace.sandbox.backends.landlock import LandlockSandbox  # noqa: PLC0415 - as above

            return LandlockSandbox(containing, boundaries, homes=homes)
        case "partial", _:
            from agent_core.workspace.sandbox.backends.seatbelt import Seatbelt  # noqa: PLC0415 - as above

            return Seatbelt(containing, boundaries, homes=homes)
        case _:
            return Uncontained(
                replace(containing, level="none"), passed=boundaries.passed_variables
            )


def why_uncontainable(roots: tuple[Path, ...], *, homes: tuple[Path, ...]) -> str | None:
    """Return why a workspace cannot be contained; None: it can. Pure."""
    advice = "open a folder of the project alone to have commands contained"
    for root in roots:
        for place in (*homes, *NOT_A_ROOT):
            if place.is_relative_to(root):
                what = "is no project's own folder" if place == root else f"has {place} in it"
                return f"the workspace {root} {what}, and all of it would be open for writing; {advice}"
        if any(root.is_relative_to(one) for one in NEVER_INSIDE):
            return f"the workspace {root} belongs to the system; {advice}"
    return None


def homes_of(env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the home that the environment names and the one of the user, as real paths. Blocking."""
    homes = [env.get("HOME", "")]
    with suppress(KeyError, OSError, ImportError):
        import pwd  # noqa: PLC0415 - not every system has it

        homes.append(pwd.getpwuid(os.geteuid()).pw_dir)
    found = (Path(os.path.realpath(home)) for home in homes if home.startswith("/"))
    return tuple(dict.fromkeys(home for home in found if home != Path("/")))
