// A client of version 2 made with the vendor's SDK: runs one conversation with an agent, and writes what it saw as lines of JSON.
// Arguments: file of the SDK, folder of the workspace, command of the agent as a JSON list.
import { spawn } from "node:child_process";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [sdkFile, cwd, command] = process.argv.slice(2);
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(sdkFile));
const tell = (what, value) => process.stdout.write(`${JSON.stringify({ what, value })}\n`);

/** Start the agent, and call `op` with the connection and what the agent sends. */
async function connected(op) {
  const [program, ...words] = JSON.parse(command);
  const agent = spawn(program, words, { cwd, stdio: ["pipe", "pipe", "inherit"] });
  const seen = { updates: [], asked: [], listener: () => {} };
  const app = client({ name: "sdk-client" })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      seen.asked.push(params.title);
      const option = params.options.find((one) => one.kind === "allow_once");
      return { outcome: { outcome: "selected", optionId: option.optionId } };
    })
    .onNotification(methods.client.session.update, ({ params }) => {
      seen.updates.push(params.update);
      seen.listener();
    });
  try {
    await app.connectWith(
      ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)),
      async (agentSide) => {
        const answer = await agentSide.request(methods.agent.initialize, {
          protocolVersion: PROTOCOL_VERSION,
          capabilities: {},
          info: { name: "sdk-client", version: "1" },
        });
        await op(agentSide, seen, answer);
      },
    );
  } finally {
    agent.kill();
  }
}

async function passed(seen, fits) {
  while (!fits())
    await new Promise((resolve) => {
      seen.listener = resolve;
    });
  seen.listener = () => {};
}
const ends = (seen) => seen.updates.filter((one) => one.state === "idle" && one.stopReason);
const text = (seen) =>
  seen.updates
    .filter((one) => one.sessionUpdate === "agent_message_chunk")
    .map((one) => one.content.text ?? "")
    .join("");

/** Send a prompt and wait until the agent is idle; return the answer to the prompt and the stop reason. */
async function turn(agent, seen, sessionId, words, works = () => {}) {
  const before = ends(seen).length;
  const prompt = [{ type: "text", text: words }];
  const { messageId } = await agent.request(methods.agent.session.prompt, { sessionId, prompt });
  await works();
  await passed(seen, () => ends(seen).length > before);
  return { messageId, stop: ends(seen).at(-1).stopReason };
}

let session;
await connected(async (agent, seen, answer) => {
  session = (await agent.request(methods.agent.session.new, { cwd })).sessionId;
  const first = await turn(agent, seen, session, "hello");
  const echo = seen.updates.find((one) => one.sessionUpdate === "user_message");
  const isSame = echo.messageId === first.messageId;
  tell("answered", { version: answer.protocolVersion, stop: first.stop, text: text(seen), isSame });
  const second = await turn(agent, seen, session, "edit");
  const difference = seen.updates.flatMap((one) => one.content ?? []).find((one) => one.type === "diff");
  tell("edited", { stop: second.stop, asked: seen.asked.length, operation: difference.changes[0].operation });
  const third = await turn(agent, seen, session, "sleep", async () => {
    await passed(seen, () => seen.updates.filter((one) => one.status === "in_progress").length > 2);
    agent.notify(methods.agent.session.cancel, { sessionId: session });
  });
  tell("cancelled", { stop: third.stop });
});
await connected(async (agent, seen) => {
  const replayFrom = { type: "start" };
  await agent.request(methods.agent.session.resume, { sessionId: session, cwd, replayFrom });
  await passed(seen, () => seen.updates.some((one) => one.sessionUpdate === "state_update"));
  const prompts = seen.updates.filter((one) => one.sessionUpdate === "user_message");
  tell("replayed", { prompts: prompts.map((one) => one.content[0].text), state: seen.updates.at(-1).state });
  const last = await turn(agent, seen, session, "again");
  tell("resumed", { stop: last.stop, text: text(seen) });
});
process.exit(0);
