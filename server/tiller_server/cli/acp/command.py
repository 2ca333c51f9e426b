"""`tiller acp`: the process that a client of the Agent Client Protocol starts. Serves it over standard input and output."""

from tiller_server.cli import lsp_command

USAGE = """usage: tiller acp [--in-process] [--experimental-v2] [--log-file FILE] [--log-level LEVEL]

Serve a client of the Agent Client Protocol (ACP) over standard input and output, through the daemon of this user; it is
started when there is none.

  --login            sign in to a provider in this terminal, and leave
  --in-process       run the agent in this process, without the daemon
  --experimental-v2  speak version 2 of the protocol, a draft, with clients that offer it
  --log-file FILE    write the log there instead of to standard error; the daemon has its own
  --log-level LEVEL  debug, info, warning (the default) or error

example, in Zed's settings:  "agent_servers": {"Tiller": {"command": "tiller", "args": ["acp"]}}
"""
EXPERIMENTAL = "--experimental-v2"


def main(arguments: list[str]) -> int:
    """Serve until the client leaves, or sign in; gives the exit code."""
    if "--login" in arguments:
        from tiller_server.cli import command_line  # noqa: PLC0415 - a client waits for the rest

        return command_line.main(["auth", "login"])
    rest = [one for one in arguments if one != EXPERIMENTAL]
    newest = 1 if len(rest) == len(arguments) else 2
    return lsp_command.main(rest, protocol="acp", usage=USAGE, newest=newest)
