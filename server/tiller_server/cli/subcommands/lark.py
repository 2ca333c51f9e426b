"""`tiller lark`: your sessions in Feishu or Lark, over its long connection. Runs go on when it ends."""

import argparse
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from agent_core.channels.messaging.port import MessagingChannel
from agent_core.kernel import Clock
from agent_core.providers.http.client import httpx_without_command
from tiller_server.channels.lark.api.account import LarkAccount
from tiller_server.cli.channels import command
from tiller_server.cli.channels.chat_app import ChatApp
from tiller_server.cli.channels.platform import ChatPlatform, ChatSecret
from tiller_server.cli.environment import Environment

NAME: Final = "lark"
SECRET: Final = "app secret"  # noqa: S105 - its name
EXAMPLE: Final = "examples: tiller lark · tiller lark status · tiller lark doctor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    command.add_arguments(parser, NAME)


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    return command.run_command(NAME, _platform, options, environment)


def _platform(app: ChatApp) -> ChatPlatform:
    def account(secrets: Mapping[str, str]) -> LarkAccount:
        return LarkAccount(app_id=app.app_id, app_secret=secrets[SECRET], domain=app.domain)

    @asynccontextmanager
    async def opened(secrets: Mapping[str, str], clock: Clock) -> AsyncGenerator[MessagingChannel]:
        with httpx_without_command():
            from tiller_server.channels.lark.channel import open_lark  # noqa: PLC0415 - loads the extra

        async with open_lark(account(secrets), clock) as channel:
            yield channel

    async def probe(secrets: Mapping[str, str], clock: Clock) -> str:
        with httpx_without_command():
            from tiller_server.channels.lark.channel import probe_connection  # noqa: PLC0415 - as above

        return await probe_connection(account(secrets), clock)

    return ChatPlatform(
        name=NAME,
        title="Lark",
        needed=("websockets",),
        app=app,
        secrets=(ChatSecret(name=SECRET, variable=app.variables[0]),),
        open_channel=opened,
        probe=probe,
    )
