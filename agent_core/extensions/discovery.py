"""Finds extensions: installed ones, the user's, a trusted project's, and those that settings or the command line name."""

import builtins
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import logging
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import lru_cache
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Final, Literal, cast

import msgspec
from msgspec import Struct

from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value
from agent_core.resources.load_result import LoadProblem
from agent_core.resources.paths import EXTENSION_LOCK

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

PREFIX: Final = "tiller_extension_"
SOURCE_BYTES: Final = 4 * 1024 * 1024
"""A larger file is no source code of an extension."""
ExpectedSourceHash = Callable[[Path], str | None]
"""Returns the SHA-256 that a file must have to be run; None: any, empty: the file is not run."""

log = logging.getLogger("tiller.extensions")


def import_apart(entry: Path, *, name: str, expected: ExpectedSourceHash) -> ModuleType:
    """Import a file or a package under a name of its own; blocking. Its code runs in the calling thread.

    Its own modules are reached by relative imports. Each file is read once, so that the checked content is the
    executed one. No bytecode is read or written.

    Args:
        entry: A source file; `__init__.py` for a package.
        name: An unused module name; `forget` removes the module again.
        expected: Returns the required SHA-256 of a file; None: any content.

    Raises:
        ExtensionBroken: The content of a file is not the expected one, or is not source code.
        Exception: Any exception of its code.
    """
    is_package = entry.name == "__init__.py"
    finder = _Finder(name, entry, expected=expected)
    sys.meta_path.insert(0, finder)
    try:
        return importlib.import_module(name)
    except BaseException:
        forget(name)
        raise
    finally:
        # A package may import its parts later, inside its functions.
        if not is_package:
            _remove(finder)


def forget(name: str) -> None:
    """Remove the modules and the finder of an extension; code that still runs keeps its references."""
    for one in [
        module for module in sys.modules if module == name or module.startswith(f"{name}.")
    ]:
        _ = sys.modules.pop(one, None)
    for finder in [one for one in sys.meta_path if isinstance(one, _Finder) and one.name == name]:
        _remove(finder)


def read_pinned(path: Path, expected: ExpectedSourceHash) -> bytes:
    """Return the bytes of a file that is what it must be; blocking.

    Raises:
        ExtensionBroken: It is something else, or too large to be source code.
        OSError: It cannot be read.
    """
    wanted = expected(path)
    with path.open("rb") as file:
        raw = file.read(SOURCE_BYTES + 1)
    if len(raw) > SOURCE_BYTES:
        message = f"{path} has more than {SOURCE_BYTES} bytes, which is no source code"
        raise ExtensionBroken(message)
    if wanted is not None and hashlib.sha256(raw).hexdigest() != wanted:
        message = f"{path} is not what was trusted; it is asked about before the next run"
        raise ExtensionBroken(message)
    return raw


def _remove(finder: "_Finder") -> None:
    # By identity: another session may import at the same moment, in another thread.
    sys.meta_path[:] = [one for one in sys.meta_path if one is not finder]


class _Finder(importlib.abc.MetaPathFinder):
    """Finds one extension and the modules below it."""

    def __init__(self, name: str, entry: Path, *, expected: ExpectedSourceHash) -> None:
        self.name = name
        self._entry = entry
        self._expected = expected

    def find_spec(  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        """Find it, or leave it to others."""
        _ = path, target
        if fullname != self.name and not fullname.startswith(f"{self.name}."):
            return None
        file = self._file(fullname)
        if file is None:
            return None
        is_package = file.name == "__init__.py"
        spec = importlib.machinery.ModuleSpec(
            fullname,
            _Loader(file, expected=self._expected),
            origin=str(file),
            is_package=is_package,
        )
        # For tracebacks; it names no place from which Python's own finders would import.
        spec.has_location = True
        return spec

    def _file(self, fullname: str) -> Path | None:
        if fullname == self.name:
            return self._entry
        if self._entry.name != "__init__.py":
            return None
        below = self._entry.parent.joinpath(*fullname.removeprefix(f"{self.name}.").split("."))
        for file in (below / "__init__.py", below.with_name(f"{below.name}.py")):
            if file.is_file():
                return file
        return None


class _Loader(importlib.abc.InspectLoader):
    """Runs one file as a module."""

    def __init__(self, file: Path, *, expected: ExpectedSourceHash) -> None:
        self._file = file
        self._expected = expected

    def get_source(self, fullname: str) -> None:  # pyright: ignore[reportImplicitOverride] - as above
        """Return None: the file may have changed since it was run."""

    def get_code(self, fullname: str) -> CodeType:  # pyright: ignore[reportImplicitOverride] - as above  # noqa: ARG002 - it has one file
        """Compile the file, which must have the content that the user trusted."""
        return self.source_to_code(read_pinned(self._file, self._expected), str(self._file))

    def exec_module(self, module: ModuleType) -> None:  # pyright: ignore[reportImplicitOverride] - as above
        """Run it; its `print` writes to the log."""
        module.__dict__["__builtins__"] = {**builtins.__dict__, "print": _printed(module.__name__)}
        super().exec_module(module)


def _printed(module: str) -> Callable[..., None]:
    """Return the `print` of an extension: standard output may be a wire, so it goes to the log."""

    def log_it(*values: object, sep: str | None = " ", **others: object) -> None:
        file = others.get("file")
        if file is None or file is sys.stdout:
            log.info("%s: %s", module, (" " if sep is None else sep).join(map(str, values)))
        else:
            builtins.print(*values, sep=sep, **others)  # pyright: ignore[reportCallIssue, reportArgumentType]  # noqa: T201 - to where the extension says

    return log_it


GROUP: Final = "tiller.extensions"
"""The entry points of installed packages."""
ENTRY: Final = "__init__.py"
ExtensionOrigin = Literal["installed", "user", "project", "settings", "command line", "given"]
"""Where an extension comes from, in the order in which they are loaded; `given`: by the program itself."""

FILE: Final = "pyproject.toml"


class _Manifest(Value, frozen=True, kw_only=True):
    """Extensions, skills and prompts of a folder; paths are absolute."""

    name: str | None = None
    extensions: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()
    prompts: tuple[Path, ...] = ()


def _read_manifest(raw: bytes, folder: Path) -> _Manifest | None:
    """Read the text of a folder's pyproject.toml; None when it says nothing to Tiller.

    Raises:
        ExtensionBroken: It is no TOML, or names what is none of its own.
    """
    import tomllib  # noqa: PLC0415 - most extensions have no manifest

    where = folder / FILE
    try:
        document = tomllib.loads(raw.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        message = f"{where} cannot be read ({error}); nothing of it is used"
        raise ExtensionBroken(message) from error
    tool = document.get("tool")
    given: object = tool.get("tiller") if isinstance(tool, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType] - TOML
    if not isinstance(given, dict):
        return None
    table = cast("dict[str, object]", given)
    name = table.get("name")
    if name is not None and not (isinstance(name, str) and name.strip()):
        message = f"{where}: tool.tiller.name is {name!r}; give it a name, or leave it out"
        raise ExtensionBroken(message)
    return _Manifest(
        name=name,
        extensions=_paths(table, "extensions", folder),
        skills=_paths(table, "skills", folder),
        prompts=_paths(table, "prompts", folder),
    )


def _paths(table: dict[str, object], key: str, folder: Path) -> tuple[Path, ...]:
    given = table.get(key, ())
    items = cast("list[object]", given) if isinstance(given, list | tuple) else [given]
    return tuple(_path(one, key, folder) for one in items)


def _path(given: object, key: str, folder: Path) -> Path:
    where = f"{folder / FILE}: tool.tiller.{key}"
    if not isinstance(given, str) or not given:
        message = f"{where} has {given!r}; it is a list of paths below {folder}"
        raise ExtensionBroken(message)
    path = Path(given)
    # What lies elsewhere was not looked at when the folder was trusted.
    if path.is_absolute() or ".." in path.parts:
        message = f"{where} names {given!r}, which does not lie below {folder}"
        raise ExtensionBroken(message)
    return folder / path


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
    locked: Path | None = None
    """The configuration folder, whose lock file lists the packages of `tiller ext install`; None: there are none."""


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
    looking.locked()
    _ = looking.folder(places.user, "user")
    _ = looking.folder(places.project, "project")
    for entry in places.settings:
        if not entry.startswith(("+", "-", "!")):
            looking.named(_absolute(entry, places.home), "settings")
    for path in places.named:
        looking.named(path, "command line")
    return looking.result


@lru_cache(maxsize=1)
def _installed_points(_folders: Sequence[tuple[str, int]]) -> "Sequence[EntryPoint]":
    """Return the entry points of packages; read again when a folder has another package than before."""
    from importlib.metadata import entry_points  # noqa: PLC0415 - it brings much along

    found = entry_points(group=GROUP)
    return tuple(sorted(found, key=lambda point: (point.name, point.value)))


def _changed_ns(folder: str) -> int:
    try:
        return Path(folder or ".").stat().st_mtime_ns
    except OSError:
        return 0


class _Looking:
    """One look around."""

    def __init__(self, places: ExtensionSearchPaths) -> None:
        self.result = DiscoveryResult()
        self._places = places
        self._seen: set[Path] = set()

    def installed(self) -> None:
        """Add the entry points of installed packages."""
        folders = tuple((folder, _changed_ns(folder)) for folder in sys.path)
        for one in _installed_points(folders):
            if not self._is_left_out(Path(one.name)):
                entry = InstalledEntryPoint(value=one.value, load=one.load)
                self._add(DiscoveredExtension(name=one.name, origin="installed", entry=entry))

    def locked(self) -> None:
        """Add the packages of the lock file whose files are those that were installed."""
        config = self._places.locked
        if config is None or not (config / EXTENSION_LOCK).exists():
            return
        from agent_core.extensions.package_lock import (  # noqa: PLC0415 - most users have no packages
            difference_of,
            package_folder,
            read_lock,
        )

        try:
            packages = read_lock(config)
        except ExtensionBroken as error:
            self.result.problems.append(LoadProblem(message=str(error), level="error"))
            return
        for name, package in packages.items():
            folder = package_folder(config, name, package)
            entry = folder / package.entry
            if self._is_left_out(entry):
                continue
            difference = difference_of(package, folder)
            if difference:
                message = (
                    f"extension package {name!r} is not used: {difference}. "
                    f"Run `tiller ext update {name}` to install it again"
                )
                self._problem(message, folder)
                continue
            expected = _pinned(package.files, folder)
            self._add(
                DiscoveredExtension(name=name, origin="installed", entry=entry, expected=expected)
            )

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

    def _manifest(self, folder: Path, origin: ExtensionOrigin) -> _Manifest | None:
        path = folder / FILE
        try:
            return _read_manifest(read_pinned(path, self._expected(origin)), folder)
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
        return is_left_out(path, self._places.settings, home=self._places.home)

    def _problem(self, message: str, path: Path) -> None:
        self.result.problems.append(LoadProblem(message=message, path=path, level="error"))


def is_left_out(path: Path, entries: Sequence[str], *, home: Path) -> bool:
    """Return whether the setting `extensions` leaves an extension out; the last entry that names it counts.

    Args:
        path: Its entry file; for an installed distribution its name.
        entries: The setting.
        home: Folder of `~`.
    """
    left_out = False
    for entry in entries:
        sign, rest = entry[:1], entry[1:]
        if sign == "!" and _fits(path, rest):
            left_out = True
        elif sign in {"-", "+"} and _is_at(path, _absolute(rest, home), rest):
            left_out = sign == "-"
    return left_out


def _pinned(files: Mapping[str, str], folder: Path) -> ExpectedSourceHash:
    def expected(path: Path) -> str:
        return files.get(path.relative_to(folder).as_posix(), "")

    return expected


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
