"""The way into the `tiller` command: `tiller lsp` and `tiller acp` go straight to the server, `tiller run` to the daemon if one serves; everything else but `--version` is parsed first."""

import os
import sys

from tiller_server import VERSION

ON_WINDOWS = "tiller: it is made for Linux and macOS and was not run on Windows; use WSL, where it is as on Linux (docs/install.md)\n"
INTERRUPTED = 130
"""Nothing else is imported here: a signal that comes early finds nothing half done."""


def main(argv: list[str] | None = None) -> int:
    """Run a command and give its exit code."""
    arguments = sys.argv[1:] if argv is None else argv
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        return INTERRUPTED  # before there was anything to settle


def _run(arguments: list[str]) -> int:
    if arguments == ["--version"]:
        print(f"tiller {VERSION}")  # noqa: T201 - the answer; installers and editors ask for it at each start
        return 0
    if sys.platform == "win32":
        _ = sys.stderr.write(ON_WINDOWS)
    # An editor waits for its first answer: nothing is imported that this one does not need.
    if arguments[:1] == ["lsp"]:
        from tiller_server.cli import lsp_command  # noqa: PLC0415 - see above

        return lsp_command.main(arguments[1:])
    if arguments[:1] == ["acp"]:
        from tiller_server.cli.acp import command  # noqa: PLC0415 - see above

        return command.main(arguments[1:])
    if arguments[:1] != ["run"]:
        from tiller_server.cli import command_line  # noqa: PLC0415 - see above

        arguments = command_line.expanded(arguments, is_terminal=os.isatty(0) and os.isatty(1))
        if arguments[:1] != ["run"]:
            return command_line.main(arguments)
    return _run_prompt(arguments)


def _run_prompt(arguments: list[str]) -> int:
    from tiller_server.cli.run import daemon_client  # noqa: PLC0415 - see above

    env = dict(os.environ)  # noqa: TID251 - the one place of the client
    code = daemon_client.run_in_daemon(arguments, env)
    if code is not None:
        return code
    from tiller_server.cli import command_line  # noqa: PLC0415 - see above

    code = command_line.main(arguments)
    daemon_client.start_for_next_time(arguments, env)
    return code


if __name__ == "__main__":
    sys.exit(main())
