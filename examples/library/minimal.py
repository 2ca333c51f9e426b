"""The least that a program needs: a session, a question, the answer."""

import asyncio
import sys

from agent_core import create_session


async def main(question: str) -> None:
    """Ask and print."""
    # It may only read: say trusted=True for a folder that it may change.
    async with create_session(workspace=".") as session:
        await session.prompt(question)
        ended = await session.wait_idle()
    if ended is None or ended.status != "completed":
        why = ended.error.message if ended and ended.error else "it was not answered"
        sys.exit(f"no answer: {why}")
    print(ended.text)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is in this folder?"))
