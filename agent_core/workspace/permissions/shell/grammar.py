"""Reads a line with the grammar of tree-sitter-bash, as a second opinion on its words."""

from typing import TYPE_CHECKING, Final

from agent_core.workspace.permissions.shell.values import Argv
from agent_core.workspace.permissions.shell.word_splitter import one_word

if TYPE_CHECKING:
    from tree_sitter import Node

CONTAINERS: Final = frozenset(
    {"program", "list", "pipeline", "subshell", "compound_statement", "negated_command"}
)
WORD_NODES: Final = frozenset({"word", "number", "string", "raw_string", "concatenation"})
PARTS: Final = frozenset({"word", "number", "string", "raw_string", "string_content"})
JOINS: Final = frozenset({"&&", "||", "|", ";", "\n", "comment", "(", ")", "{", "}", "!"})


def commands_by_grammar(text: str) -> tuple[Argv, ...] | None:
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
