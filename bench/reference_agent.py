"""How long a long session takes to open, against another agent that keeps the same files."""

import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.kit import Benchmark, Peer, Plan, Row, alternate
from bench.lab import ROOT, Workshop
from tests.support.programs.reference_agent import (
    PACKAGE,
    VERSION,
    is_reference_agent_installed,
    reference_environment,
)

ENTRIES = 10_000
ANSWER = "An answer of the usual length, with a little code: `x = f(y)`. " * 4
AT = "2026-01-01T00:00:00.000Z"
AT_MS = 1_767_225_600_000
PEER = f"pi-coding-agent {VERSION}"

_OURS = """
import sys, time
sys.path.insert(0, {root!r})
from pathlib import Path
import anyio
from agent_core.kernel import SessionId, SystemClock
from agent_core.storage.adapters.jsonl import JsonlStore
from agent_core.transcript import Transcript, build_context

async def main():
    store = JsonlStore(Path({folder!r}), SystemClock())
    began = time.perf_counter()
    opened = await store.open(SessionId("s1"))
    context = build_context(Transcript(opened.entries).path())
    took = time.perf_counter() - began
    print(took * 1000, len(context.messages))
    await opened.log.close()

anyio.run(main)
"""
_THEIRS = """
import {{ SessionManager }} from {module!r};
const began = performance.now();
const context = SessionManager.open({path!r}).buildSessionContext();
console.log(performance.now() - began, context.messages.length);
"""


@dataclass(frozen=True, slots=True)
class Took:
    """One opening in a fresh process."""

    opening_ms: float
    messages: int


async def measure(plan: Plan, shop: Workshop) -> list[Row]:
    """Open the same file with both in turn, each time in a fresh process; ours alone without the other."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="tl-") as name:
        folder = Path(name)
        for kind, compacted in (("no compaction", False), ("a compaction half way", True)):
            path = folder / "sessions" / kind / f"x_s1_{int(compacted)}.jsonl"
            session_file(path, compacted=compacted)
            size = f"{path.stat().st_size / 1e6:.1f} MB"
            what = f"open {ENTRIES:,} entries, {kind}, {size}"
            rows.append(await _row(plan, shop, path, what=what))
    return rows


def session_file(path: Path, *, compacted: bool, entries: int = ENTRIES) -> None:
    """Write a session of questions, calls, results and answers."""
    head = {"type": "session", "version": 3, "id": "s1", "timestamp": AT, "cwd": "/w"}
    lines = [json.dumps(head)]
    parent = None
    for number in range(entries):
        entry_id = f"{number:08x}"
        body = _body(number)
        if compacted and number == entries // 2:
            kept = f"{number - 8:08x}"
            body = {
                "type": "compaction",
                "summary": ANSWER,
                "firstKeptEntryId": kept,
                "tokensBefore": 100_000,
            }
        lines.append(json.dumps({**body, "id": entry_id, "parentId": parent, "timestamp": AT}))
        parent = entry_id
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _body(number: int) -> dict[str, Any]:
    call = {"type": "toolCall", "id": f"c{number}", "name": "read", "arguments": {"path": "a.py"}}
    text = [{"type": "text", "text": ANSWER}]
    answer = {
        "role": "assistant",
        "api": "openai-completions",
        "provider": "lab",
        "model": "m",
        "usage": {"input": 1000, "output": 50, "totalTokens": 1050},
        "timestamp": AT_MS,
    }
    messages = (
        {"role": "user", "content": text, "timestamp": AT_MS},
        {**answer, "content": [call], "stopReason": "toolUse"},
        {
            "role": "toolResult",
            "toolCallId": f"c{number - 1}",
            "toolName": "read",
            "content": text,
            "isError": False,
            "timestamp": AT_MS,
        },
        {**answer, "content": text, "stopReason": "stop"},
    )
    return {"type": "message", "message": messages[number % len(messages)]}


async def _row(plan: Plan, shop: Workshop, path: Path, *, what: str) -> Row:
    folder = path.parent
    ours = _OURS.format(root=str(ROOT), folder=str(folder))
    module = str(PACKAGE / "dist/index.js")
    theirs = _THEIRS.format(module=module, path=str(path))
    env = {**shop.environ, **reference_environment(folder.parent / "home")}

    async def with_ours() -> Took:
        return await _timed([sys.executable, "-P", "-c", ours], shop.environ)

    async def with_theirs() -> Took:
        return await _timed(["node", "--input-type=module", "-e", theirs], env)

    if not is_reference_agent_installed():
        alone = [await with_ours() for _ in range(plan.starts)]
        note = "the other agent is not installed: see `make e2e-setup`"
        return Row(what=what, unit="ms", ours=_ms(alone), note=note)
    first, second = await alternate(plan.starts, with_ours, with_theirs)
    counts = (first[0].messages, second[0].messages)
    return Row(
        what=what,
        unit="ms",
        ours=_ms(first),
        peer=Peer(name=PEER, samples=_ms(second)),
        note=f"messages in the context: {counts[0]} and {counts[1]}",
    )


async def _timed(command: Sequence[str], env: Any) -> Took:
    process = await asyncio.create_subprocess_exec(
        *command, env=env, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    took, messages = out.split()
    return Took(float(took), int(messages))


def _ms(all_took: Sequence[Took]) -> tuple[float, ...]:
    return tuple(one.opening_ms for one in all_took)


BENCHMARK = Benchmark(name="reference-agent", title="Opening, beside another agent", run=measure)
