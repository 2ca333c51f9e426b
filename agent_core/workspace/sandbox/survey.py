"""Looks at the disk before a command, and at what the command left there. Blocking."""

import os
import shutil
from collections.abc import Mapping, Sequence
from errno import EACCES, ENOENT
from pathlib import Path
from typing import Final

from agent_core.kernel.records import dataclass
from agent_core.workspace.permission import Needs
from agent_core.workspace.sandbox.denials import Walls, denials
from agent_core.workspace.sandbox.environment import scrubbed
from agent_core.workspace.sandbox.git_folders import GitFolder, git_folders
from agent_core.workspace.sandbox.guarded_names import Seen, look, new_since, quarantine
from agent_core.workspace.sandbox.secret_places import SecretPlaces, secret_places
from agent_core.workspace.sandbox.values import Aftermath, Boundaries

GIT: Final = ".git"
MOST_BINDS: Final = 256
TEMPORARY: Final = "/tmp"  # noqa: S108 - a private one stands there
OVERLAID: Final = tuple(Path(one) for one in ("/tmp", "/var/tmp", "/run"))  # noqa: S108 - as above
_OVERLAID_NAMES: Final = tuple(f"{one}/" for one in OVERLAID)
VIRTUAL_ENVIRONMENT: Final = "pyvenv.cfg"
RESOLVER: Final = "/etc/resolv.conf"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """What was found just before a command."""

    git: tuple[GitFolder, ...]
    """Of the roots and of the folders directly in them."""
    seen: Seen
    guarded: tuple[Path, ...]
    """What must not be changed, real; without what needs `gitConfig`."""
    secrets: SecretPlaces
    home: Path


def survey(
    boundaries: Boundaries, *, homes: tuple[Path, ...], env: Mapping[str, str], git_is_open: bool
) -> Ground:
    """Look at everything that the containment of one command depends on."""
    git = tuple(folder for root in boundaries.roots for folder in _git(root))
    seen = look(boundaries.roots, git)
    guarded = {_target(path, boundaries.roots) for path in seen.names if path.name != GIT}
    git_guarded = {path for folder in git for path in folder.guarded if not path.is_symlink()}
    guarded = guarded - git_guarded if git_is_open else guarded | git_guarded
    real = sorted(path for path in guarded if path is not None)
    return Ground(
        git=git,
        seen=seen,
        guarded=tuple(real[:MOST_BINDS]),
        secrets=secret_places(homes=homes, env={**boundaries.env, **env}, own=boundaries.hidden),
        home=homes[0] if homes else Path("/"),
    )


def aftermath(
    boundaries: Boundaries,
    ground: Ground,
    *,
    needs: frozenset[Needs],
    into: Path,
    output: str,
    exit_code: int | None,
) -> Aftermath:
    """Take away what a command must not have made, and say what it was kept from."""
    git_is_open = "gitConfig" in needs
    new = new_since(ground.seen, look(boundaries.roots, ground.git))
    if git_is_open:
        new = tuple(path for path in new if GIT not in path.parts)
    walls = Walls(
        network="network" in needs,
        git=git_is_open,
        guarded=tuple(sorted({path.name for path in ground.guarded if GIT not in path.parts})),
        masked=(*ground.secrets.folders, *ground.secrets.files),
        home=ground.home,
    )
    return Aftermath(
        quarantined=quarantine(new, into=into),
        denied=denials(output, exit_code=exit_code, walls=walls),
    )


def find_program(name: str, *, cwd: Path, path: str) -> Path:
    """Give the file of a program, as the system would find it on starting it.

    Raises:
        OSError: There is none, or it may not be run.
    """
    if "/" not in name:
        found = shutil.which(name, path=path)
        if found is None:
            raise FileNotFoundError(ENOENT, os.strerror(ENOENT), name)
        return Path(found)
    whole = cwd / name
    if not whole.exists():
        raise FileNotFoundError(ENOENT, os.strerror(ENOENT), name)
    if whole.is_dir() or not os.access(whole, os.X_OK):
        raise PermissionError(EACCES, os.strerror(EACCES), name)
    return whole


def inner_environment(env: Mapping[str, str]) -> Mapping[str, str]:
    """Give the environment of a contained command. Pure.

    Caches go to the private temporary folder: the user's own are read-only, and a poisoned one would act outside.
    """
    return {
        **scrubbed(env).env,
        "TMPDIR": TEMPORARY,
        "XDG_CACHE_HOME": f"{TEMPORARY}/.cache",
        "npm_config_cache": f"{TEMPORARY}/.npm",
    }


def shown_again(
    boundaries: Boundaries, *, program: Path, path: str, network: bool
) -> tuple[Path, ...]:
    """Give what lies in a masked or temporary place and must be read all the same."""
    found = [folder for folder in boundaries.readable if folder.is_dir()]
    if any(_is_in(program, place) for place in OVERLAID) and not any(
        _is_in(program, root) for root in boundaries.roots
    ):
        found.append(program)
    for word in path.split(os.pathsep):
        if word.startswith(_OVERLAID_NAMES):
            found.extend(_program_folder(Path(word)))
    resolver = Path(os.path.realpath(RESOLVER))
    if network and resolver.is_file() and any(_is_in(resolver, place) for place in OVERLAID):
        found.append(resolver)
    return tuple(dict.fromkeys(found))


def _program_folder(folder: Path) -> Sequence[Path]:
    if not folder.is_dir():
        return ()
    return (folder.parent if (folder.parent / VIRTUAL_ENVIRONMENT).is_file() else folder,)


def _git(root: Path) -> Sequence[GitFolder]:
    found = list(git_folders(root))
    try:
        with os.scandir(root) as entries:
            below = [Path(one.path) for one in entries if one.is_dir(follow_symlinks=False)]
    except OSError:
        return found
    for folder in below[:MOST_BINDS]:
        if folder.name != GIT and (folder / GIT).is_dir() and not (folder / GIT).is_symlink():
            found.extend(git_folders(folder))
    return found


def _target(path: Path, roots: Sequence[Path]) -> Path | None:
    """Give what to hold read-only for a protected name: what a link leads to, if that is in a root."""
    if not path.is_symlink():
        return path
    real = Path(os.path.realpath(path))
    return real if real.exists() and any(_is_in(real, root) for root in roots) else None


def _is_in(path: Path, place: Path) -> bool:
    return place in path.parents
