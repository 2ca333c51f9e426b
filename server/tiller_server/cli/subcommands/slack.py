"""`tiller slack`: your sessions in Slack, over Socket Mode. Runs go on when it ends."""

import argparse
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from agent_core.channels.messaging.port import MessagingChannel
from agent_core.kernel import Clock
from tiller_server.channels.slack.account import BASE_URL, SlackAccount
from tiller_server.cli.channels import command
from tiller_server.cli.channels.chat_app import ChatApp
from tiller_server.cli.channels.platform import ChatPlatform, ChatSecret
from tiller_server.cli.environment import Environment

NAME: Final = "slack"
APP_SECRET: Final = "app token"  # noqa: S105 - its name
BOT_SECRET: Final = "bot token"  # noqa: S105 - its name
EXAMPLE: Final = "examples: tiller slack · tiller slack status · tiller slack doctor"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the description and the arguments of the command."""
    parser.description = __doc__
    parser.epilog = EXAMPLE
    command.add_arguments(parser, NAME)


def main(options: argparse.Namespace, environment: Environment) -> int:
    """Run the command; gives the exit code."""
    return command.run_command(
        NAME, lambda app: _platform(app, environment.variables), options, environment
    )


def _platform(app: ChatApp, env: Mapping[str, str]) -> ChatPlatform:
    # For tests and for gateways of companies.
    base_url = env.get("SLACK_API_URL")

    def account(secrets: Mapping[str, str]) -> SlackAccount:
        return SlackAccount(
            app_token=secrets[APP_SECRET],
            bot_token=secrets[BOT_SECRET],
            base_url=base_url or BASE_URL,
        )

    @asynccontextmanager
    async def opened(secrets: Mapping[str, str], clock: Clock) -> AsyncGenerator[MessagingChannel]:
        from tiller_server.channels.slack.channel import open_slack  # noqa: PLC0415 - loads the extra

        async with open_slack(account(secrets), clock) as channel:
            yield channel

    async def probe(secrets: Mapping[str, str], _: Clock) -> str:
        from tiller_server.channels.slack.channel import probe_socket  # noqa: PLC0415 - as above

        return await probe_socket(account(secrets))

    return ChatPlatform(
        name=NAME,
        title="Slack",
        needed=("aiohttp", "slack_sdk"),
        app=app,
        secrets=(
            ChatSecret(name=APP_SECRET, variable=app.variables[0]),
            ChatSecret(name=BOT_SECRET, variable=app.variables[1]),
        ),
        open_channel=opened,
        probe=probe,
    )
