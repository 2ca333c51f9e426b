// A client made with the vendor's SDK: runs one conversation with an agent, and writes what it saw as lines of JSON.
// Arguments: file of the SDK, folder of the workspace, command of the agent as a JSON list.
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdkFile, cwd, command] = process.argv.slice(2);
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(sdkFile));
const tell = (what, value) => process.stdout.write(`${JSON.stringify({ what, value })}\n`);

/** Start the agent, and call `op` with the connection and what the agent sends. */
async function connected(op) {
  const [program, ...words] = JSON.parse(command);
  const agent = spawn(program, words, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const seen = { updates: [], asked: [], files: [], listener: () => {} };
  const app = client({ name: "sdk-client" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push(params.toolCall.title);
      const option = params.options.find((one) => one.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => {
      seen.files.push("read");
      return { content: readFileSync(params.path, "utf8") };
    })
    .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
      seen.files.push("write");
      writeFileSync(params.path, params.content);
      return {};
    })
    .onNotification(methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
      seen.listener(params.update);
    });
  try {
    await app.connectWith(
      ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)),
      async (agentSide) => {
        await agentSide.request(methods.agent.initialize, {
          protocolVersion: PROTOCOL_VERSION,
          clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
          clientInfo: { name: "sdk-client", version: "1" },
        });
        await op(agentSide, seen);
      },
    );
  } finally {
    agent.kill();
  }
}

/** Wait until the updates that were passed on fit. The SDK may give a response before the updates before it. */
async function passed(seen, fits) {
  while (!fits())
    await new Promise((resolve) => {
      seen.listener = resolve;
    });
  seen.listener = () => {};
}
const text = (seen, kind = "agent_message_chunk") =>
  seen.updates
    .filter((one) => one.sessionUpdate === kind)
    .map((one) => one.content.text ?? "")
    .join("");
const prompt = (agent, sessionId, words) =>
  agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });

let session;
await connected(async (agent, seen) => {
  session = (await agent.request(methods.agent.session.new, { cwd, mcpServers: [] })).sessionId;
  const first = await prompt(agent, session, "hello");
  await passed(seen, () => text(seen).length >= "Hello there.".length);
  tell("answered", { stop: first.stopReason, text: text(seen) });
  const second = await prompt(agent, session, "edit");
  tell("edited", { stop: second.stopReason, asked: seen.asked.length, files: seen.files });
  seen.listener = (update) => {
    if (update.status === "in_progress")
      agent.notify(methods.agent.session.cancel, { sessionId: session });
  };
  tell("cancelled", { stop: (await prompt(agent, session, "sleep")).stopReason });
});
await connected(async (agent, seen) => {
  await agent.request(methods.agent.session.load, { sessionId: session, cwd, mcpServers: [] });
  await passed(
    seen,
    () => text(seen).includes("Edited.") && text(seen, "user_message_chunk").includes("sleep"),
  );
  tell("replayed", { answers: text(seen), prompts: text(seen, "user_message_chunk") });
  const last = await prompt(agent, session, "again");
  await passed(seen, () => text(seen).includes("Again."));
  tell("resumed", { stop: last.stopReason, text: text(seen) });
});
process.exit(0);
