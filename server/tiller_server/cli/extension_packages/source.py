"""Sources of extension packages: a folder, a wheel, a git URL. Nothing of a package is run. Blocking."""

import hashlib
import subprocess
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.workspace.git.command import find_git, git_command, git_environment
from tiller_server.cli.extension_packages.project import ExtensionPackage, read_package, usable
from tiller_server.cli.extension_packages.wheel import unpack_wheel

GIT: Final = "git+"
SCHEMES: Final = frozenset({"https", "ssh", "file"})
GIT_LIMIT_S: Final = 120.0


class FetchedPackage(Value, frozen=True, kw_only=True):
    """A package that was fetched into a temporary folder."""

    package: ExtensionPackage
    source: str
    """The source with an absolute path, for updates."""
    commit: str = ""
    digest: str = ""
    """SHA-256 of the wheel, as `tiller ext pack` prints it; empty: it is no wheel."""

    @property
    def is_fixed(self) -> bool:
        """Whether the source may stand for one version alone: a wheel, or a Git URL with a tag, branch or commit."""
        return bool(self.digest) or (
            self.source.startswith(GIT) and "@" in urlsplit(self.source).path
        )


@contextmanager
def fetched(source: str, env: Mapping[str, str]) -> Generator[FetchedPackage]:
    """Fetch a package; its folder is valid until the context ends.

    Raises:
        ExtensionBroken: The source is none, cannot be fetched, or its declaration has a fault.
        OSError: There is no room for it.
    """
    with tempfile.TemporaryDirectory(prefix="tiller-ext-") as name:
        temporary = Path(name)
        if source.startswith(GIT):
            yield _from_git(source, temporary, env)
            return
        path = Path(source).expanduser().resolve()
        digest = ""
        if path.is_dir():
            package = usable(read_package(path))
        elif path.is_file() and path.suffix == ".whl":
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            package = unpack_wheel(path, temporary)
        else:
            message = f"{source!r} is no folder, no wheel (.whl) and no git URL (git+https://…)"
            raise ExtensionBroken(message)
        yield FetchedPackage(package=package, source=str(path), digest=digest)


def _from_git(source: str, folder: Path, env: Mapping[str, str]) -> FetchedPackage:
    parts = urlsplit(source.removeprefix(GIT))
    path, _, ref = parts.path.rpartition("@") if "@" in parts.path else (parts.path, "", "HEAD")
    if parts.scheme not in SCHEMES or not path or not ref or ref.startswith("-"):
        message = f"{source!r} is no git URL that can be used; write git+https://HOST/PATH@REF, git+ssh:// or git+file://"
        raise ExtensionBroken(message)
    if parts.password is not None:
        message = "the git URL holds a password, which would be written to the lock file; use a credential helper or ssh"
        raise ExtensionBroken(message)
    url = f"{parts.scheme}://{parts.netloc}{path}"
    checkout = folder / "checkout"
    _ = _git(env, "clone", "--quiet", "--no-checkout", "--", url, str(checkout))
    at = ("-C", str(checkout))
    names = (f"refs/remotes/origin/{ref}", ref)
    commit = next(filter(None, (_commit(env, checkout, name) for name in names)), "")
    if not commit:
        message = f"{url} has no branch, tag or commit {ref!r}"
        raise ExtensionBroken(message)
    _ = _git(env, *at, "checkout", "--quiet", "--detach", commit)
    package = usable(read_package(checkout))
    return FetchedPackage(package=package, source=source, commit=commit)


def _commit(env: Mapping[str, str], checkout: Path, name: str) -> str:
    try:
        return _git(
            env, "-C", str(checkout), "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"
        )
    except ExtensionBroken:
        return ""


def _git(env: Mapping[str, str], *arguments: str) -> str:
    program = find_git(env, roots=())
    if program is None:
        message = "git was not found on the PATH; install it, or install the package from a folder or a wheel"
        raise ExtensionBroken(message)
    command = git_command(
        program,
        *arguments,
        environment=git_environment(env, roots=()),
        GIT_ALLOW_PROTOCOL=":".join(sorted(SCHEMES)),
    )
    try:
        ran = subprocess.run(  # noqa: S603 - git, with arguments after `--` or checked
            command.argv,
            env=dict(command.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        message = f"git {arguments[0]} took longer than {GIT_LIMIT_S:g} s"
        raise ExtensionBroken(message) from error
    if ran.returncode:
        lines = ran.stderr.decode(errors="replace").strip().splitlines()
        message = f"git failed: {lines[-1] if lines else f'exit code {ran.returncode}'}"
        raise ExtensionBroken(message)
    return ran.stdout.decode(errors="replace").strip()
