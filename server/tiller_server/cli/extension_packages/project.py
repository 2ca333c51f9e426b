"""The declared content of an extension package, read without running its code. Blocking."""

import ast
import hashlib
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from agent_core.extensions.discovery import FILE, GROUP, SOURCE_BYTES
from agent_core.kernel import JsonObject
from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.json import as_object
from agent_core.kernel.values import Value

NAME: Final = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
VERSION: Final = re.compile(r"[0-9][A-Za-z0-9.]{0,63}")
TILLER: Final = re.compile(r"tillerd\b", re.IGNORECASE)
MAX_FILES: Final = 2_000
PARTS: Final[Mapping[str, str]] = {
    "tool": "tools",
    "command": "commands",
    "on": "hooks",
    "shortcut": "keys",
    "flag": "flags",
    "provider": "providers",
    "message_renderer": "message renderers",
    "widget": "views",
}
"""Methods of the API, and the plural of the parts that they register."""


class PackageFault(Value, frozen=True, kw_only=True):
    """A fault of a package, as one sentence."""

    message: str
    file: str = ""
    line: int = 0
    """From 1; 0: the fault is of no line."""
    level: Literal["error", "warning"] = "error"

    def __str__(self) -> str:  # pyright: ignore[reportImplicitOverride] - typing.override needs 3.12
        """Format the fault with its location, as compilers do."""
        where = f"{self.file}:{self.line}: " if self.line else f"{self.file}: " if self.file else ""
        return f"{where}{self.level}: {self.message}"


class ExtensionPackage(Value, frozen=True, kw_only=True):
    """A package whose declaration has no fault."""

    name: str
    version: str
    description: str = ""
    root: Path
    entry: str
    """The source file with the function `extension`, relative to the root."""
    files: Mapping[str, str]
    """SHA-256 of the module's files by their relative path."""


def read_package(folder: Path) -> tuple[ExtensionPackage | None, Sequence[PackageFault]]:
    """Return the package of a folder, or None with the faults of its declaration."""
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8-sig")
        project = tomllib.loads(text).get("project")
    except (FileNotFoundError, NotADirectoryError):
        missing = f"there is no {FILE}; a package is a folder that has one; `tiller ext new` makes a package"
        return None, [PackageFault(message=missing, file=str(folder))]
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        line = re.search(r"line (\d+)", str(error))
        return None, [
            PackageFault(
                message=f"it cannot be read: {error}",
                file=str(path),
                line=int(line[1]) if line else 0,
            )
        ]
    table = as_object(project)
    points = as_object(as_object(table.get("entry-points")).get(GROUP))
    faults = [
        PackageFault(message=message, file=str(path), line=_line_of(text, key))
        for message, key in _declaration_faults(table, points)
    ]
    if faults:
        return None, faults
    entry, faults = find_entry(
        folder, str(next(iter(points.values()))), declared=str(path), line=_line_of(text, GROUP)
    )
    if faults:
        return None, faults
    files, faults = module_files(folder, entry)
    if faults:
        return None, faults
    package = ExtensionPackage(
        name=str(table["name"]),
        version=str(table["version"]),
        description=str(table.get("description", "")),
        root=folder,
        entry=entry,
        files=files,
    )
    return package, ()


def usable(read: tuple[ExtensionPackage | None, Sequence[PackageFault]]) -> ExtensionPackage:
    """Return a package that was read.

    Raises:
        ExtensionBroken: It has faults; the message is the first one.
    """
    package, faults = read
    if package is None:
        raise ExtensionBroken(str(faults[0]))
    return package


def _declaration_faults(table: JsonObject, points: JsonObject) -> Iterator[tuple[str, str]]:
    name, version = table.get("name"), table.get("version")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        yield f"project.name is {name!r}; use 1 to 64 of a-z, 0-9 and -", "name"
    if not isinstance(version, str) or not VERSION.fullmatch(version):
        yield f"project.version is {version!r}; use a version such as 0.1.0", "version"
    if list(points) != [name]:
        message = (
            f'[project.entry-points."{GROUP}"] has the names {sorted(points)}; '
            f"it needs exactly one, {name!r}"
        )
        yield message, GROUP
    dependencies = table.get("dependencies", [])
    for dependency in dependencies if isinstance(dependencies, list) else [dependencies]:
        if not TILLER.match(str(dependency)):
            yield unsupported_dependency(str(dependency)), "dependencies"


def unsupported_dependency(dependency: str) -> str:
    """Return the message about a dependency."""
    return (
        f"the dependency {dependency!r} cannot be installed: `tiller ext` installs no dependencies. "
        "Use the standard library, or install the package with pip beside tillerd"
    )


def find_entry(
    root: Path, value: str, *, declared: str, line: int = 0
) -> tuple[str, Sequence[PackageFault]]:
    """Return the source file of an entry point, relative to the root, with its faults."""
    module, _, function = value.partition(":")
    if not module.isidentifier() or function not in {"", "extension"}:
        message = f"the entry point is {value!r}; name a top-level module: `module:extension`"
        return "", [PackageFault(message=message, file=declared, line=line)]
    for entry in (f"{module}/__init__.py", f"{module}.py"):
        if (root / entry).is_file():
            return entry, ()
    message = f"the entry point names the module {module!r}, and there is no {module}.py and no {module}/__init__.py"
    return "", [PackageFault(message=message, file=declared, line=line)]


def module_files(root: Path, entry: str) -> tuple[dict[str, str], Sequence[PackageFault]]:
    """Return the SHA-256 of the files of the module that an entry begins, without hidden files and bytecode.

    Symbolic links are faults: their target was not looked at when the package was trusted.
    """
    paths = [root / entry] if "/" not in entry else [*_below(root / Path(entry).parent)]
    files: dict[str, str] = {}
    for path in paths:
        name = path.relative_to(root).as_posix()
        message = ""
        if path.is_symlink() or not path.is_file():
            message = "it is a symbolic link or a special file; a package holds plain files only"
        elif path.stat().st_size > SOURCE_BYTES:
            message = f"it has more than {SOURCE_BYTES} bytes; keep large data elsewhere"
        if message:
            return {}, [PackageFault(message=message, file=str(path))]
        files[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    if len(files) > MAX_FILES:
        return {}, [PackageFault(message=f"it has more than {MAX_FILES} files", file=str(root))]
    return files, ()


def _below(folder: Path) -> Iterator[Path]:
    if folder.is_symlink():
        yield folder
        return
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name == "__pycache__":
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _below(path)
        else:
            yield path


def _line_of(text: str, key: str) -> int:
    lines = text.splitlines()
    return next((number for number, line in enumerate(lines, 1) if key in line), 1)


def declared_parts(package: ExtensionPackage) -> Mapping[str, Sequence[str]]:
    """Return the names that the source registers, by kind; nothing of it is run.

    Names that the source computes are not found.
    """
    parts: dict[str, list[str]] = {}
    for path in package.files:
        if not path.endswith(".py"):
            continue
        try:
            tree = ast.parse((package.root / path).read_bytes())
        except (SyntaxError, ValueError):
            continue
        for kind, name in _registrations(tree):
            parts.setdefault(kind, []).append(name)
    return {kind: sorted(set(names)) for kind, names in parts.items()}


def _registrations(tree: ast.AST) -> Iterator[tuple[str, str]]:
    decorated: set[ast.expr] = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            call = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(call, ast.Attribute) and call.attr in PARTS:
                decorated.add(decorator)
                arguments = decorator if isinstance(decorator, ast.Call) else None
                default = node.name.replace("_", "-") if call.attr == "command" else node.name
                yield PARTS[call.attr], _first_argument(arguments) or default
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(attr=method)) if method in PARTS:
                name = _first_argument(node)
                if node not in decorated and name:
                    yield PARTS[method], name
            case _:
                pass


def _first_argument(call: ast.Call | None) -> str:
    if call is None:
        return ""
    named = [keyword.value for keyword in call.keywords if keyword.arg == "name"]
    match [*named, *call.args]:
        case [ast.Constant(value=str(text)), *_]:
            return text
        case [ast.Name(id=text), *_] | [ast.Attribute(attr=text), *_]:
            return text
        case _:
            return ""
