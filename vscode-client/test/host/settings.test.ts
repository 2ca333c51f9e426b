import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { type Inspects, serverWishes } from "../../src/host/server/machine-settings.js";
import { localPrograms } from "../../src/host/server/programs.js";

interface Property {
  type: string | string[];
  scope?: string;
}

/** Where each setting can be set. `machine`: by the user alone, for it names a program, an environment, or their arguments. */
const SCOPES: Record<string, "machine" | "window"> = {
  "tiller.server.path": "machine",
  "tiller.server.args": "machine",
  "tiller.server.python": "machine",
  "tiller.editor.lenses": "window",
  "tiller.editor.gutter": "window",
  "tiller.editor.saveAppliedEdits": "window",
  "tiller.notifications": "window",
  "tiller.defaultModel": "window",
  "tiller.defaultProvider": "window",
  "tiller.defaultThinkingLevel": "window",
  "tiller.permission.mode": "window",
  "tiller.permission.timeoutS": "window",
  "tiller.completion.trigger": "window",
  "tiller.completion.model": "window",
  "tiller.compaction.enabled": "window",
  "tiller.retry.enabled": "window",
  "tiller.bash.timeoutS": "window",
  "tiller.images.blockImages": "window",
  "tiller.budgets.usd": "window",
  "tiller.budgets.turns": "window",
  "tiller.budgets.minutes": "window",
};
/** Words of names of settings that say what runs, or where, or with what. */
const RUNS =
  /\b(server|path|args?|arguments?|python|node|env|environment|shell|command|program|executable|interpreter|prefix|hooks?|extensions?|proxy|url)\b/i;

test("a workspace can set nothing that names a program, an environment or arguments", async () => {
  const { contributes, capabilities } = JSON.parse(await readFile("package.json", "utf8"));
  const properties = Object.assign(
    {},
    ...contributes.configuration.map((group: { properties: Record<string, Property> }) => group.properties),
  ) as Record<string, Property>;
  const scopes = Object.fromEntries(
    Object.entries(properties).map(([name, property]) => [name, property.scope ?? "window"]),
  );
  assert.deepEqual(scopes, SCOPES, "name each setting in the table, with its scope");
  const machine = Object.keys(scopes).filter((name) => scopes[name] === "machine");
  assert.deepEqual(
    Object.keys(scopes).filter((name) => RUNS.test(wordsOf(name))),
    machine,
  );
  // A list of free texts is a list of arguments until somebody shows otherwise.
  const lists = Object.keys(properties).filter((name) => properties[name]?.type === "array");
  assert.deepEqual(
    lists.filter((name) => scopes[name] !== "machine"),
    [],
  );
  assert.deepEqual(capabilities.untrustedWorkspaces.restrictedConfigurations, machine);
});

test("the word for a program is found in a name however it is written", () => {
  for (const name of ["tiller.shellPath", "tiller.bash.prefix", "tiller.pythonEnv", "tiller.git.command"])
    assert.match(wordsOf(name), RUNS);
  for (const name of ["tiller.defaultModel", "tiller.bash.timeoutS"])
    assert.doesNotMatch(wordsOf(name), RUNS);
});

test("what a workspace says of the server is not read even if VS Code has it", () => {
  const workspace = { workspaceValue: "/bin/sh", workspaceFolderValue: "./evil" };
  const section = (more: Record<string, object>): Inspects => ({
    inspect: (name) => ({ key: name, ...workspace, ...more[name] }) as object,
  });
  assert.deepEqual(serverWishes(section({})), { path: "", args: [], python: "" });
  const users = section({
    path: { defaultValue: "", globalValue: "/opt/tiller" },
    args: { defaultValue: [], globalValue: ["--log-level", 1, "info"] },
    python: { defaultValue: "" },
  });
  assert.deepEqual(serverWishes(users), { path: "/opt/tiller", args: ["--log-level", "info"], python: "" });
  assert.deepEqual(serverWishes({ inspect: () => undefined }), { path: "", args: [], python: "" });
});

test("a path that depends on the folder that is open names no program", async () => {
  const programs = localPrograms({ PATH: "/bin:/usr/bin" });
  assert.notEqual(await programs.find("sh"), undefined);
  assert.equal(await programs.find("/bin/sh"), "/bin/sh");
  assert.equal(await programs.find("../../../../../../../../bin/sh"), undefined);
});

function wordsOf(name: string): string {
  return name.replace(/[._]/g, " ").replace(/([a-z])([A-Z])/g, "$1 $2");
}
