"""Writes an archive anew so that the same contents are the same bytes, whenever and wherever they were packed."""

import zipfile
from datetime import datetime
from pathlib import Path
from typing import Final

EARLIEST: Final = (1980, 1, 1, 0, 0, 0)
"""Earliest time that an archive can hold."""
FILE_MODE: Final = 0o100644 << 16
UNIX: Final = 3


def normalize(archive: Path, *, time: datetime) -> None:
    """Write an archive anew with its members by name, all with one time and mode; wheels are stored, others deflated."""
    stamp = max(EARLIEST, time.timetuple()[:6])
    made = archive.with_suffix(".new")
    with zipfile.ZipFile(archive) as old, zipfile.ZipFile(made, "w") as new:
        for name in sorted(old.namelist()):
            member = zipfile.ZipInfo(name, stamp)
            member.create_system, member.external_attr = UNIX, FILE_MODE
            compression = zipfile.ZIP_STORED if name.endswith(".whl") else zipfile.ZIP_DEFLATED
            new.writestr(member, old.read(name), compress_type=compression, compresslevel=9)
    _ = made.replace(archive)
