"""Knows the names in a Python file: where each stands, what binds it, which function it is in."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property

from agent_core.kernel.values import Value

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FIELD = re.compile(r"\{\{|\{(?P<code>[^{}'\"]+)")
FIELD_NAME = re.compile(r"(?<![\w!])[^\W\d]\w*")
EDIT_CONTEXT = 30
"""Lines around a change that may be needed to tell its place."""


class Name(Value, frozen=True, kw_only=True):
    """One occurrence of a name."""

    text: str
    line: int
    column: int
    """From 0."""
    dotted: bool
    """It follows a dot."""
    keyword: bool
    """It is followed by `=` but not by `==`: a keyword argument, a default, or an assignment."""


class PythonSource:
    """The text of a Python file, or of a window of it."""

    def __init__(self, text: str, *, first_line: int = 1) -> None:
        self.first_line = first_line
        self.lines = text.replace("\r\n", "\n").split("\n")

    @cached_property
    def names(self) -> tuple[Name, ...]:
        """Every name outside of strings and comments, as far as the text can be read."""
        found: list[Name] = []
        before = ""
        text = "\n".join(self.lines) + "\n"
        tokens = _tokens(text)
        for index, token in enumerate(tokens):
            if token.type == tokenize.NAME:
                after = tokens[index + 1].string if index + 1 < len(tokens) else ""
                found.append(
                    Name(
                        text=token.string,
                        line=token.start[0] + self.first_line - 1,
                        column=token.start[1],
                        dotted=before == ".",
                        keyword=after == "=",
                    )
                )
            elif token.type == tokenize.STRING:
                found.extend(names_in_string(token, self.first_line))
            if token.type not in {tokenize.NL, tokenize.COMMENT}:
                before = token.string
        return tuple(found)

    @cached_property
    def tree(self) -> ast.Module | None:
        """The syntax tree; None for a window, or a text that is no Python."""
        if self.first_line != 1:
            return None
        try:
            return ast.parse("\n".join(self.lines))
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """The whole tree, node by node."""
        return () if self.tree is None else tuple(ast.walk(self.tree))

    def occurrences(self, text: str, *, within: range | None = None) -> tuple[Name, ...]:
        """Return where a name stands."""
        return tuple(
            name
            for name in self.names
            if name.text == text and (within is None or name.line in within)
        )

    def first_from(self, line: int, text: str, *, dotted: bool) -> Name | None:
        """Find a name on a line, or further on in the statement that stands there."""
        last = self._end_of_statement(line)
        return next(
            (
                name
                for name in self.names
                if name.text == text and name.dotted == dotted and line <= name.line <= last
            ),
            None,
        )

    def function_at(self, line: int) -> FunctionNode | None:
        """Return the innermost function around a line."""
        around = [
            node
            for node in self.nodes
            if isinstance(node, FunctionNode) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def class_at(self, line: int) -> ast.ClassDef | None:
        """Return the innermost class around a line."""
        around = [
            node
            for node in self.nodes
            if isinstance(node, ast.ClassDef) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        return max(around, key=lambda node: node.lineno, default=None)

    def replaced(self, changes: Sequence[tuple[Name, str]]) -> tuple[tuple[str, str], ...]:
        """Replace names; give edits of old and new text, each of whose old text stands once in this text."""
        lines = list(self.lines)
        for name, new in sorted(changes, key=lambda one: (one[0].line, -one[0].column)):
            at = name.line - self.first_line
            line = lines[at]
            lines[at] = line[: name.column] + new + line[name.column + len(name.text) :]
        spans = [self._unique_span(name.line - self.first_line) for name, _ in changes]
        return tuple(
            ("\n".join(self.lines[start:end]), "\n".join(lines[start:end]))
            for start, end in _joined(spans)
        )

    def inserted(self, before_line: int, new: str) -> tuple[str, str]:
        """Insert a line before another; gives an edit of old and new text."""
        at = before_line - self.first_line
        start, end = self._unique_span(at)
        old = self.lines[start:end]
        added = [*self.lines[start:at], new, *self.lines[at:end]]
        return "\n".join(old), "\n".join(added)

    def _end_of_statement(self, line: int) -> int:
        ends = [
            node.end_lineno or node.lineno
            for node in self.nodes
            if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0)
        ]
        return min(ends, default=line)

    def _unique_span(self, at: int) -> tuple[int, int]:
        """Widen a line until its text stands nowhere else in the file."""
        whole = "\n".join(self.lines)
        start, end = at, at + 1
        while end - start < EDIT_CONTEXT:
            old = "\n".join(self.lines[start:end])
            if old.strip() and whole.find(old) == whole.rfind(old):
                break
            if start > 0:
                start -= 1
            elif end < len(self.lines):
                end += 1
            else:
                break
        return start, end


def names_in_string(token: tokenize.TokenInfo, first_line: int) -> Iterator[Name]:
    """Return the names inside the braces of an f-string, which is one token before Python 3.12."""
    prefix = token.string[: len(token.string) - len(token.string.lstrip("rRbBuUfF"))]
    if "f" not in prefix.lower():
        return
    for field in FIELD.finditer(token.string):
        for found in FIELD_NAME.finditer(field["code"] or ""):
            before = token.string[: field.start("code") + found.start()]
            newline = before.rfind("\n")
            yield Name(
                text=found[0],
                line=token.start[0] + first_line - 1 + before.count("\n"),
                column=len(before) - newline - 1 if newline >= 0 else token.start[1] + len(before),
                dotted=before.rstrip().endswith("."),
                keyword=False,
            )


def bound_by(node: ast.AST) -> str | None:
    """Return the name to which a node gives its meaning here, other than by importing it."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            return node.name
        case ast.arg():
            return node.arg
        case ast.Name(ctx=ast.Store()):
            return node.id
        case ast.Attribute(ctx=ast.Store()):
            return node.attr
        case _:
            return None


def binds(node: ast.AST, name: str) -> bool:
    """Return whether a node gives a name its meaning here, other than by importing it."""
    return bound_by(node) == name


def imported_by(node: ast.AST) -> set[str]:
    """Return the names under which a node imports something."""
    if not isinstance(node, ast.Import | ast.ImportFrom):
        return set()
    return {(one.asname or one.name).split(".")[0] for one in node.names}


def imports(node: ast.AST, name: str) -> bool:
    """Return whether a node imports something under a name."""
    return name in imported_by(node)


def positional(function: FunctionNode) -> list[str]:
    """Return the names of the parameters that can be passed by position."""
    return [one.arg for one in (*function.args.posonlyargs, *function.args.args)]


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    """Return the tokens up to the first place that is no Python, or the end of a window."""
    found: list[tokenize.TokenInfo] = []
    with suppress(tokenize.TokenError, SyntaxError):
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            found.append(token)  # noqa: PERF402 - extend() would lose what came before the error
    return found


def _joined(spans: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start < joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined
