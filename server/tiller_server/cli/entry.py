"""The way into the `tiller` command: `tiller lsp` goes straight to the server, everything else is parsed first."""

import sys

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
    # An editor waits for its first answer: nothing is imported that this one does not need.
    if arguments[:1] == ["lsp"]:
        from tiller_server.cli.subcommands import lsp  # noqa: PLC0415 - see above

        return lsp.main(arguments[1:])
    from tiller_server.cli import command_line  # noqa: PLC0415 - see above

    return command_line.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
