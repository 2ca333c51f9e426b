"""Wheels of extension packages: written so that the same files make the same bytes, and unpacked with checks. Blocking."""

import base64
import configparser
import hashlib
import stat
import zlib
from email.parser import Parser
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import Final
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile, ZipInfo

from agent_core.extensions.discovery import GROUP, SOURCE_BYTES
from agent_core.kernel.errors import ExtensionBroken
from tiller_server.cli.extension_packages.project import (
    MAX_FILES,
    NAME,
    TILLER,
    VERSION,
    ExtensionPackage,
    find_entry,
    module_files,
    unsupported_dependency,
    usable,
)

EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The earliest time that a zip file can hold."""
MODE: Final = 0o100644
MAX_BYTES: Final = 64 * 1024 * 1024
UNREADABLE: Final = (
    BadZipFile,
    EOFError,
    NotImplementedError,
    RuntimeError,
    ValueError,
    zlib.error,
)
"""Raised by `zipfile` for a damaged, cut, encrypted or unknown archive."""


def wheel_name(package: ExtensionPackage) -> str:
    """Return the file name of a wheel (binary distribution format)."""
    return f"{package.name.replace('-', '_')}-{package.version}-py3-none-any.whl"


def wheel_bytes(package: ExtensionPackage) -> bytes:
    """Return the wheel of a package; the same files make the same bytes."""
    info = f"{package.name.replace('-', '_')}-{package.version}.dist-info"
    module = PurePosixPath(package.entry).parts[0].removesuffix(".py")
    members = {path: (package.root / path).read_bytes() for path in sorted(package.files)}
    description = " ".join(package.description.split())
    members |= {
        f"{info}/METADATA": _lines(
            "Metadata-Version: 2.1",
            f"Name: {package.name}",
            f"Version: {package.version}",
            *([f"Summary: {description}"] if description else []),
        ),
        f"{info}/WHEEL": _lines(
            "Wheel-Version: 1.0", "Generator: tiller", "Root-Is-Purelib: true", "Tag: py3-none-any"
        ),
        f"{info}/entry_points.txt": _lines(f"[{GROUP}]", f"{package.name} = {module}:extension"),
    }
    record = [f"{path},sha256={_record_hash(data)},{len(data)}" for path, data in members.items()]
    members[f"{info}/RECORD"] = _lines(*record, f"{info}/RECORD,,")
    output = BytesIO()
    with ZipFile(output, "w", ZIP_DEFLATED) as archive:
        for path, data in members.items():
            member = ZipInfo(path, EPOCH)
            member.compress_type = ZIP_DEFLATED
            member.external_attr = MODE << 16
            archive.writestr(member, data)
    return output.getvalue()


def _lines(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _record_hash(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def unpack_wheel(wheel: Path, folder: Path) -> ExtensionPackage:
    """Unpack a wheel into an empty folder and return its package.

    Raises:
        ExtensionBroken: It is no wheel, has paths outside of the folder, links, or too much data, or its declaration
            has a fault. Nothing was written outside of the folder.
        OSError: A file cannot be read or written.
    """
    try:
        with ZipFile(wheel) as archive:
            _check_members(wheel, archive)
            archive.extractall(folder)
    except UNREADABLE as error:
        message = f"{wheel} is no usable wheel: {error}"
        raise ExtensionBroken(message) from error
    return _declared(wheel, folder)


def _check_members(wheel: Path, archive: ZipFile) -> None:
    members = archive.infolist()
    if len(members) > MAX_FILES or sum(member.file_size for member in members) > MAX_BYTES:
        message = f"{wheel} has more than {MAX_FILES} files or {MAX_BYTES} bytes"
        raise ExtensionBroken(message)
    for member in members:
        path = PurePosixPath(member.filename)
        kind = stat.S_IFMT(member.external_attr >> 16)
        is_plain = kind in {0, stat.S_IFREG, stat.S_IFDIR}
        has_bad_path = (
            path.is_absolute() or ".." in path.parts or set(member.filename) & {"\\", ":"}
        )
        if has_bad_path or not is_plain:
            message = f"{wheel} was refused: its member {member.filename!r} lies outside of the package or is a link"
            raise ExtensionBroken(message)
        if member.file_size > SOURCE_BYTES:
            message = f"{wheel} was refused: {member.filename!r} has more than {SOURCE_BYTES} bytes"
            raise ExtensionBroken(message)


def _declared(wheel: Path, folder: Path) -> ExtensionPackage:
    infos = sorted(folder.glob("*.dist-info"))
    try:
        (info,) = infos
        metadata = Parser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
        points = configparser.ConfigParser(delimiters=("=",), interpolation=None)
        points.read_string((info / "entry_points.txt").read_text(encoding="utf-8"))
        named = dict(points[GROUP])
    except (ValueError, OSError, KeyError, configparser.Error) as error:
        message = f"{wheel} has no entry point {GROUP}; pack it with `tiller ext pack`"
        raise ExtensionBroken(message) from error
    name, version = str(metadata["Name"]), str(metadata["Version"])
    wanted = metadata.get_all("Requires-Dist") or []
    message = ""
    if not NAME.fullmatch(name) or not VERSION.fullmatch(version):
        message = f"{wheel} has the name {name!r} and the version {version!r}, which cannot be used"
    elif [*named] != [name]:
        message = f"{wheel} has the entry points {sorted(named)}; it needs exactly one, {name!r}"
    for dependency in wanted:
        if not TILLER.match(str(dependency)):
            message = unsupported_dependency(str(dependency))
    if message:
        raise ExtensionBroken(message)
    entry, faults = find_entry(folder, named[name], declared=str(wheel))
    files: dict[str, str] = {}
    if not faults:
        files, faults = module_files(folder, entry)
    package = ExtensionPackage(
        name=name,
        version=version,
        description=str(metadata["Summary"] or ""),
        root=folder,
        entry=entry,
        files=files,
    )
    return usable((None if faults else package, faults))
