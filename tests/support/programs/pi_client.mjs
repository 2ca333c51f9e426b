// Drives an agent with pi's own client: prompt, answer, abort, statistics. Prints what it saw as JSON.
// Arguments: pi's entry point, the JavaScript file that starts the agent, the workspace.
const [entry, cliPath, cwd] = process.argv.slice(2);
const { RpcClient } = await import(entry);
const client = new RpcClient({ cliPath, cwd, provider: "lab", model: "m", args: ["--in-process"] });
await client.start();
try {
  const events = await client.promptAndWait("go");
  const text = await client.getLastAssistantText();
  const begun = new Promise((resolve) => {
    client.onEvent((event) => {
      if (event.assistantMessageEvent?.type === "text_delta") resolve();
    });
  });
  const disposition = await client.prompt("again");
  await begun;
  const settled = client.waitForIdle();
  await client.abort();
  await settled;
  const state = await client.getState();
  const stats = await client.getSessionStats();
  const models = await client.getAvailableModels();
  const types = [...new Set(events.map((event) => event.type))];
  console.log(JSON.stringify({ types, text, disposition, state, stats, models }));
} finally {
  await client.stop();
}
