"""Two sessions at the same time in one process: each has its own conversation, and they know nothing of one another."""

import asyncio
import sys

from agent_core import create_session


async def ask(question: str) -> str:
    """Ask in a session of its own."""
    async with create_session(workspace=".", store="memory", tools="readonly") as session:
        await session.prompt(question)
        ended = await session.wait_idle()
        if ended is None or ended.status != "completed":
            why = ended.error.message if ended and ended.error else "it was not answered"
            return f"(no answer: {why})"
        return ended.text


async def main(questions: list[str]) -> None:
    """Ask all at once, and print the answers in the order of the questions."""
    for answer in await asyncio.gather(*map(ask, questions)):
        print(answer)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:] or ["What is in this folder?", "Is there a README?"]))
