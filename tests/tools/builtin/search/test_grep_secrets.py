"""The tool grep shows nothing of secret files that nobody let the session read, and says which it left out."""

import pytest

from agent_core.kernel import JsonObject
from agent_core.tools.builtin.grep.search import NOTHING
from tests.support.workspace.searches import ENGINES, Engine, searching_with
from tests.tools.conftest import Bench, details, words

NAMES = (
    *(".env", ".ENV", ".env.local", "prod.env", "sub/.env.production", "id_rsa", "sub/deep/ID_ED25519", "server.pem"),
    *("a.KEY", "store.jks", "credentials.json", "Secrets.YAML", ".netrc", ".npmrc", "kubeconfig", ".aws/config"),
    *("sub/.Aws/credentials", ".ssh/known", ".kube/x/y/z", ".gnupg/a", "sub/.azure/t", ".env.", ".env ", "id_rsa:x"),
    *(".env~", "id_rsa~", "sub/.id_rsa.swp", "server.key.bak", ".netrc.old2", "#.netrc#", "id_rsa copy", "a.pem.~1~"),
    *("secrets.toml", "terraform.tfstate", "x.tfvars", "sub/.docker/config.json", ".docker/Config.json.bak"),
    *(".\uff45nv", ".e\u200bnv", "k\u00e4se/.env"),
)  # fmt: skip
"""Spelt as some file system takes them for secret files."""
OPEN = (
    ".env.example",
    ".envrc.txt",
    "environment.py",
    "keys.py",
    "id_rsa.pub",
    "aws/config",
    "a.py~",
    ".docker/a",
)
SAID = "Use read on such a file if you need it: the user is asked, and after a yes searches show it too"


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, bench: Bench) -> Engine:
    chosen: Engine = request.param
    bench.workspace = searching_with(chosen, bench.workspace)
    return chosen


@pytest.mark.parametrize("name", NAMES)
async def test_a_secret_file_is_not_searched_and_named(
    bench: Bench, engine: Engine, name: str
) -> None:
    bench.put(name, "hit\n")
    bench.put("a.py", "hit\n")
    outcome = await bench.run("grep", pattern="hit")
    shown = name.replace("\u200b", "<U+200B>").rstrip(" ")
    assert words(outcome) == f"a.py:1: hit\n\n[1 secret file was not searched: {shown}. {SAID}]"
    assert details(outcome)["engine"] == engine
    assert details(outcome)["withheld"] == [name]


@pytest.mark.usefixtures("engine")
async def test_files_that_only_resemble_secret_ones_are_searched(bench: Bench) -> None:
    for name in OPEN:
        bench.put(name, "hit\n")
    outcome = await bench.run("grep", pattern="hit")
    assert words(outcome) == "\n".join(f"{name}:1: hit" for name in sorted(OPEN))
    assert "withheld" not in details(outcome)


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": ".env"},
        {"path": "./sub/../.env"},
        {"path": "linked"},
        {"path": "folder"},
        {"path": ".aws"},
        {"path": ".aws/config"},
        {"glob": ".env"},
        {"glob": "**/.[e]nv"},
        {"glob": ".aws/**"},
        {"glob": "!*.py"},
        {"context": 9},
        {"ignoreCase": True},
        {"literal": True},
        {"limit": 1},
    ],
)
@pytest.mark.usefixtures("engine")
async def test_no_way_of_asking_shows_it(bench: Bench, arguments: JsonObject) -> None:
    for name in (".env", "sub/.env", ".aws/config"):
        bench.put(name, "before\nhit-secret\nafter\n")
    (bench.root / "linked").symlink_to(".env")
    (bench.root / "folder").symlink_to(".aws")
    outcome = await bench.call("grep", {"pattern": "hit", **arguments})
    assert words(outcome).startswith(f"{NOTHING}\n\n[")
    assert SAID in words(outcome)
    assert "hit-secret" not in words(outcome)


@pytest.mark.usefixtures("engine")
async def test_what_is_said_does_not_depend_on_the_content(bench: Bench) -> None:
    """Else the pattern could be grown sign by sign until the whole secret is known."""
    bench.put(".env", "KEY=abc\n")
    right, wrong = [words(await bench.run("grep", pattern=f"KEY={one}")) for one in "ax"]
    assert right == wrong


@pytest.mark.usefixtures("engine")
async def test_ignored_files_are_not_named(bench: Bench) -> None:
    bench.put(".gitignore", ".env\nbuild/\n")
    for name in (".env", "build/server.pem", "a.py"):
        bench.put(name, "hit\n")
    assert words(await bench.run("grep", pattern="hit")) == "a.py:1: hit"
    named = words(await bench.run("grep", pattern="hit", glob=".env"))
    assert named == f"{NOTHING}\n\n[1 secret file was not searched: .env. {SAID}]"


@pytest.mark.usefixtures("engine")
async def test_of_many_the_first_are_named(bench: Bench) -> None:
    for number in range(12):
        bench.put(f"{number:02}.pem", "hit\n")
    outcome = await bench.run("grep", pattern="hit")
    assert "12 secret files were not searched: 00.pem, 01.pem" in words(outcome)
    assert "09.pem and 2 more. " in words(outcome)
    assert len(details(outcome)["withheld"]) == 12


@pytest.mark.usefixtures("engine")
async def test_a_file_that_may_be_read_is_searched_and_no_other(bench: Bench) -> None:
    bench.put(".env", "hit\n")
    bench.put("sub/.env", "hit\n")
    bench.secrets.allow(bench.root / ".env")
    outcome = await bench.run("grep", pattern="hit")
    assert words(outcome) == f".env:1: hit\n\n[1 secret file was not searched: sub/.env. {SAID}]"
    assert words(await bench.run("grep", pattern="hit", path=".env")) == ".env:1: hit"
    assert words(await bench.run("grep", pattern="hit", path="sub/.env")).startswith(NOTHING)


@pytest.mark.usefixtures("engine")
async def test_a_folder_that_may_be_read_is_searched(bench: Bench) -> None:
    bench.put(".aws/config", "hit\n")
    bench.secrets.allow(bench.root / ".aws")
    assert words(await bench.run("grep", pattern="hit", path=".aws")) == "config:1: hit"


@pytest.mark.usefixtures("engine")
async def test_a_link_that_turns_to_another_secret_file_opens_nothing(bench: Bench) -> None:
    bench.put(".env", "hit\n")
    bench.put("prod.env", "hit\n")
    (bench.root / "linked").symlink_to(".env")
    bench.secrets.allow(bench.root / ".env")
    assert words(await bench.run("grep", pattern="hit", path="linked")) == ".env:1: hit"
    turned = bench.root / "turned"
    turned.symlink_to("prod.env")
    _ = turned.rename(bench.root / "linked")
    assert words(await bench.run("grep", pattern="hit", path="linked")).startswith(NOTHING)


@pytest.mark.usefixtures("engine")
async def test_find_and_ls_name_them(bench: Bench) -> None:
    bench.put(".env", "hit\n")
    assert words(await bench.run("find", pattern=".env")) == ".env"
    assert words(await bench.run("ls")) == ".env"
