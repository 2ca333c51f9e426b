"""Places in the source of an extension at which errors were raised."""

from pathlib import Path
from types import CodeType


def place_in(error: BaseException, folder: str) -> tuple[str, int] | None:
    """Return the file and the line below a folder that the traceback of an error names last; None: it names none."""
    place = None
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(folder):
            place = (file, trace.tb_lineno)
        trace = trace.tb_next
    return place


def described_place(error: BaseException, folder: str) -> str:
    """Return that place for the end of a sentence; empty if there is none."""
    place = place_in(error, folder)
    return f" ({place[0]}, line {place[1]})" if place else ""


def place_beside(error: BaseException, function: object) -> str:
    """Return the described place of an error below the folder that a function was loaded from; empty if there is none."""
    code: object = getattr(function, "__code__", None)
    return (
        described_place(error, str(Path(code.co_filename).parent))
        if isinstance(code, CodeType)
        else ""
    )
