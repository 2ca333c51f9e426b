"""Finds extensions: installed ones, the user's, a trusted project's, and those that settings or the command line name."""

from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from agent_core.extensions.loader.manifest import FILE, Manifest, read_manifest
from agent_core.extensions.loader.modules import ExpectedSourceHash, read_pinned
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.resources.load_result import LoadProblem

GROUP: Final = "tiller.extensions"
"""The entry points of installed packages."""
ENTRY: Final = "__init__.py"
ExtensionOrigin = Literal["installed", "user", "project", "settings", "command line", "given"]
"""Where an extension comes from, in the order in which they are loaded; `given`: by the program itself."""


class InstalledEntryPoint(Value, frozen=True, kw_only=True):
    """Entry point of an installed package."""

    value: str
    """Where it is, as `package.module:name`."""
    load: Callable[[], object]
    """Imports it; blocking."""


class DiscoveredExtension(Value, frozen=True, kw_only=True):
    """An extension that can be loaded."""

    name: str
    origin: ExtensionOrigin
    entry: Path | InstalledEntryPoint | Callable[..., object]
    """A source file, something of an installed package, or the function itself."""
    expected: ExpectedSourceHash = lambda _: None
    """Returns the required SHA-256 of each of its files; None: any content."""

    @property
    def path(self) -> Path | None:
        """The file that it begins with."""
        return self.entry if isinstance(self.entry, Path) else None

    @property
    def where(self) -> str:
        """Where it comes from, for people."""
        match self.entry:
            case Path() as path:
                return str(path)
            case InstalledEntryPoint(value=value):
                return value
            case _:
                return self.origin


class ExtensionSearchPaths(Value, frozen=True, kw_only=True):
    """Where to look. None of it need be there."""

    user: Path | None = None
    """The folder `extensions` of the user's configuration."""
    project: Path | None = None
    """The folder `.tiller/extensions` of a workspace that is trusted; None: there is none."""
    project_expected: ExpectedSourceHash = lambda _: None
    """Returns the SHA-256 that the user trusts for each file of the project; None: any content."""
    settings: Sequence[str] = ()
    """Entries of the user's settings: paths, `-path`, `+path`, `!glob`."""
    named: Sequence[Path] = ()
    """Those of the command line, absolute."""
    home: Path = Path("/")
    with_installed: bool = True
    """Whether installed packages bring extensions."""


class DiscoveryResult(Struct, kw_only=True):
    """Discovered extensions, in the order in which they are loaded, with their skills, prompts and problems."""

    found: list[DiscoveredExtension] = msgspec.field(default_factory=list[DiscoveredExtension])
    skills: list[Path] = msgspec.field(default_factory=list[Path])
    """Folders and files of skills that come with extensions."""
    prompts: list[Path] = msgspec.field(default_factory=list[Path])
    problems: list[LoadProblem] = msgspec.field(default_factory=list[LoadProblem])


def discover(places: ExtensionSearchPaths) -> DiscoveryResult:
    """Search all places; blocking. An unusable entry is reported as a problem and does not prevent the others."""
    looking = _Looking(places)
    if places.with_installed:
        looking.installed()
    _ = looking.folder(places.user, "user")
    _ = looking.folder(places.project, "project")
    for entry in places.settings:
        if not entry.startswith(("+", "-", "!")):
            looking.named(_absolute(entry, places.home), "settings")
    for path in places.named:
        looking.named(path, "command line")
    return looking.result


class _Looking:
    """One look around."""

    def __init__(self, places: ExtensionSearchPaths) -> None:
        self.result = DiscoveryResult()
        self._places = places
        self._seen: set[Path] = set()

    def installed(self) -> None:
        """Add the entry points of installed packages."""
        from importlib.metadata import entry_points  # noqa: PLC0415 - it brings much along

        for one in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
            if not self._is_left_out(Path(one.name)):
                entry = InstalledEntryPoint(value=one.value, load=one.load)
                self._add(DiscoveredExtension(name=one.name, origin="installed", entry=entry))

    def folder(self, folder: Path | None, origin: ExtensionOrigin) -> bool:
        """Add the extensions in a folder, one level deep; return whether it holds any, usable or not."""
        if folder is None:
            return False
        try:
            inside = sorted(folder.iterdir(), key=lambda path: path.name)
        except FileNotFoundError:
            return False
        except OSError as error:
            self._problem(
                f"cannot be listed ({error.strerror}); no extension in it is used", folder
            )
            return True
        taken = False
        for path in inside:
            if path.name.startswith((".", "_")):
                continue
            if path.is_dir():
                taken |= self._of_folder(path, origin)
            elif path.suffix == ".py":
                self._file(path, origin)
                taken = True
        return taken

    def named(self, path: Path, origin: ExtensionOrigin) -> None:
        """Add an explicitly named path: a file, an extension's folder, or a folder of extensions."""
        if path.is_dir():
            if not self._of_folder(path, origin) and not self.folder(path, origin):
                self._problem("is named as an extension and holds none", path)
        elif path.is_file():
            self._file(path, origin)
        else:
            self._problem("is named as an extension and is not there", path)

    def _of_folder(self, folder: Path, origin: ExtensionOrigin) -> bool:
        """Add a folder that is itself an extension or lists some in its manifest; return False when it is neither."""
        manifest = self._manifest(folder, origin)
        if manifest is None:
            entry = folder / ENTRY
            if not entry.is_file():
                return False
            self._file(entry, origin, name=folder.name)
            return True
        self.result.skills.extend(manifest.skills)
        self.result.prompts.extend(manifest.prompts)
        entries = manifest.extensions or tuple(self._own_entry(folder))
        for number, path in enumerate(entries):
            entry = path / ENTRY if path.is_dir() else path
            if not entry.is_file():
                self._problem(f"is named by {folder / FILE} and is not there", path)
                continue
            name = manifest.name or (folder.name if len(entries) == 1 else path.stem)
            self._file(entry, origin, name=name if number == 0 else f"{name}-{path.stem}")
        return True

    def _own_entry(self, folder: Path) -> Iterator[Path]:
        if (folder / ENTRY).is_file():
            yield folder

    def _manifest(self, folder: Path, origin: ExtensionOrigin) -> Manifest | None:
        path = folder / FILE
        try:
            return read_manifest(read_pinned(path, self._expected(origin)), folder)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ExtensionBroken, OSError) as error:
            self.result.problems.append(LoadProblem(message=str(error), level="error"))
            return None

    def _file(self, path: Path, origin: ExtensionOrigin, *, name: str | None = None) -> None:
        if self._is_left_out(path):
            return
        real = path.resolve()
        if real in self._seen:
            return
        self._seen.add(real)
        made = name or (path.parent.name if path.name == ENTRY else path.stem)
        self._add(
            DiscoveredExtension(
                name=made, origin=origin, entry=path, expected=self._expected(origin)
            )
        )

    def _add(self, found: DiscoveredExtension) -> None:
        taken = {one.name for one in self.result.found}
        name, number = found.name, 2
        while name in taken:
            name, number = f"{found.name}-{number}", number + 1
        self.result.found.append(
            DiscoveredExtension(
                name=name, origin=found.origin, entry=found.entry, expected=found.expected
            )
        )

    def _expected(self, origin: ExtensionOrigin) -> ExpectedSourceHash:
        return self._places.project_expected if origin == "project" else lambda _: None

    def _is_left_out(self, path: Path) -> bool:
        """Return whether the user's settings leave it out; the last entry that speaks of it counts."""
        left_out = False
        for entry in self._places.settings:
            sign, rest = entry[:1], entry[1:]
            if sign == "!" and _fits(path, rest):
                left_out = True
            elif sign in {"-", "+"} and _is_at(path, _absolute(rest, self._places.home), rest):
                left_out = sign == "-"
        return left_out

    def _problem(self, message: str, path: Path) -> None:
        self.result.problems.append(LoadProblem(message=message, path=path, level="error"))


def _absolute(entry: str, home: Path) -> Path:
    if entry == "~" or entry.startswith("~/"):
        return home / entry[2:]
    return Path(entry)


def _fits(path: Path, glob: str) -> bool:
    return fnmatch(str(path), glob) or fnmatch(path.name, glob) or fnmatch(path.parent.name, glob)


def _is_at(path: Path, named: Path, written: str) -> bool:
    """Return whether a path, or the folder that it stands for, is what was named."""
    of_package = path.name == ENTRY and named == path.parent
    return path == named or of_package or written.rpartition("/")[2] == str(path)
