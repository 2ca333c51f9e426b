"""A tool of your own: a function with a class of arguments, wrapped by an extension that lives in this program."""

import asyncio
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
        workspace=".", store="memory", extensions=[shop], tools=["stock"]
    ) as session:
        await session.prompt(question)
        ended = await session.wait_idle()
    if ended is None or ended.status != "completed":
        why = ended.error.message if ended and ended.error else "it was not answered"
        sys.exit(f"no answer: {why}")
    print(ended.text)


if __name__ == "__main__":
    asyncio.run(main(" ".join(sys.argv[1:]) or "How many bolts are there?"))
