"""Finds the reference data that lies beside the checkout, and skips with a reason where it is absent."""

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SHARED_ROOT = ROOT.parent / "shared"
SHARED_ABSENT = "reference data is absent: no folder 'shared' beside the checkout"


def shared_path(*parts: str) -> Path:
    """Return a path in the reference data; skips the test, or the module at import, without it.

    Raises:
        FileNotFoundError: The folder is there and this part of it is not, so the name is wrong.
    """
    if not SHARED_ROOT.is_dir():
        pytest.skip(SHARED_ABSENT, allow_module_level=True)
    path = SHARED_ROOT.joinpath(*parts)
    if not path.exists():
        message = f"reference data has no {'/'.join(parts)!r}: look for its name in {SHARED_ROOT}"
        raise FileNotFoundError(message)
    return path
