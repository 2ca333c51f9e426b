"""The least that a program needs: a session, a question, the answer."""

import asyncio
import os
import sys

from agent_core import create_session


async def main(question: str) -> None:
    """Ask and print."""
    async with create_session(workspace=".", env=os.environ) as session:
        await session.prompt(question)
        await session.wait_idle()
        print(session.info.last_answer())


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "What is in this folder?"))
