"""Documents of a release: its parts as CycloneDX, their licences, and notes from the changelog."""

import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from scripts.standalone.licences import NOTICES
from scripts.vsix.notices import packages_of
from scripts.vsix.wheels import ROOT

WEB_LICENCES: Final = ROOT / "server/tiller_server/web/page/licenses.txt"
PAGE_RULE: Final = "\n" + "=" * 80 + "\n"
PAGE_HEADING: Final = re.compile(r"(\S+) (\S+) \((.*)\)")


def write_parts(tree: Path, packages: Iterable[tuple[str, str, str]], file: Path) -> None:
    """Write the list of parts of a release (SBOM, CycloneDX 1.6), validated by its schema.

    The distributions of the standalone program are read by `cyclonedx-py`; its interpreter, the libraries of the build
    machine and the packages of npm are added.

    Args:
        tree: The folder of the standalone program.
        packages: Name, version and licence of each package of npm that the page or the extension holds.
        file: The list.

    Raises:
        ValueError: The list does not fit the schema.
    """
    argv = [
        *(sys.executable, "-m", "cyclonedx_py", "environment", str(tree / "python/bin/python3")),
        *("--pyproject", str(ROOT / "pyproject.toml"), "--mc-type", "application"),
        *("--sv", "1.6", "--of", "JSON", "--output-reproducible", "--output-file", str(file)),
    ]
    _ = subprocess.run(argv, check=True, capture_output=True)  # noqa: S603 - a program of the build
    parts = json.loads(file.read_text(encoding="utf-8"))
    about = json.loads((tree / "python/standalone.json").read_text(encoding="utf-8"))
    parts["components"] += [
        _component("CPython", about["python"], f"pkg:generic/cpython@{about['python']}"),
        *(
            _component(name, version, f"pkg:deb/debian/{name}@{version}")
            for name, version in sorted(about["packages"].items())
        ),
        *(
            {
                **_component(name, version, npm_purl(name, version)),
                "licenses": [{"license": {"name": licence}}],
            }
            for name, version, licence in sorted({*packages})
        ),
    ]
    text = json.dumps(parts, indent=2) + "\n"
    fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if fault is not None:
        message = f"the list of parts does not fit its schema: {str(fault).partition(chr(10))[0]}"
        raise ValueError(message)
    file.write_text(text, encoding="utf-8")


def npm_purl(name: str, version: str) -> str:
    """Return the package URL of a package of npm; the @ of its scope is escaped."""
    return f"pkg:npm/{quote(name, safe='/')}@{version}"


def page_packages(licences: str) -> list[tuple[str, str, str]]:
    """Return name, version and licence of each package in the licences of the page of `tiller web`."""
    first_lines = (part.partition("\n")[0] for part in licences.split(PAGE_RULE))
    headings = (found for line in first_lines if (found := PAGE_HEADING.fullmatch(line)))
    return [(found[1], found[2], found[3]) for found in headings]


def bundled_packages() -> list[tuple[str, str, str]]:
    """Return name, version and licence of each package of npm in the page and in the extension."""
    bundles = sorted((ROOT / "vscode-client").glob("dist/*.meta.json"))
    extension = packages_of(bundles, ROOT / "vscode-client")
    return [
        *page_packages(WEB_LICENCES.read_text(encoding="utf-8")),
        *((one.name, one.version, one.licence) for one in extension),
    ]


def _component(name: str, version: str, purl: str) -> dict[str, Any]:
    return {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}


def write_licences(tree: Path, extensions: Iterable[Path], file: Path) -> None:
    """Write the licences of all that is shipped: the program, the page of `tiller web`, and each extension."""
    texts = {
        "Standalone program and Debian package": (tree / NOTICES).read_text(encoding="utf-8"),
        "Page of tiller web": WEB_LICENCES.read_text(encoding="utf-8"),
    }
    for extension in extensions:
        with zipfile.ZipFile(extension) as archive:
            texts[extension.name] = archive.read(f"extension/{NOTICES}").decode("utf-8")
    parts = (f"{title}\n{'#' * len(title)}\n\n{text.strip()}\n\n" for title, text in texts.items())
    file.write_text("\n".join(parts), encoding="utf-8")


def release_notes(changelog: str, version: str) -> str:
    """Return the part of the changelog about a version.

    Raises:
        ValueError: It has none.
    """
    _, *sections = re.split(r"^(?=## )", changelog, flags=re.MULTILINE)
    for section in sections:
        heading, _, text = section.partition("\n")
        if heading.split()[1] == version:
            return f"# Tiller {version}\n\n{text.strip()}\n"
    message = f"CHANGELOG.md has no section for {version}: write `## {version}`"
    raise ValueError(message)
