"""Manifest of the extensions, skills and prompts of a folder: `[tool.tiller]` of its pyproject.toml."""

from pathlib import Path
from typing import Final, cast

from agent_core.kernel.errors import ExtensionBroken
from agent_core.kernel.values import Value

FILE: Final = "pyproject.toml"


class Manifest(Value, frozen=True, kw_only=True):
    """Extensions, skills and prompts of a folder; paths are absolute."""

    name: str | None = None
    extensions: tuple[Path, ...] = ()
    skills: tuple[Path, ...] = ()
    prompts: tuple[Path, ...] = ()


def read_manifest(raw: bytes, folder: Path) -> Manifest | None:
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
    return Manifest(
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
