"""What processes print loses held values wherever it is cut, and keeps every other byte."""

from pathlib import Path

import pytest

from agent_core.kernel.redaction.redactor import Redactor
from agent_core.session.tools.processes import RedactedProcesses
from agent_core.workspace import KillReport, Process, ProcessEnd

SECRET = "held-Value-0123456789"


class _Printed:
    """A process that prints what a test says."""

    pid = 1

    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def read(self) -> bytes:
        return self._chunks.pop(0) if self._chunks else b""

    async def wait(self) -> ProcessEnd:
        return ProcessEnd(exit_code=0)

    async def end(self, *, grace_s: float) -> KillReport:
        return KillReport(pids=(), survivors=())


class _Printing:
    def __init__(self, chunks: list[bytes]) -> None:
        self._chunks = chunks

    async def start(self, argv: tuple[str, ...], **_more: object) -> Process:
        return _Printed(self._chunks)

    async def before_start(self) -> str | None:
        return None


async def _read(data: bytes, size: int, redactor: Redactor) -> bytes:
    chunks = [data[place : place + size] for place in range(0, len(data), size)]
    processes = RedactedProcesses(_Printing(chunks), redactor)
    process = await processes.start(("x",), cwd=Path("/"), env={})
    out = b""
    while piece := await process.read():
        out += piece
    return out


@pytest.mark.parametrize("size", [1, 2, 7, 1_000])
async def test_a_held_value_is_cut_out_and_other_bytes_stay(size: int) -> None:
    before, after = b"\xff\x00\xc3\xa4 held-Va ", b" \xe2\x82 held-Value-0123"
    read = await _read(before + SECRET.encode() + after, size, Redactor([SECRET]))
    assert read == before + b"[redacted:secret]" + after


async def test_without_a_value_nothing_stands_between() -> None:
    assert await _read(b"as it is", 3, Redactor()) == b"as it is"
