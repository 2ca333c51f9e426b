"""The floor of a streamed answer, a process of its own: httpx, lines, and JSON for each event, nothing else.

Each line of standard input is one JSON request body; each line of standard output says what reading its answer cost.
"""

import asyncio
import json
import sys
import time

import httpx

TIMEOUT_S = 120.0


async def main(url: str) -> None:
    """Read answers until the input ends."""
    async with httpx.AsyncClient(timeout=TIMEOUT_S, trust_env=False) as client:
        while line := await asyncio.to_thread(sys.stdin.readline):
            body = json.loads(line)
            wall, cpu = time.monotonic(), time.process_time()
            events = await read(client, url, body)
            spent = {
                "events": events,
                "wall_s": time.monotonic() - wall,
                "cpu_s": time.process_time() - cpu,
            }
            sys.stdout.write(json.dumps(spent) + "\n")
            sys.stdout.flush()


async def read(client: httpx.AsyncClient, url: str, body: object) -> int:
    """Read one answer; gives the number of its events."""
    events = 0
    async with client.stream("POST", url, json=body) as response:
        async for line in response.aiter_lines():
            if line.startswith("data: ") and line != "data: [DONE]":
                json.loads(line[6:])
                events += 1
    return events


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
