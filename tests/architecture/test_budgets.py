"""Nothing grows past the size at which it can be read in one go."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from tests.support.harness.sources import CODE, PRODUCT, Source, sources

FILE_LINES = 600
FEATURE_LINES = 120
CLASS_LINES = 300
FUNCTION_LINES = 60
OWN_ATTRIBUTES = 12
FOLDER_FILES = 15

# "path", "path::Class" or "path::Class.method" → why it may be larger, in a sentence.
WAIVERS: Mapping[str, str] = {
    "agent_core/extensions/api.py::ExtensionApi.tool": "a decorator with 13 options, each with a line of description",
    "agent_core/assembly/factory.py::create_session": "the library's entry: 19 options, each with a line of description",
}

FEATURES = "server/tiller_server/lsp/features/"

LARGE_FOLDERS: Mapping[str, str] = {
    "server/tiller_server/cli/subcommands": "one module per command of the program",
    "server/tiller_server/lsp/features": "one module per method of the protocol",
    "server/tiller_server/lsp/wire": "one module per family of messages, beside their schema",
}


def test_files_classes_and_functions_keep_to_their_budget() -> None:
    over = {place: size for place, size in _over_budget() if place not in WAIVERS}
    assert over == {}, "split it, or add a waiver with its reason"


def test_a_folder_holds_one_topic() -> None:
    assert sorted(_large_folders(sources(*PRODUCT, "tests"))) == sorted(LARGE_FOLDERS), (
        "make folders by topic"
    )


def test_a_large_folder_is_noticed() -> None:
    names = [f"test_{n}" for n in range(FOLDER_FILES)]
    assert _large_folders(_empty("tests/area", [*names, "conftest", "__init__"])) == {}
    assert _large_folders(_empty("tests/area", [*names, "helper"])) == {"tests/area": 16}
    assert _large_folders(_empty("agent_core/area", [*names, "__init__"])) == {
        "agent_core/area": 16
    }


def test_every_waiver_is_still_needed_and_says_why() -> None:
    over = dict(_over_budget())
    assert [place for place in WAIVERS if place not in over] == []
    assert [place for place, reason in WAIVERS.items() if len(reason.split()) < 4] == []


def test_a_budget_that_is_passed_is_noticed() -> None:
    body = "\n".join(f"        self.a{n} = {n}" for n in range(OWN_ATTRIBUTES + 1))
    wide = f"class Wide:\n    def __init__(self):\n{body}\n"
    long = "def long():\n" + "    pass\n" * FUNCTION_LINES
    method = "class C:\n    async def m(self):\n" + "        pass\n" * FUNCTION_LINES
    big = "class Big:\n" + "    x = 1\n" * CLASS_LINES
    assert _places(wide) == ["p.py::Wide attributes"]
    assert _places(long) == ["p.py::long"]
    assert _places(method) == ["p.py::C.m"]
    assert _places(big) == ["p.py::Big"]
    assert _places("x = 1\n" * (FILE_LINES + 1)) == ["p.py"]
    assert _places("x = 1\n" * (FEATURE_LINES + 1), path=FEATURES + "p.py") == [FEATURES + "p.py"]
    fields = "".join(f"    a{n}: int\n" for n in range(OWN_ATTRIBUTES + 1))
    assert _places(f"@dataclass\nclass D:\n{fields}") == ["p.py::D attributes"]
    assert _places(f"@dataclass(frozen=True)\nclass Value:\n{fields}") == []


def _empty(folder: str, names: Iterable[str]) -> list[Source]:
    return [Source(path=f"{folder}/{name}.py", text="", tree=ast.parse("")) for name in names]


def _large_folders(code: Iterable[Source]) -> Mapping[str, int]:
    """Return the folders over the budget; fixtures and marks of a folder of tests do not count."""
    sizes = Counter(
        folder
        for folder, _, name in (source.path.rpartition("/") for source in code)
        if not (folder.startswith("tests") and name in {"conftest.py", "__init__.py"})
    )
    return {folder: size for folder, size in sizes.items() if size > FOLDER_FILES}


def _places(text: str, *, path: str = "p.py") -> list[str]:
    source = Source(path=path, text=text, tree=ast.parse(text))
    return [place for place, _ in _sizes_over(source)]


def _over_budget() -> Iterator[tuple[str, str]]:
    for source in sources(*CODE):
        yield from _sizes_over(source)


def _sizes_over(source: Source) -> Iterator[tuple[str, str]]:
    limit = FEATURE_LINES if source.path.startswith(FEATURES) else FILE_LINES
    lines = len(source.text.splitlines())
    if lines > limit:
        yield source.path, f"{lines} lines, at most {limit}"
    yield from _definitions_over(source.tree, prefix=f"{source.path}::")


def _definitions_over(scope: ast.AST, *, prefix: str) -> Iterator[tuple[str, str]]:
    for node in ast.iter_child_nodes(scope):
        if isinstance(node, ast.expr):
            continue
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _definitions_over(node, prefix=prefix)
            continue
        place = prefix + node.name
        limit = CLASS_LINES if isinstance(node, ast.ClassDef) else FUNCTION_LINES
        lines = (node.end_lineno or node.lineno) - node.lineno + 1
        if lines > limit:
            yield place, f"{lines} lines, at most {limit}"
        if (
            isinstance(node, ast.ClassDef)
            and len(attributes := _own_attributes(node)) > OWN_ATTRIBUTES
        ):
            yield f"{place} attributes", f"{len(attributes)}: {', '.join(sorted(attributes))}"
        yield from _definitions_over(node, prefix=f"{place}.")


def _own_attributes(node: ast.ClassDef) -> set[str]:
    """Return what an object holds; the fields of a frozen value are its content, not its state."""
    held = {
        target.attr
        for method in node.body
        if isinstance(method, ast.FunctionDef | ast.AsyncFunctionDef)
        for target in ast.walk(method)
        if isinstance(target, ast.Attribute)
        and isinstance(target.ctx, ast.Store)
        and isinstance(target.value, ast.Name)
        and target.value.id == "self"
    }
    decorators = [ast.unparse(decorator) for decorator in node.decorator_list]
    is_mutable_record = any(
        "dataclass" in text and "frozen=True" not in text for text in decorators
    )
    if is_mutable_record:
        held.update(
            field.target.id
            for field in node.body
            if isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and "ClassVar" not in ast.unparse(field.annotation)
        )
    return held


def test_the_walk_sees_the_product() -> None:
    assert {source.path.split("/")[0] for source in sources(*PRODUCT)} == set(PRODUCT)
