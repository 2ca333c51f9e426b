"""Imports the code of one extension apart from everything else: no path of ours leads to it, nothing is left behind."""

import builtins
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import logging
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from agent_core.kernel.errors import ExtensionBroken

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
