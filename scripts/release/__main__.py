"""Checks the archives of a release, and writes `dist/`: the archives, checksums, notes, licences and the list of parts.

    python -m scripts.release

Wants what `make dist`, `make standalone` and `make vsix` have built; `make release-check` runs them first.
"""

import shutil
import sys
from pathlib import Path
from typing import Final

from scripts.release.checks import (
    content_problems,
    difference_problems,
    digest,
    extension_problems,
    metadata_problems,
    source_problems,
    version_problems,
)
from scripts.release.documents import (
    bundled_packages,
    release_notes,
    write_licences,
    write_parts,
)
from scripts.vsix.wheels import ROOT
from tiller_server import VERSION

DIST: Final = ROOT / "dist"
SUMS: Final = "SHA256SUMS"


def main() -> int:
    """Check everything, and return 1 when a problem was found; the files are written all the same."""
    index = sorted([*DIST.glob("*.whl"), *DIST.glob("tillerd-*.tar.gz")])
    programs = sorted([*_built("tiller-*-linux-*.tar.gz"), *_built("tiller_*.deb")])
    extensions = sorted(_built("tiller-*.vsix"))
    (tree,) = ROOT.glob("build/standalone/tiller-*")
    problems = [*version_problems(), *source_problems(), *metadata_problems(index)]
    for archive in (*index, *programs, *extensions):
        if archive.suffix != ".deb":  # holds the files of the program
            problems += content_problems(archive)
    problems += [*difference_problems([*index, *programs]), *extension_problems(extensions)]
    write_parts(tree, bundled_packages(), DIST / f"tiller-{VERSION}.cdx.json")
    write_licences(tree, extensions, DIST / f"tiller-{VERSION}-licences.txt")
    notes = release_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), VERSION)
    (DIST / f"tiller-{VERSION}-notes.md").write_text(notes, encoding="utf-8")
    for archive in (*programs, *extensions):
        shutil.copy2(archive, DIST)
    _write_sums()
    for problem in problems:
        sys.stderr.write(problem + "\n")
    sys.stdout.write(f"dist/: {len([*DIST.iterdir()])} files, {len(problems)} problems\n")
    return 1 if problems else 0


def _built(pattern: str) -> list[Path]:
    found = [path for path in (ROOT / "build").glob(pattern) if VERSION in path.name]
    if not found:
        sys.exit(f"build/{pattern} is not there: run make release-check")
    return found


def _write_sums() -> None:
    files = sorted(path for path in DIST.iterdir() if path.name != SUMS)
    lines = [f"{digest(path)}  {path.name}\n" for path in files]
    (DIST / SUMS).write_text("".join(lines), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
