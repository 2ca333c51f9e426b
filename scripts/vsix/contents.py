"""Checks a built vsix without an editor and without its platform."""

import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from scripts.vsix.targets import Target

LIMIT_BYTES: Final = 100_000_000
CODE_LIMIT_BYTES: Final = 6_000_000
REQUIRED: Final = (
    "package.json",
    "readme.md",
    "changelog.md",
    "LICENSE.txt",
    "THIRD-PARTY-NOTICES.txt",
    "dist/extension.js",
    "dist/panel.js",
    "dist/panel.css",
    "wheels/install.json",
)
"""Below `extension/`; vsce renames the first letters of some."""
_FORBIDDEN: Final = re.compile(r"\.map$|\.tsx?$|/(src|tests?|e2e|node_modules|scripts)/|/\.")
_PICTURE: Final = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
_PRE_RELEASE: Final = 'Id="Microsoft.VisualStudio.Code.PreRelease" Value="true"'
_FIELDS: Final = (
    "publisher",
    "version",
    "license",
    "icon",
    "galleryBanner",
    "categories",
    "keywords",
)


def problems(vsix: Path, target: Target, *, pre_release: bool) -> Iterator[str]:
    """Yield a sentence for each reason why the file must not be published."""
    if vsix.stat().st_size > LIMIT_BYTES:
        yield f"{vsix.name} has {vsix.stat().st_size} bytes, more than {LIMIT_BYTES}"
    with zipfile.ZipFile(vsix) as archive:
        names = {name.removeprefix("extension/") for name in archive.namelist()}
        missing = [name for name in REQUIRED if name not in names]
        yield from (f"{name} is missing" for name in missing)
        yield from (
            f"{name} does not belong into it"
            for name in sorted(names)
            if _FORBIDDEN.search(f"/{name}")
        )
        if not missing:
            yield from _code(archive)
            yield from _package(archive, names)
        yield from _wheels(names, target)
        manifest = archive.read("extension.vsixmanifest").decode("utf-8")
    if f'TargetPlatform="{target.name}"' not in manifest:
        yield f"the manifest does not name the platform {target.name}"
    if (_PRE_RELEASE in manifest) != pre_release:
        yield f"the manifest {'is not' if pre_release else 'is'} that of a pre-release"


def _code(archive: zipfile.ZipFile) -> Iterator[str]:
    parts = [part for part in archive.infolist() if part.filename.startswith("extension/dist/")]
    size_bytes = sum(part.file_size for part in parts)
    if size_bytes > CODE_LIMIT_BYTES:
        yield f"dist has {size_bytes} bytes, more than {CODE_LIMIT_BYTES}"
    for part in parts:
        if part.filename.endswith((".js", ".css")) and b"sourceMappingURL=" in archive.read(part):
            yield f"{part.filename} names a source map"


def _package(archive: zipfile.ZipFile, names: Iterable[str]) -> Iterator[str]:
    package = json.loads(archive.read("extension/package.json"))
    yield from (f"package.json has no {field}" for field in _FIELDS if not package.get(field))
    for field in ("scripts", "dependencies", "devDependencies"):
        if field in package:
            yield f"package.json has {field}, which are not used in an installed extension"
    pictures = _PICTURE.findall(archive.read("extension/readme.md").decode("utf-8"))
    for name in [package.get("icon", ""), package.get("main", "").removeprefix("./"), *pictures]:
        if name and "://" not in name and name not in names:
            yield f"{name} is named and not there"


def _wheels(names: Iterable[str], target: Target) -> Iterator[str]:
    wheels = sorted(
        Path(name).name for name in names if name.startswith("wheels/") and name.endswith(".whl")
    )
    if sum(wheel.startswith("tillerd-") for wheel in wheels) != 1:
        yield "there is not exactly one wheel of Tiller"
    for wheel in wheels:
        tags = wheel.removesuffix(".whl").rpartition("-")[2].split(".")
        if "any" not in tags and not set(tags) & set(target.tags):
            yield f"{wheel} does not run on {target.name}"
