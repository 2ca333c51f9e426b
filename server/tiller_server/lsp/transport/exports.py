"""Transport of messages: frames in, a bounded outbox out, over standard input and output."""

from tiller_server.lsp.transport.framing import MAX_FRAME_BYTES, FrameError, FrameReader, frame
from tiller_server.lsp.transport.outbox import Lane, Outbox, Sink
from tiller_server.lsp.transport.stdio import InputStream, stdio_streams

__all__ = [
    "MAX_FRAME_BYTES",
    "FrameError",
    "FrameReader",
    "InputStream",
    "Lane",
    "Outbox",
    "Sink",
    "frame",
    "stdio_streams",
]
