"""Standard input and output as pipes, sockets, files and a terminal, and kept from everything else."""

import json
import os
import pty
import select
import socket
import subprocess
import sys
import tty
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from tiller_server.lsp.transport.framing import FrameReader, frame

ARGV = [sys.executable, "-m", "tests.support.lsp.echo_server"]
ROOT = Path(__file__).resolve().parents[3]


def message(**members: Any) -> bytes:
    return frame(json.dumps({"jsonrpc": "2.0", **members}).encode())


CONVERSATION = b"".join(
    [
        message(id=1, method="initialize", params={"processId": os.getpid(), "capabilities": {}}),
        message(id=2, method="agent/print"),
        message(id=3, method="agent/echo", params={"x": "y" * 300_000}),
        message(id=4, method="shutdown"),
        message(method="exit"),
    ]
)


def check(output: bytes) -> None:
    """The stream holds the four answers and not one stray byte."""
    reader = FrameReader()
    reader.feed(output)
    answers: dict[Any, Any] = {}
    while (body := reader.take()) is not None:
        answer = json.loads(body)
        answers[answer["id"]] = answer.get("result", "error")
    assert reader.is_between_frames
    assert set(answers) == {1, 2, 3, 4}
    assert answers[2] == {"printed": True}
    assert answers[3] == {"x": "y" * 300_000}


def test_pipes() -> None:
    done = subprocess.run(
        ARGV, input=CONVERSATION, capture_output=True, cwd=ROOT, timeout=15, check=True
    )
    check(done.stdout)
    assert done.stderr == b"a stray line\n"


def test_a_file_as_input_and_as_output(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.write_bytes(CONVERSATION)
    with source.open("rb") as stdin, target.open("wb") as stdout:
        subprocess.run(ARGV, stdin=stdin, stdout=stdout, cwd=ROOT, timeout=15, check=True)
    check(target.read_bytes())


def test_an_answer_larger_than_the_pipe_is_written_before_the_process_ends() -> None:
    child = subprocess.Popen(ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert child.stdin is not None
    assert child.stdout is not None
    with child:
        child.stdin.write(CONVERSATION)
        child.stdin.close()
        start = child.stdout.read(1000)  # then a pause, in which the server comes to its end
        select.select([], [], [], 0.3)
        check(start + child.stdout.read())
        assert child.wait(15) == 0


def test_no_input_at_all() -> None:
    done = subprocess.run(
        ARGV, stdin=subprocess.DEVNULL, capture_output=True, cwd=ROOT, timeout=15, check=True
    )
    assert (done.stdout, done.stderr) == (b"", b"")


@pytest.mark.parametrize("both_on_one", [True, False])
def test_sockets(*, both_on_one: bool) -> None:
    ours, theirs = socket.socketpair()
    our_output, their_output = (ours, theirs) if both_on_one else socket.socketpair()
    child = subprocess.Popen(ARGV, stdin=theirs.fileno(), stdout=their_output.fileno(), cwd=ROOT)
    theirs.close()
    their_output.close()
    with ours, our_output, child:
        ours.settimeout(15)
        our_output.settimeout(15)
        ours.sendall(CONVERSATION)
        check(_read_all(our_output.recv))
        assert child.wait(15) == 0


def test_a_terminal() -> None:
    leader, follower = pty.openpty()
    tty.setraw(follower)
    child = subprocess.Popen(ARGV, stdin=follower, stdout=subprocess.PIPE, cwd=ROOT)
    os.close(follower)
    with child, os.fdopen(leader, "wb", buffering=0) as terminal:
        _write_all(terminal, CONVERSATION)
        assert child.stdout is not None
        check(child.stdout.read())
        assert child.wait(15) == 0


def test_the_exit_code_says_whether_the_client_left_in_order() -> None:
    done = subprocess.run(ARGV, input=message(method="exit"), cwd=ROOT, timeout=15, check=False)
    assert done.returncode == 1


def test_the_server_ends_when_its_output_is_closed() -> None:
    child = subprocess.Popen(
        ARGV, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stderr is not None
    with child:
        child.stdin.write(message(id=1, method="initialize", params={"capabilities": {}}))
        child.stdin.flush()
        assert child.stdout.read(10) == b"Content-Le"
        child.stdout.close()
        child.stdin.write(message(id=2, method="agent/echo"))
        child.stdin.flush()
        assert child.wait(15) == 0
        assert child.stderr.read() == b""


def test_a_child_process_can_neither_read_the_protocol_nor_write_into_it() -> None:
    script = (
        "import asyncio, subprocess, sys\n"
        "from tiller_server.lsp.transport.exports import stdio_streams\n"
        "async def main():\n"
        "    reader, sink = await stdio_streams()\n"
        "    code = 'import sys; print(len(sys.stdin.read()))'\n"
        "    subprocess.run([sys.executable, '-c', code], check=True)\n"
        "    sink.write(await reader.read(100))\n"
        "    await sink.drain()\n"
        "    sink.close()\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        input=b"for the server",
        capture_output=True,
        cwd=ROOT,
        timeout=15,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"for the server", b"0\n")


def _read_all(receive: Callable[[int], bytes]) -> bytes:
    output = bytearray()
    while data := receive(65536):
        output += data
    return bytes(output)


def _write_all(target: BinaryIO, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[target.write(view) :]
