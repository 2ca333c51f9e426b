import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { excludedGlobs, listFiles, ripgrepPlaces } from "../../src/host/panel/project-files.js";
import { localPrograms } from "../../src/host/server/programs.js";

const APP = join("..", ".venv", "workbench", "node_modules", "code-server", "lib", "vscode");
const rg = ripgrepPlaces(join(process.cwd(), APP));
const skip = rg.some(existsSync) ? false : "no ripgrep: make e2e-vscode installs a VS Code that has one";

async function project(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "tiller-files-"));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
}

test("files of the project are found whatever else lies below it", { skip }, async () => {
  const packages = Object.fromEntries(
    Array.from({ length: 300 }, (_, number) => [`node_modules/p${number}/index.js`, ""]),
  );
  const folder = await project({
    ...packages,
    ".gitignore": "node_modules/\n*.log\n",
    ".github/ci.yml": "",
    ".git/config": "",
    "src/zebra_widget.ts": "",
    "src/deep/ä b.ts": "",
    "out/made.js": "",
    "run.log": "",
  });
  const globs = excludedGlobs({ "**/.git": true, "**/*.bak": false }, { "**/out": true });
  const found = await listFiles(localPrograms(), { rg, folder, globs });
  await rm(folder, { recursive: true });
  assert.deepEqual(found?.sort(), [".github/ci.yml", ".gitignore", "src/deep/ä b.ts", "src/zebra_widget.ts"]);
});

test("a folder without files has none, and without ripgrep nobody knows", { skip }, async () => {
  const folder = await project({});
  assert.deepEqual(await listFiles(localPrograms(), { rg, folder, globs: [] }), []);
  assert.equal(await listFiles(localPrograms(), { rg: ["/nowhere/rg"], folder, globs: [] }), undefined);
  await rm(folder, { recursive: true });
});

test("what the user's settings switch off or make depend on something does not hide a file", () => {
  const globs = excludedGlobs(
    { "**/.git": true, "**/a": true },
    { "**/a": false, "**/*.js": { when: "$(basename).ts" } },
  );
  assert.deepEqual(globs, ["**/.git"]);
  assert.deepEqual(excludedGlobs(undefined, {}), []);
});
