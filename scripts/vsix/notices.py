"""Writes down under which licences the parts of the extension come that others have made."""

import json
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path
from typing import Final

HEAD: Final = """\
Tiller contains the work of others, as it is named here, under the licences that follow each name.

"""
_RULE: Final = "=" * 100
LICENCE_FILES: Final = ("licen", "copying", "notice")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Notice:
    """One part that somebody else has made."""

    name: str
    version: str
    licence: str
    text: str

    def written(self) -> str:
        """Give the part as it stands in the file."""
        return f"{_RULE}\n{self.name} {self.version} ({self.licence})\n{_RULE}\n\n{self.text.strip()}\n\n"


def written(bundles: Iterable[Path], wheels: Iterable[Path], *, root: Path) -> str:
    """Give the whole text.

    Args:
        bundles: What esbuild says of its outputs (`metafile`).
        wheels: The distributions of Python that come along; our own is passed over.
        root: The folder that the paths in them are relative to.

    Raises:
        ValueError: A part does not say its licence.
    """
    found = {*packages_of(bundles, root), *_distributions(wheels)}
    return HEAD + "".join(one.written() for one in sorted(found, key=lambda one: one.name.lower()))


def packages_of(bundles: Iterable[Path], root: Path) -> Iterator[Notice]:
    """Yield the packages of npm that are in bundles, by folder; the arguments and errors are those of `written`."""
    folders = {
        folder
        for bundle in bundles
        for source in json.loads(bundle.read_text(encoding="utf-8"))["inputs"]
        if (folder := _package_of(source)) is not None
    }
    for folder in sorted(folders):
        about = json.loads((root / folder / "package.json").read_text(encoding="utf-8"))
        texts = [
            path.read_text(encoding="utf-8")
            for path in sorted((root / folder).iterdir())
            if path.is_file() and path.name.lower().startswith(LICENCE_FILES)
        ]
        yield notice_of(about["name"], about["version"], about.get("license"), texts)


def _package_of(source: str) -> str | None:
    """Name the folder of the innermost package that a source belongs to; None for a source of our own."""
    before, found, inside = source.rpartition("node_modules/")
    if not found:
        return None
    parts = inside.split("/")
    return before + found + "/".join(parts[: 2 if inside.startswith("@") else 1])


def _distributions(wheels: Iterable[Path]) -> Iterator[Notice]:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            (described,) = (name for name in names if name.endswith(".dist-info/METADATA"))
            about = HeaderParser().parsestr(archive.read(described).decode("utf-8"))
            within = described.removesuffix("METADATA")
            texts = [
                archive.read(name).decode("utf-8", "replace")
                for name in sorted(names)
                if name.startswith(within)
                and Path(name).name.lower().startswith(LICENCE_FILES)
                and not name.endswith("/")
            ]
        if about["Name"] != "tillerd":
            yield notice_of(about["Name"], about["Version"], licence_of(about.items()), texts)


def licence_of(headers: Sequence[tuple[str, str]]) -> str | None:
    """Return the licence of a distribution, from the one of three places where distributions say it."""
    said = {name.lower(): value for name, value in headers if name.lower().startswith("licen")}
    classified = [
        value.rpartition("::")[2].strip()
        for name, value in headers
        if name == "Classifier" and value.startswith("License ::")
    ]
    first_line = said.get("license", "").strip().partition("\n")[0]
    return said.get("license-expression") or first_line or ", ".join(classified) or None


def notice_of(name: str, version: str, licence: str | None, texts: Sequence[str]) -> Notice:
    """Return the notice of a part.

    Raises:
        ValueError: It has no licence.
    """
    if not licence:
        message = f"{name} {version} does not say its licence: look, and decide whether it may stay"
        raise ValueError(message)
    text = "\n\n".join(texts) or f"{name} comes without the words of its licence."
    return Notice(name=name, version=version, licence=licence, text=text)
