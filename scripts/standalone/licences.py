"""Writes the licences of all parts of a standalone program: distributions, the interpreter, libraries of the machine."""

import subprocess
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Final

from scripts.vsix.notices import HEAD, LICENCE_FILES, Notice, licence_of, notice_of

NOTICES: Final = "THIRD-PARTY-NOTICES.txt"


def write_notices(tree: Path, *, prefix: Path, libraries: Iterable[Path]) -> None:
    """Write the notices of a program, and its own licence beside them.

    Args:
        tree: The folder of the program.
        prefix: The interpreter in it.
        libraries: Where the libraries of the interpreter were copied from.

    Raises:
        ValueError: A distribution has no licence, or no package of this machine brought a library.
    """
    (stdlib,) = (prefix / "lib").glob("python3.*")
    notices = {*_distributions(stdlib / "site-packages"), *map(library_notice, libraries)}
    licence = (stdlib / "LICENSE.txt").read_text(encoding="utf-8")
    interpreter = notice_of("CPython", stdlib.name.removeprefix("python"), "Python-2.0", [licence])
    parts = sorted({*notices, interpreter}, key=lambda part: (part.name.lower(), part.version))
    text = HEAD + "".join(part.written() for part in parts)
    (tree / NOTICES).write_text(text, encoding="utf-8")


def _distributions(packages: Path) -> Iterator[Notice]:
    for part in distributions(path=[str(packages)]):
        if part.name != "tillerd":
            about = part.metadata
            headers = [
                (name, text) for name in sorted({*about}) for text in about.get_all(name, [])
            ]
            licence = licence_of(headers)
            yield notice_of(part.name, part.version, licence, [*_texts(part)])


def _texts(part: Distribution) -> Iterator[str]:
    for file in sorted(part.files or (), key=str):
        if ".dist-info/" in str(file) and file.name.lower().startswith(LICENCE_FILES):
            yield Path(str(file.locate())).read_text(encoding="utf-8", errors="replace")


def library_notice(library: Path) -> Notice:
    """Return the notice of a library that a package of Debian brought, or that was built with the interpreter."""
    package, version = package_of(library)
    copyright_file = Path("/usr/share/doc") / package / "copyright"
    text = copyright_file.read_text(encoding="utf-8", errors="replace")
    return notice_of(package, version, "see the text", [text])


def package_of(library: Path) -> tuple[str, str]:
    """Return the name and the version of the Debian package that brought a file.

    Raises:
        ValueError: None did.
    """
    # `/lib` is a link to `/usr/lib`, and packages list either.
    for path in (library.resolve(), Path("/", *library.resolve().parts[2:])):
        argv = ["dpkg-query", "--search", str(path)]
        listed = subprocess.run(argv, capture_output=True, text=True, check=False)  # noqa: S603 - a program of the build
        if listed.returncode == 0:
            package = listed.stdout.partition(": ")[0].partition(",")[0]
            break
    else:
        message = f"{library} is of no package of this machine: its licence is not known, so it cannot be shipped"
        raise ValueError(message)
    argv = ["dpkg-query", "--show", "--showformat=${source:Version}", package]
    shown = subprocess.run(argv, capture_output=True, text=True, check=True)  # noqa: S603 - as above
    return package.partition(":")[0], shown.stdout
