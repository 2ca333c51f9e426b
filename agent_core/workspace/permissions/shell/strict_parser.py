"""Reads a command line strictly: every doubt makes it unclear."""

from typing import TYPE_CHECKING, Final

from agent_core.workspace.permissions.shell.values import Argv, PlainCommandLine, UnclearCommandLine
from agent_core.workspace.permissions.shell.word_splitter import odd_character, one_word, split_line

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST_BYTES: Final = 8192
MOST_COMMANDS: Final = 100
"""The grammar takes 100 ms for two thousand that are joined by `|`, and nobody would read them before they say yes."""

CONTAINERS: Final = frozenset(
    {"program", "list", "pipeline", "subshell", "compound_statement", "negated_command"}
)
WORD_NODES: Final = frozenset({"word", "number", "string", "raw_string", "concatenation"})
PARTS: Final = frozenset({"word", "number", "string", "raw_string", "string_content"})
JOINS: Final = frozenset({"&&", "||", "|", ";", "\n", "comment", "(", ")", "{", "}", "!"})


def read_command(text: str) -> PlainCommandLine | UnclearCommandLine:
    """Return which commands a line of bash runs, with their exact words, or why that is not certain.

    Two readings that know nothing of one another must agree. Never raises.
    """
    if problem := _unreadable(text):
        return UnclearCommandLine(reason=problem)
    commands = split_line(text)
    if isinstance(commands, UnclearCommandLine):
        return commands
    if problem := _doubt(text, commands):
        return UnclearCommandLine(reason=problem)
    return PlainCommandLine(commands=commands)


def _unreadable(text: str) -> str | None:
    if len(text.encode("utf-8", "surrogatepass")) > LONGEST_BYTES:
        return f"it is longer than {LONGEST_BYTES} bytes"
    odd = odd_character(text)
    if odd is None:
        return None
    return f"it has the character U+{ord(odd):04X}, which is not seen or looks like another one"


def _doubt(text: str, commands: tuple[Argv, ...]) -> str | None:
    """Ask the grammar for its opinion on what was read."""
    if len(commands) > MOST_COMMANDS:
        return f"it runs more than {MOST_COMMANDS} commands"
    try:
        by_grammar = _commands_by_grammar(text)  # decision 0017
    except (ImportError, OSError, RuntimeError, TypeError, ValueError):
        return "the grammar of bash (tree-sitter-bash) is missing or does not fit this installation"
    return (
        None if by_grammar == commands else "it is more than plain commands to the grammar of bash"
    )


def _commands_by_grammar(text: str) -> tuple[Argv, ...] | None:
    """Return the commands of a line as the grammar sees them; None when it sees anything else in it.

    Args:
        text: No longer than a few KiB: on some texts the parser takes time that grows with their square.

    Raises:
        ImportError: The grammar is not installed.
        ValueError: It is one that this parser does not know.
    """
    data = text.encode("utf-8")
    commands: list[Argv] = []
    # Lists nest to the left as deep as they are long, so this does not recurse.
    open_nodes = [_root(data)]
    while open_nodes:
        node = open_nodes.pop()
        if node.type in CONTAINERS and not node.is_missing:
            open_nodes.extend(reversed(node.children))
        elif node.type == "command":
            argv = _argv(node, data)
            if argv is None:
                return None
            commands.append(argv)
        elif node.type not in JOINS or node.is_missing:
            return None
    return tuple(commands)


def _root(data: bytes) -> "Node":
    # 10 to 35 ms, and many sessions never read a command.
    import tree_sitter_bash  # noqa: PLC0415 - see above
    from tree_sitter import Language, Parser  # noqa: PLC0415 - see above

    return Parser(Language(tree_sitter_bash.language())).parse(data).root_node


def _argv(command: "Node", data: bytes) -> Argv | None:
    tokens: list[str] = []
    for child in command.children:
        node = child.children[0] if child.type == "command_name" and child.children else child
        word = _word(node, data)
        if word is None:
            return None
        tokens.append(word)
    return tuple(tokens)


def _word(node: "Node", data: bytes) -> str | None:
    if node.type not in WORD_NODES or node.is_missing or not _has_only_parts(node):
        return None
    return one_word(data[node.start_byte : node.end_byte].decode("utf-8"))


def _has_only_parts(word: "Node") -> bool:
    """Return whether a word is made of nothing but text and quotes, without a gap."""
    at = word.start_byte
    for part in word.children if word.type == "concatenation" else ():
        if part.type not in PARTS or part.start_byte != at or not _has_only_parts(part):
            return False
        at = part.end_byte
    return all(not part.is_named or part.type in PARTS for part in word.children)
