"""The embedded model repairs real projects with the real tools, or says truthfully that it cannot."""

import random
import subprocess
from pathlib import Path

import pytest

from agent_core.kernel import SystemClock
from agent_core.messages import (
    AssistantMessage,
    CompactionSummaryMessage,
    Cost,
    Text,
    ToolResultMessage,
    UserMessage,
)
from agent_core.providers import ModelRequest, StreamFinished
from agent_core.providers.adapters.embedded import EMBEDDED_FACTS
from agent_core.providers.adapters.embedded.model import EmbeddedModel
from tests.providers.adapters.typos import plant, write_project
from tests.support.harness.sizes import at_size
from tests.support.session.repairing import (
    BARE_PYTHON,
    FULL_PYTHON,
    Repairer,
    transcript,
)

pytestmark = [pytest.mark.timeout(180)]

BATCH = 6
BATCHES = range(at_size(ci=4, campaign=100))
MAY_DECLINE = 1
"""In a batch; more would mean that a kind of slip is not understood."""

GREETER = {
    "greeter.py": "def greet(name):\n    return 'Hello ' + name\n",
    "test_greeter.py": (
        "import unittest\nfrom greeter import greet\n\n\n"
        "class T(unittest.TestCase):\n"
        "    def test_greet(self):\n"
        "        self.assertEqual(greet('Ada'), 'Hello Ada')\n"
    ),
}


def repairer(
    tmp_path: Path, files: dict[str, str], *, python: tuple[str, ...] = BARE_PYTHON
) -> Repairer:
    root = write_project(tmp_path / "work", files)
    return Repairer(root=root, scratch=tmp_path / "scratch", python=python)


def texts(root: Path) -> dict[str, str]:
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*.py"))}


def passes(root: Path) -> bool:
    done = subprocess.run(
        [*BARE_PYTHON, "-B", "-m", "unittest"], cwd=root, capture_output=True, check=False
    )
    return done.returncode == 0


@pytest.mark.parametrize("batch", BATCHES)
async def test_planted_typos_are_repaired_or_truthfully_declined(
    tmp_path: Path, batch: int
) -> None:
    seeds = range(batch * BATCH, (batch + 1) * BATCH)
    stories = [await _declined(tmp_path / str(seed), seed) for seed in seeds]
    declined = [story for story in stories if story]
    assert len(declined) <= MAY_DECLINE, "\n\n".join(declined)


async def _declined(folder: Path, seed: int) -> str:
    """Plant a typo and let it be repaired; give the story when that was declined, else nothing."""
    root = write_project(folder / "work")
    typo = plant(root, random.Random(seed))  # noqa: S311 - to be repeated, not to be secret
    broken, before = not passes(root), texts(root)
    one = Repairer(root=root, scratch=folder / "scratch", python=BARE_PYTHON)
    said = await one.ask()
    story = f"seed {seed}: {typo}\n{transcript(one.messages)}"
    whole = passes(root)
    assert whole == said.startswith("The tests pass"), story
    assert broken or texts(root) == before, story
    assert sum(path.startswith(("/", "..", "tests/")) for path in one.edited()) == 0, story
    assert all(f"- {line}" in said for line in _announced(one)), story
    return "" if whole else story


def _announced(one: Repairer) -> list[str]:
    """Give the words with which edits that landed were announced."""
    spoken = [message for message in one.messages if isinstance(message, AssistantMessage)]
    failed = {
        message.call_id
        for message in one.messages
        if isinstance(message, ToolResultMessage) and message.is_error
    }
    return [
        message.text
        for message in spoken
        for call in message.tool_calls
        if call.name == "edit" and call.id not in failed
    ]


@pytest.mark.parametrize(
    ("python", "count"),
    [(BARE_PYTHON, "1 test"), (FULL_PYTHON, "1 test")],
    ids=["unittest", "pytest"],
)
async def test_a_project_that_passes_is_left_alone(
    tmp_path: Path, python: tuple[str, ...], count: str
) -> None:
    one = repairer(tmp_path, GREETER, python=python)
    said = await one.ask()
    assert said == f"The tests pass ({count}): there is nothing to repair."
    assert [call.name for call in one.calls] == ["bash"]
    assert texts(one.root) == GREETER


BROKEN = {
    "a name": ("return 'Hello ' + nmae", None),
    "a built-in": ("return 'Hello ' + sttr(name)", "return 'Hello ' + str(name)"),
    "an attribute of a built-in": (
        "return 'Hello ' + name.stirp()",
        "return 'Hello ' + name.strip()",
    ),
    "a method chain over lines": (
        "return (\n        ('Hello ' + name)\n        .strip()\n        .repalce('x', 'y')\n    )",
        "return (\n        ('Hello ' + name)\n        .strip()\n        .replace('x', 'y')\n    )",
    ),
    "the same name twice": (
        "assert name; return ('Hello ' + nmae) if nmae else ''",
        "assert name; return ('Hello ' + name) if name else ''",
    ),
    "a name that is also in a string": (
        "return 'nmae' and 'Hello ' + nmae",
        "return 'nmae' and 'Hello ' + name",
    ),
}


@pytest.mark.parametrize(("body", "mended"), BROKEN.values(), ids=BROKEN)
async def test_what_python_suggests_is_done(tmp_path: Path, body: str, mended: str | None) -> None:
    files = GREETER | {"greeter.py": f"def greet(name):\n    {body}\n"}
    one = repairer(tmp_path, files)
    said = await one.ask()
    assert said.startswith("The tests pass now (1 test)."), transcript(one.messages)
    expected = mended or "return 'Hello ' + name"
    assert texts(one.root) == GREETER | {"greeter.py": f"def greet(name):\n    {expected}\n"}


async def test_with_pytest_it_goes_the_same_way(tmp_path: Path) -> None:
    files = {
        "greeter.py": "import jsn\n\ndef greet(name):\n    return json.loads(json.dumps(f'Hello {nme}'))\n",
        "test_greeter.py": "from greeter import greet\n\ndef test_greet():\n    assert greet('Ada') == 'Hello Ada'\n",
    }
    one = repairer(tmp_path, files, python=FULL_PYTHON)
    said = await one.ask()
    assert said == (
        "The tests pass now (1 test). Repaired:\n"
        "- greeter.py:1: `jsn` → `json`\n"
        "- greeter.py:4: `nme` → `name`"
    ), transcript(one.messages)


MODULES = {
    "a missing import": (
        '"""Doc."""\nfrom __future__ import annotations\n\ndef greet(name):\n    return json.loads(json.dumps(f"Hello {name}"))\n',
        '"""Doc."""\nfrom __future__ import annotations\n\nimport json\ndef greet(name):\n    return json.loads(json.dumps(f"Hello {name}"))\n',
    ),
    "a misspelt module": (
        "import jsn\n\ndef greet(name):\n    return json.loads(json.dumps(f'Hello {name}'))\n",
        "import json\n\ndef greet(name):\n    return json.loads(json.dumps(f'Hello {name}'))\n",
    ),
    "a misspelt module behind from": (
        "from colections import Counter\n\ndef greet(name):\n    return Counter() or 'Hello ' + name\n",
        "from collections import Counter\n\ndef greet(name):\n    return Counter() or 'Hello ' + name\n",
    ),
    "a misspelt module with an alias": (
        "import sttring as s\n\ndef greet(name):\n    return s.capwords('hello') + ' ' + name\n",
        "import string as s\n\ndef greet(name):\n    return s.capwords('hello') + ' ' + name\n",
    ),
    "a misspelt import": (
        "from collections import OrderedDcit\n\ndef greet(name):\n    return OrderedDict() or 'Hello ' + name\n",
        "from collections import OrderedDict\n\ndef greet(name):\n    return OrderedDict() or 'Hello ' + name\n",
    ),
    "a method without self": (
        "class G:\n    def hello(name):\n        return 'Hello ' + name\n\ndef greet(name):\n    return G().hello(name)\n",
        "class G:\n    def hello(self, name):\n        return 'Hello ' + name\n\ndef greet(name):\n    return G().hello(name)\n",
    ),
    "a method without anything": (
        "class G:\n    def hello():\n        return 'Hello '\n\ndef greet(name):\n    return G().hello() + name\n",
        "class G:\n    def hello(self):\n        return 'Hello '\n\ndef greet(name):\n    return G().hello() + name\n",
    ),
    "self that is not a parameter": (
        "class G:\n    word = 'Hello '\n    def hello(name):\n        return self.word + 'Ada'\n\ndef greet(name):\n    return G().hello()\n",
        "class G:\n    word = 'Hello '\n    def hello(self, name):\n        return self.word + 'Ada'\n\ndef greet(name):\n    return G().hello()\n",
    ),
    "a forgotten self.": (
        "class G:\n    def __init__(self):\n        self.word = 'Hello '\n    def hello(self, name):\n        return word + name\n\ndef greet(name):\n    return G().hello(name)\n",
        "class G:\n    def __init__(self):\n        self.word = 'Hello '\n    def hello(self, name):\n        return self.word + name\n\ndef greet(name):\n    return G().hello(name)\n",
    ),
    "a parameter that is misspelt, not its uses": (
        "def greet(nmae):\n    return 'Hello ' + name if name else ''\n",
        "def greet(name):\n    return 'Hello ' + name if name else ''\n",
    ),
    "a variable that is misspelt where it is set": (
        "def greet(name):\n    comipled = 'Hello ' + name\n    return compiled or compiled\n",
        "def greet(name):\n    compiled = 'Hello ' + name\n    return compiled or compiled\n",
    ),
    "a variable that is misspelt where it is first set": (
        "def greet(name):\n    ressult = 'Hello '\n    result = result + name\n    return result\n",
        "def greet(name):\n    result = 'Hello '\n    result = result + name\n    return result\n",
    ),
    "a name inside an f-string": (
        "def greet(name):\n    return f'{{}}Hello {naame!r:>3}'[2:].replace(\"'\", '')\n",
        "def greet(name):\n    return f'{{}}Hello {name!r:>3}'[2:].replace(\"'\", '')\n",
    ),
    "a field that is misspelt, not its uses": (
        "from dataclasses import dataclass\n\n@dataclass\nclass G:\n    woord: str\n    def __str__(self):\n        return self.word + self.word[:0]\n\ndef greet(name):\n    return str(G('Hello ')) + name\n",
        "from dataclasses import dataclass\n\n@dataclass\nclass G:\n    word: str\n    def __str__(self):\n        return self.word + self.word[:0]\n\ndef greet(name):\n    return str(G('Hello ')) + name\n",
    ),
    "a definition that is misspelt, not its use in the test": (
        "def gret(name):\n    return 'Hello ' + name\n",
        "def greet(name):\n    return 'Hello ' + name\n",
    ),
}


@pytest.mark.parametrize(("text", "mended"), MODULES.values(), ids=MODULES)
async def test_a_module_is_mended(tmp_path: Path, text: str, mended: str) -> None:
    one = repairer(tmp_path, GREETER | {"greeter.py": text})
    said = await one.ask()
    if "self.word + 'Ada'" not in text:  # that one calls it with too few
        assert said.startswith("The tests pass now"), transcript(one.messages)
    assert texts(one.root) == GREETER | {"greeter.py": mended}, transcript(one.messages)


HOPELESS = {
    "a wrong result": "def greet(name):\n    return 'Hi ' + name\n",
    "no close name": "def greet(name):\n    return 'Hello ' + zzzzzzzzzz\n",
    "a package that is not installed": "import httpx\n\ndef greet(name):\n    return httpx.Client()\n",
    "too many arguments": "class G:\n    def hello(self):\n        return ''\n\ndef greet(name):\n    return G().hello(1)\n",
    "a circle of imports": "from test_greeter import grete\n\ndef greet(name):\n    return grete\n",
    "no Python": "def greet(name:\n",
    "a wrong key": "def greet(name):\n    return {'name': 1}['nmae']\n",
}


@pytest.mark.parametrize("text", HOPELESS.values(), ids=HOPELESS)
async def test_what_python_does_not_name_is_declined_and_nothing_is_touched(
    tmp_path: Path, text: str
) -> None:
    one = repairer(tmp_path, GREETER | {"greeter.py": text})
    said = await one.ask()
    assert said.startswith("I repaired nothing.\nThe tests "), transcript(one.messages)
    assert texts(one.root) == GREETER | {"greeter.py": text}


async def test_what_a_test_prints_is_not_taken_for_an_error(tmp_path: Path) -> None:
    forged = (
        'Traceback (most recent call last):\n  File "greeter.py", line 1, in x\n    def greet(name):\n'
        "NameError: name 'greet' is not defined. Did you mean: 'great'?"
    )
    text = f"def greet(name):\n    print({forged!r})\n    return 'Hi ' + name\n"
    for python in (BARE_PYTHON, FULL_PYTHON):
        one = repairer(tmp_path / python[-1][-6:], GREETER | {"greeter.py": text}, python=python)
        said = await one.ask()
        assert said.startswith("I repaired nothing.\n"), transcript(one.messages)
        assert texts(one.root) == GREETER | {"greeter.py": text}


async def test_an_error_outside_of_the_workspace_is_left_alone(tmp_path: Path) -> None:
    outside = write_project(
        tmp_path / "elsewhere", {"far.py": "def far():\n    return lenght\nlength = 1\n"}
    )
    text = f"import sys\nsys.path.insert(0, {str(outside)!r})\nimport far\n\ndef greet(name):\n    return far.far()\n"
    one = repairer(tmp_path, GREETER | {"greeter.py": text})
    said = await one.ask()
    assert said.startswith("I repaired nothing.\nThe tests still fail."), transcript(one.messages)
    assert texts(outside) == {"far.py": "def far():\n    return lenght\nlength = 1\n"}
    assert texts(one.root) == GREETER | {"greeter.py": text}


async def test_tests_in_a_folder_that_is_no_package_are_found(tmp_path: Path) -> None:
    files = {"greeter.py": "def greet(name):\n    return 'Hello ' + nmae\n"}
    one = repairer(tmp_path, files | {"tests/test_greeter.py": GREETER["test_greeter.py"]})
    assert (await one.ask()).startswith("The tests pass now (1 test).")


async def test_without_tests_it_says_so(tmp_path: Path) -> None:
    one = repairer(tmp_path, {"greeter.py": GREETER["greeter.py"]})
    assert (await one.ask()).startswith("I found no tests to run")


async def test_a_long_file_is_read_around_the_line(tmp_path: Path) -> None:
    filling = "".join(f"X{n} = {n}\n" for n in range(2500))
    text = f"{filling}def greet(name):\n    return 'Hello ' + naame\n"
    one = repairer(tmp_path, GREETER | {"greeter.py": text})
    assert (await one.ask()).startswith("The tests pass now (1 test).")
    assert texts(one.root)["greeter.py"] == text.replace("naame", "name")


async def test_crlf_and_repeated_lines_are_no_obstacle(tmp_path: Path) -> None:
    body = "def greet(name):\n    if not name:\n        return nmae\n    name = 'Hello ' + name\n    return nmae\n"
    one = repairer(tmp_path, GREETER)
    (one.root / "greeter.py").write_bytes(body.replace("\n", "\r\n").encode())
    assert (await one.ask()).startswith("The tests pass now (1 test).")
    expected = body.replace("    return nmae\n", "    return name\n").replace(
        "        return name\n", "        return nmae\n"
    )
    assert (one.root / "greeter.py").read_bytes() == expected.replace("\n", "\r\n").encode()


@pytest.mark.parametrize("tool", ["bash", "read", "edit"])
async def test_a_tool_that_is_missing_is_asked_for(tmp_path: Path, tool: str) -> None:
    one = repairer(tmp_path, GREETER)
    one.without = frozenset({tool})
    said = await one.ask()
    assert f"I was not given `{tool}`" in said
    assert one.calls == []


@pytest.mark.parametrize(
    ("tool", "says"),
    [("bash", "I could not run the tests"), ("edit", "the edit of greeter.py failed")],
)
async def test_a_tool_that_is_refused_is_reported_in_its_words(
    tmp_path: Path, tool: str, says: str
) -> None:
    files = GREETER | {"greeter.py": "def greet(name):\n    return 'Hello ' + nmae\n"}
    one = repairer(tmp_path, files)
    one.refuse = {tool: "not in plan mode"}
    said = await one.ask()
    assert says in said
    assert "not in plan mode" in said
    assert texts(one.root) == files


@pytest.mark.parametrize(
    "words",
    [
        "hello",
        "What is a prefix?",
        "Write a poem about fixtures.",
        "Don't fix anything, explain it.",
        "",
    ],
)
async def test_anything_else_gets_one_sentence_on_real_models(tmp_path: Path, words: str) -> None:
    one = repairer(tmp_path, GREETER)
    said = await one.ask(words)
    assert "not a language model" in said
    assert "models.json" in said
    assert one.calls == []


async def test_a_second_request_starts_anew_and_going_on_goes_on(tmp_path: Path) -> None:
    one = repairer(tmp_path, GREETER)
    _ = await one.ask("fix the tests")
    (one.root / "greeter.py").write_text("def greet(name):\n    return 'Hello ' + nmae\n")
    assert (await one.ask("fix the tests")).startswith("The tests pass now (1 test).")
    assert (await one.ask("thanks")).startswith("I am the embedded repair model")


async def test_a_compacted_request_is_still_known(tmp_path: Path) -> None:
    files = GREETER | {"greeter.py": "def greet(name):\n    return 'Hello ' + nmae\n"}
    one = repairer(tmp_path, files)
    one.messages.append(
        CompactionSummaryMessage(
            summary="The user wants the failing tests fixed.", tokens_before=9, at_ms=0
        )
    )
    answer = await one.answer()
    assert [call.name for call in answer.tool_calls] == ["bash"]


async def test_it_does_not_pretend_to_sum_up() -> None:
    request = ModelRequest(
        system="You write summaries of conversations.",
        messages=(UserMessage(content=(Text(text="fix the failing tests"),), at_ms=0),),
    )
    async with EmbeddedModel(SystemClock()).stream(request) as parts:
        answers = [part async for part in parts if isinstance(part, StreamFinished)]
    assert answers[-1].message.text.startswith("The embedded repair model is rule-based")


async def test_it_is_free_and_its_name_says_what_it_is(tmp_path: Path) -> None:
    answer = await repairer(tmp_path, GREETER).answer()
    assert (answer.usage.total, answer.usage.cost) == (0, Cost())
    assert EMBEDDED_FACTS.ref == "embedded/repair"
    assert EMBEDDED_FACTS.name == "Repair (rule-based, not a language model)"
