"""A tool of your own: a function with a class of arguments, wrapped by an extension that lives in this program."""

import asyncio
import os
import sys

from pydantic import Field

from agent_core import create_session
from agent_core.extensions import ExtensionApi, ToolArguments, ToolCallContext

STOCK = {"bolts": 7, "nuts": 0}


class StockArguments(ToolArguments):
    """What `stock` takes."""

    part: str = Field(description="The name of the part")


def shop(api: ExtensionApi) -> None:
    """Register the tool."""

    @api.tool(kind="read")
    def stock(asked: StockArguments, ctx: ToolCallContext) -> str:
        """Say how many of a part are in stock."""
        ctx.call.output(f"looking for {asked.part}\n")
        return f"{STOCK.get(asked.part, 0)} {asked.part}"


async def main(question: str) -> None:
    """Ask a model that has this tool and no other."""
    async with create_session(
        workspace=".", store="memory", extensions=[shop], tools=["stock"], env=os.environ
    ) as session:
        await session.prompt(question)
        await session.wait_idle()
        print(session.info.last_answer())


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "How many bolts are there?"))
