import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { findServer, type Places } from "../../src/host/server/find.js";
import { bundledWheels, install, installedPython, type Wheels } from "../../src/host/server/install.js";
import { localPrograms } from "../../src/host/server/programs.js";
import { findPython } from "../../src/host/server/python.js";
import { Restarts } from "../../src/host/server/restarts.js";
import { FakePrograms, python, type Says } from "./support/fake-programs.js";

const WHEELS: Wheels = {
  folder: "/ext/wheels",
  requirement: "tillerd==0.1.0",
  pip: "pip-26.whl",
  version: "0.1.0",
  pythons: ["3.11", "3.12"],
};

function places(known: Record<string, Says>, more: Partial<Places> = {}): Places {
  return {
    programs: new FakePrograms(known),
    wheels: undefined,
    storage: "/nowhere",
    install: async () => ({ kind: "installed", python: "/own/python" }),
    log: () => undefined,
    ...more,
  };
}

const none = { path: "", args: [] };
const tiller: Says = () => ({ out: "tiller 0.1.0\n" });
const helm: Says = () => ({ out: "Server: v2.17.0\n" });

test("what the user named is started, and nothing else", async () => {
  const known = { "/opt/tiller": tiller, "/usr/bin/tiller": tiller };
  const found = await findServer({ path: "/opt/tiller", args: ["--log-level", "info"] }, places(known));
  const launch = { command: "/opt/tiller", base: [], words: ["--log-level", "info"], from: "setting" };
  assert.deepEqual(found, { kind: "launch", launch });
});

test("a setting that names no program is said, not passed over", async () => {
  const found = await findServer({ path: "/gone", args: [] }, places({ "/usr/bin/tiller": tiller }));
  assert.ok(found.kind === "missing" && found.text.includes('"/gone"') && found.fix === "settings");
});

test("the program on the path comes next", async () => {
  const found = await findServer(none, places({ "/usr/bin/tiller": tiller }));
  assert.equal(found.kind === "launch" && found.launch.from, "path");
});

test("another program of that name is passed over for the extension's own", async () => {
  const found = await findServer(none, places({ "/usr/bin/tiller": helm }, { wheels: WHEELS }));
  assert.ok(found.kind === "launch");
  assert.deepEqual(
    [found.launch.command, found.launch.base],
    ["/own/python", ["-I", "-m", "tiller_server.cli.entry"]],
  );
});

test("without any server it is said how to get one", async () => {
  const found = await findServer(none, places({}));
  assert.ok(found.kind === "missing" && /pip|tiller\.server\.path/.test(found.text));
});

test("why an installation failed is what the user reads", async () => {
  const text = "Tiller needs Python 3.11 or newer, and none was found on this machine.";
  const failing = { wheels: WHEELS, install: async () => ({ kind: "failed", text }) as const };
  assert.deepEqual(await findServer(none, places({}, failing)), { kind: "missing", text, fix: "python" });
});

const pythons: [string, Record<string, Says>, string | undefined, string][] = [
  ["none at all", {}, undefined, "Tiller needs Python 3.11 or newer, and none was found on this machine."],
  [
    "only an old one",
    { "/usr/bin/python3": python("3.9.2", "/usr/bin/python3") },
    undefined,
    "Tiller needs Python 3.11 or newer; found only 3.9.2 (/usr/bin/python3).",
  ],
  [
    "only one that is too new for the wheels",
    { "/usr/bin/python3": python("3.15.0", "/usr/bin/python3") },
    undefined,
    "This build of Tiller has its server for Python 3.11, 3.12; found only 3.15.0 (/usr/bin/python3).",
  ],
  [
    "one that does not run",
    { "/bad": () => ({ code: 1 }) },
    "/bad",
    'The setting tiller.server.python names "/bad", which is no Python that runs.',
  ],
];
for (const [name, known, wanted, text] of pythons) {
  test(`no Python that fits is said in one sentence: ${name}`, async () => {
    const found = await findPython(new FakePrograms(known), wanted, WHEELS.pythons);
    assert.deepEqual(found, { kind: "none", text });
  });
}

test("the first Python that fits is taken, past an old one", async () => {
  const known = {
    "/a/python3": python("3.9.2", "/a/python3"),
    "/b/python3.12": python("3.12.1", "/b/python3.12"),
  };
  const found = await findPython(new FakePrograms(known), undefined, WHEELS.pythons);
  assert.equal(found.kind === "found" && found.python.version, "3.12.1");
});

test("an installation that fails leaves nothing, and its reason is pip's last line", async () => {
  const storage = await mkdtemp(join(tmpdir(), "tiller-install-"));
  const programs = new FakePrograms({ "/p/python3": () => ({}) });
  const python = { program: "/p/python3", version: "3.12.1", minor: "3.12" };
  const failed = await install(programs, WHEELS, storage, { python, say: () => undefined });
  assert.ok(failed.kind === "failed" && failed.text.includes("cannot be installed with /p/python3"));
  assert.equal(await installedPython(programs, WHEELS, storage), undefined);
  await rm(storage, { recursive: true });
});

test("an extension without wheels is told apart from one with wheels", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tiller-wheels-"));
  assert.equal(await bundledWheels(folder), undefined);
  await rm(folder, { recursive: true });
});

test("a relative folder on the path is not searched, for it would be the workspace's", async () => {
  const folder = await mkdtemp(join(tmpdir(), "tiller-path-"));
  await writeFile(join(folder, "tiller"), "#!/bin/sh\n", { mode: 0o755 });
  assert.equal(await localPrograms({ PATH: folder }).find("tiller"), join(folder, "tiller"));
  assert.equal(await localPrograms({ PATH: "." }).find("tiller"), undefined);
  await rm(folder, { recursive: true });
});

test("a key goes to a program by its standard input", async () => {
  const programs = localPrograms();
  const ran = await programs.run(process.execPath, ["-e", "process.stdin.pipe(process.stdout)"], {
    input: "sk-1",
  });
  assert.deepEqual(ran, { code: 0, out: "sk-1", err: "" });
});

test("a server that keeps ending is started four times, with longer and longer pauses", () => {
  let now = 0;
  const restarts = new Restarts(() => now);
  assert.deepEqual(
    [1, 2, 3, 4, 5].map(() => restarts.next()),
    [250, 500, 1000, 2000, undefined],
  );
  now = 200_000;
  assert.equal(restarts.next(), 250);
});
