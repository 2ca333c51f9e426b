// What goes wrong around the server, and what the user reads then.
import assert from "node:assert/strict";
import { chmod, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { killAll } from "./support/processes.ts";
import { stage } from "./support/stage.ts";
import { OF_CHECKOUT } from "./support/workbench.ts";

const on = stage("trouble", { files: { "a.txt": "a\n" } });

/** Puts a program of the story in the place of the server or of Python. */
async function program(name: string, text: string): Promise<string> {
  const path = join(on.ground.base, name);
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

/** A server that knows LSP, and of Tiller what is given. */
const SERVER = (agent: string) => `#!/usr/bin/env python3
import json, sys
while True:
    size = 0
    while (line := sys.stdin.buffer.readline().strip()):
        if line.lower().startswith(b"content-length:"):
            size = int(line.split(b":")[1])
    if not size:
        break
    asked = json.loads(sys.stdin.buffer.read(size))
    if "id" not in asked:
        continue
    result = {"capabilities": {"experimental": ${agent}}} if asked["method"] == "initialize" else None
    body = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\\r\\n\\r\\n" % len(body) + body)
    sys.stdout.buffer.flush()
`;

test("the server is killed in mid-run: it comes back, says what was interrupted, and goes on with it", async () => {
  const { window, ground } = on;
  await window.openPanel();
  await ground.provider.script({ text: "alpha beta gamma delta", deltas: 4, delta_delay_s: 3 });
  await window.panel.say("Count slowly.");
  await window.panel.text("alpha").waitFor();
  const killed = await killAll(ground, /tiller\0lsp|server\.(cli|daemon)/);
  assert.ok(killed > 0, "there was no server to kill");
  await window.panel.text("Interrupted").waitFor({ timeout: 40_000 });
  await window.picture("trouble-1-killed");
  await ground.provider.script({ text: "Here I am again." });
  await window.panel.button("Try again").click();
  await window.panel.text("Here I am again.").waitFor();
  const said = (await window.panel.transcript()).match(/^You$/gm);
  assert.equal(said?.length, 1, "the words were said twice");
  await window.picture("trouble-2-back");
});

test("a server that is not there is named", async () => {
  await on.code.configure({ "tiller.server.path": "/nowhere/tiller" });
  await on.window.panel.text(/tiller\.server\.path names "\/nowhere\/tiller"/).waitFor();
  await on.window.panel.button("Open Settings").waitFor();
  await on.window.picture("trouble-3-missing");
});

test("what a broken server said is shown", async () => {
  const broken = await program("broken", "#!/bin/sh\necho 'the lab is on fire' >&2\nexit 3\n");
  await on.code.configure({ "tiller.server.path": broken });
  await on.window.panel.text(/the lab is on fire/).waitFor();
  await on.window.picture("trouble-4-broken");
});

test("another language server is told from Tiller's", async () => {
  await on.code.configure({ "tiller.server.path": await program("other", SERVER("{}")) });
  await on.window.panel.text(/is a language server, but none of Tiller/).waitFor();
});

test("a server of another protocol is named with both versions", async () => {
  const agent = '{"agent": {"v": 9, "protocol": "9.0", "methods": [], "events": []}}';
  await on.code.configure({ "tiller.server.path": await program("newer", SERVER(agent)) });
  await on.window.panel.text(/speaks protocol 9\.0, this extension 1\.x/).waitFor();
  await on.window.picture("trouble-5-protocol");
});

test("a Python that is too old is named with its version", async () => {
  const old = await program("python", "#!/bin/sh\nprintf '3.8.10\\n/usr/bin/python3.8\\n'\n");
  await on.code.configure({ "tiller.server.path": "", "tiller.server.python": old });
  await on.window.panel.text(/needs Python 3\.11 or newer; found only 3\.8\.10/).waitFor();
  await on.window.picture("trouble-6-python");
});

test("a Python that is not there is named", async () => {
  await on.code.configure({ "tiller.server.path": "", "tiller.server.python": "/nowhere/python" });
  await on.window.panel.text(/names "\/nowhere\/python", which is no Python that runs/).waitFor();
});

test("a window without a folder asks for one", async () => {
  await on.code.configure(OF_CHECKOUT);
  const empty = await on.code.open({ ew: "true" });
  await empty.openPanel();
  await empty.panel.text("Open a folder to use Tiller").waitFor();
  await empty.panel.button("Open Folder").waitFor();
  await empty.picture("trouble-7-no-folder");
  await empty.page.context().close();
});

test("with the right settings again, everything is as before", async () => {
  await on.code.configure(OF_CHECKOUT);
  await on.window.panel.text("Here I am again.").waitFor();
});
