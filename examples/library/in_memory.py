"""A session that leaves no file: for questions whose answers are all that counts."""

import asyncio
import sys

from agent_core import create_session


async def main(question: str) -> None:
    """Ask, with tools that only look, and say what it cost."""
    async with create_session(workspace=".", store="memory", tools="readonly") as session:
        receipt = await session.prompt(question)
        ended = await session.wait(receipt.run) if receipt.run else None
        if ended is None or ended.status != "completed":
            why = ended.error.message if ended and ended.error else "it was not answered"
            sys.exit(f"no answer: {why}")
        print(ended.text)
        print(f"{ended.usage.tokens.total} tokens", file=sys.stderr)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is in this folder?"))
