// The home of somebody who has used Tiller for a year: thousands of sessions, one of them long, and many files beside it.
import { mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Ground } from "./ground.ts";

export const SESSIONS = 5000;
export const CALLS = 300;
export const LINES_PER_CALL = 66;
export const IGNORED_FILES = 50_000;
const FOLDERS = 500;
const DAY_MS = 86_400_000;
/** Every message of a session is some seconds after the one before. */
const STEP_MS = 5000;
const NO_COST = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
const USAGE = { input: 10, output: 10, cacheRead: 0, cacheWrite: 0, totalTokens: 20, cost: NO_COST };
const FROM = { api: "openai-completions", provider: "lab", model: "m", usage: USAGE };

type Message = Record<string, unknown>;

/** Writes the sessions, the newest of which is long, and a folder of files that Git ignores. */
export async function fillHome(ground: Ground, now_ms: number): Promise<void> {
  const folder = join(ground.base, "d", "sessions", `--${ground.folder.slice(1).replaceAll("/", "-")}--`);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  await inBatches(SESSIONS, (number) => {
    const messages = number === 0 ? longTalk() : shortTalk(number);
    return writeSession(folder, ground.folder, { number, at_ms: now_ms - number * (DAY_MS / 20), messages });
  });
  const modules = join(ground.folder, "node_modules");
  await inBatches(FOLDERS, (number) => mkdir(join(modules, `package-${number}`), { recursive: true }));
  await inBatches(IGNORED_FILES, (number) =>
    writeFile(join(modules, `package-${number % FOLDERS}`, `file-${number}.js`), "export {};\n"),
  );
}

function shortTalk(number: number): Message[] {
  return [user(`Question ${number} about the billing`), answer(`Answer ${number}.`)];
}

function longTalk(): Message[] {
  const lines = (call: number) =>
    Array.from({ length: LINES_PER_CALL }, (_, line) => `call ${call} line ${line} of the log`).join("\n");
  const calls = Array.from({ length: CALLS }, (_, call) => [
    {
      role: "assistant",
      content: [
        { type: "text", text: `Step ${call}: I look at the log.` },
        { type: "toolCall", id: `call_${call}`, name: "bash", arguments: { command: `cat log-${call}.txt` } },
      ],
      ...FROM,
      stopReason: "toolUse",
    },
    {
      role: "toolResult",
      toolCallId: `call_${call}`,
      toolName: "bash",
      content: [{ type: "text", text: lines(call) }],
      isError: false,
    },
  ]);
  return [user("Read every log."), ...calls.flat(), answer("I have read all logs.")];
}

function user(text: string): Message {
  return { role: "user", content: [{ type: "text", text }] };
}

function answer(text: string): Message {
  return { role: "assistant", content: [{ type: "text", text }], ...FROM, stopReason: "stop" };
}

interface Stored {
  number: number;
  at_ms: number;
  messages: Message[];
}

async function writeSession(folder: string, cwd: string, { number, at_ms, messages }: Stored): Promise<void> {
  const id = `01a21d7d-c877-7cae-aca1-${number.toString(16).padStart(12, "0")}`;
  const begun = new Date(at_ms).toISOString();
  const head = { type: "session", version: 3, id, timestamp: begun, cwd };
  const entries = messages.map((message, place) => {
    const timestamp = at_ms + place * STEP_MS;
    return {
      type: "message",
      id: entryId(place),
      parentId: place === 0 ? null : entryId(place - 1),
      timestamp: new Date(timestamp).toISOString(),
      message: { ...message, timestamp },
    };
  });
  const path = join(folder, `${begun.replaceAll(/[:.]/g, "-")}_${id}.jsonl`);
  await writeFile(path, [head, ...entries].map((one) => `${JSON.stringify(one)}\n`).join(""), {
    mode: 0o600,
  });
  await utimes(path, new Date(at_ms), new Date(at_ms));
}

function entryId(place: number): string {
  return (0xa000_0000 + place).toString(16);
}

async function inBatches(count: number, act: (number: number) => Promise<unknown>): Promise<void> {
  const size = 500;
  for (let from = 0; from < count; from += size)
    await Promise.all(Array.from({ length: Math.min(size, count - from) }, (_, place) => act(from + place)));
}
