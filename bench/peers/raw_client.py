"""The floor of an agent, a process of its own: sends a prompt over a plain socket and passes the answer on, nothing else.

Each line of standard input is one prompt; each event of the answer is parsed, and each delta is a line of output.
"""

import json
import socket
import sys

READ_BYTES = 256 * 1024
LAST_CHUNK = b"0\r\n\r\n"


def main(port: int) -> None:
    """Serve prompts until the input ends."""
    sys.stdout.write('{"id":"ready"}\n')
    sys.stdout.flush()
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for line in sys.stdin:
            asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": line}]}
            body = json.dumps(asked).encode()
            head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: lab\r\ncontent-length: %d\r\n\r\n"
            connection.sendall(head % len(body) + body)
            _pass_on(connection)
            sys.stdout.write('{"type":"over"}\n')
            sys.stdout.flush()


def _pass_on(connection: socket.socket) -> None:
    rest = tail = b""
    while not tail.endswith(LAST_CHUNK):
        piece = connection.recv(READ_BYTES)
        if not piece:
            raise ConnectionError("the provider closed the connection in the middle")
        tail = (tail + piece)[-len(LAST_CHUNK) :]
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data: {"):
                choices = json.loads(line[6:])["choices"]
                text = choices[0]["delta"].get("content") if choices else None
                if text:
                    sys.stdout.write(f"d {text}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
