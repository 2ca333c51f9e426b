"""Run a scripted provider: `python -m tests.support.provider --script FILE.json [--port 0]`."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

from tests.support.provider.script import read_script
from tests.support.provider.server import Provider


def main() -> None:
    """Serve until killed or, with `--until-eof`, until stdin ends."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.provider", description=__doc__)
    parser.add_argument("--script", type=Path, help="JSON list of turns")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--model", action="append", help="a model to list; may be repeated")
    parser.add_argument("--until-eof", action="store_true", help="end when stdin ends")
    options = parser.parse_args()
    source = json.loads(options.script.read_text(encoding="utf-8")) if options.script else []
    provider = Provider(read_script(source), models=options.model or ("m",))
    try:
        asyncio.run(_serve(provider, port=options.port, until_eof=options.until_eof))
    except KeyboardInterrupt:
        sys.exit(130)


async def _serve(provider: Provider, *, port: int, until_eof: bool) -> None:
    server = await provider.listen(port)
    bound = server.sockets[0].getsockname()[1]
    sys.stdout.write(json.dumps({"port": bound}) + "\n")
    sys.stdout.flush()
    if not until_eof:
        await server.serve_forever()
    stdin = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(stdin), sys.stdin)
    await stdin.read()
    server.close()


if __name__ == "__main__":
    main()
