"""A program of its own: lets the tool bash take a flood of output, and prints what that took as JSON."""

import asyncio
import json
import os
import sys
import tempfile
import time
from pathlib import Path

import psutil

from agent_core.workspace.files.paths import real_path
from bench.tool_bench import ToolBench

LOOK_S = 0.01


async def main(command: str) -> None:
    """Run a command and print `mib`, the memory at its peak over the idle one, and `s`."""
    with tempfile.TemporaryDirectory(prefix="tl-") as folder:
        root = real_path(Path(folder)) / "ws"
        root.mkdir()
        bench = ToolBench(root, {"PATH": os.defpath, "HOME": str(root)})
        await bench.run("bash", command="seq 1 3000")  # everything is imported now
        process = psutil.Process()
        idle = peak = process.memory_info().rss
        began = time.monotonic()
        running = asyncio.ensure_future(bench.run("bash", command=command))  # noqa: TID251 - awaited below
        while not running.done():
            peak = max(peak, process.memory_info().rss)
            await asyncio.sleep(LOOK_S)
        await running
        took_s = time.monotonic() - began
    sys.stdout.write(json.dumps({"mib": (peak - idle) / 2**20, "s": took_s}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
