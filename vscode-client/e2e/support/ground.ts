// Where a story plays: folders and an environment of its own, with nothing of the developer's.
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { run } from "./processes.ts";
import { Provider } from "./provider.ts";

export const REPOSITORY = resolve(import.meta.dirname, "../../..");
export const PYTHON = process.env["TILLER_E2E_PYTHON"] ?? join(REPOSITORY, ".venv/bin/python");
/** Where pictures and logs stay for people to look at. */
export const ARTEFACTS = process.env["TILLER_E2E_ARTEFACTS"] ?? join(REPOSITORY, "build/e2e-vscode");
export const VSIX = process.env["TILLER_E2E_VSIX"] ?? join(REPOSITORY, "build/tiller-linux-x64-0.1.0.vsix");
export const TILLER = join(dirname(PYTHON), "tiller");

export interface Ground {
  /** Everything lies below it. Short, because a socket's path is. */
  base: string;
  /** The workspace folder. */
  folder: string;
  home: string;
  env: NodeJS.ProcessEnv;
  provider: Provider;
}

export interface Soil {
  /** Files of the workspace. */
  files?: Record<string, string>;
  /** Tiller's own settings. */
  settings?: Record<string, unknown>;
  /** Sources of the user's extensions of Tiller, by the name of the file. */
  extensions?: Record<string, string>;
  /**
   * A user who has a model is one for whom the scripted one is chosen; another still has to sign in at `STRANGER`;
   * a new one has an empty home, and `OLLAMA` runs on the machine.
   */
  user?: "has a model" | "has none" | "is new";
}

/** A provider of the catalogue that wants a key, and of whom the scripted model takes the place. */
export const STRANGER = {
  id: "groq",
  name: "Groq",
  model: "GPT OSS 20B",
  modelId: "openai/gpt-oss-20b",
} as const;

/** The scripted model as Ollama serves it, at Ollama's own port. */
export const OLLAMA = { port: 11_434, models: ["nomic-embed-text:latest", "qwen3:8b"] } as const;

/** Makes the ground, with the files of the workspace, and with the scripted model as the only one that can be reached. */
export async function makeGround({
  files = {},
  settings = {},
  extensions = {},
  user = "has a model",
}: Soil): Promise<Ground> {
  const base = await mkdtemp(join(tmpdir(), "tl-"));
  const [folder, home] = [join(base, "demo"), join(base, "h")];
  await Promise.all([folder, home].map((path) => mkdir(path)));
  const isNew = user === "is new";
  const provider = await Provider.start(PYTHON, REPOSITORY, isNew ? asOllama() : []);
  const env = environment(home, isNew ? {} : foldersOf(base));
  const ground = { base, folder, home, env, provider };
  if (!isNew) await configure(ground, user === "has none" ? strange(provider) : known(provider), settings);
  await Promise.all(Object.entries(files).map(([name, text]) => put(ground, name, text)));
  for (const [name, text] of Object.entries(extensions)) {
    await mkdir(join(base, "c", "extensions"), { recursive: true });
    await writeFile(join(base, "c", "extensions", name), text);
  }
  return ground;
}

/** Writes a file of the workspace. */
export async function put(ground: Ground, name: string, text: string): Promise<void> {
  const path = join(ground.folder, name);
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** Makes the folder a repository, with all that lies there committed. */
export async function commit(ground: Ground): Promise<void> {
  const who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"];
  for (const words of [
    ["init", "-q", "-b", "main"],
    ["add", "."],
    [...who, "commit", "-q", "-m", "Begin"],
  ])
    await run(["git", ...words], { env: ground.env, cwd: ground.folder });
}

/** Keeps what the extension and the server wrote down. */
export async function keepLogs(ground: Ground, name: string): Promise<void> {
  const all = await readdir(ground.base, { recursive: true });
  for (const found of all.filter(
    (one) => /tiller[^/]*\.log$/i.test(one) || /exthost\d*\/remoteexthost\.log$/.test(one),
  )) {
    const text = await readFile(join(ground.base, found), "utf8");
    await appendFile(join(ARTEFACTS, `${name}.log`), `--- ${found}\n${text}\n`);
  }
}

/** Ends the daemon and removes everything. */
export async function leave(ground: Ground): Promise<void> {
  ground.provider.stop();
  await run([TILLER, "daemon", "stop"], { env: ground.env, cwd: ground.base }).catch(() => undefined);
  await rm(ground.base, { recursive: true, force: true });
}

interface Models {
  providers: Record<string, unknown>;
  chosen: Record<string, unknown>;
}

function known(provider: Provider): Models {
  const model = { id: "m", name: "Lab model", contextWindow: 32_000, maxTokens: 4096, reasoning: true };
  const lab = {
    baseUrl: `${provider.origin}/v1`,
    api: "openai-completions",
    apiKey: "x",
    models: [
      { ...model, input: ["text", "image"], cost: { input: 3, output: 15, cacheRead: 0, cacheWrite: 0 } },
    ],
  };
  return { providers: { lab }, chosen: { defaultProvider: "lab", defaultModel: "m" } };
}

function strange(provider: Provider): Models {
  return { providers: { [STRANGER.id]: { baseUrl: `${provider.origin}/v1` } }, chosen: {} };
}

async function configure(
  ground: Ground,
  { providers, chosen }: Models,
  settings: Record<string, unknown>,
): Promise<void> {
  const folder = join(ground.base, "c");
  await mkdir(folder, { mode: 0o700 });
  const own = {
    ...chosen,
    defaultProjectTrust: "always",
    // The scripts of the tests have no answer to a request for a title.
    titles: "off",
    steer: { graceS: 0 },
    ...settings,
  };
  await writeFile(join(folder, "models.json"), JSON.stringify({ providers }));
  await writeFile(join(folder, "settings.json"), JSON.stringify(own));
}

function asOllama(): string[] {
  return ["--port", String(OLLAMA.port), ...OLLAMA.models.flatMap((name) => ["--model", name])];
}

function foldersOf(base: string): NodeJS.ProcessEnv {
  return {
    TILLER_CONFIG_DIR: join(base, "c"),
    TILLER_DATA_DIR: join(base, "d"),
    TILLER_RUNTIME_DIR: join(base, "r"),
  };
}

function environment(home: string, folders: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const kept = ["PATH", "LANG", "LC_ALL", "TMPDIR"] as const;
  const env: NodeJS.ProcessEnv = {
    HOME: home,
    ...folders,
    GIT_CONFIG_GLOBAL: "/dev/null",
    GIT_CONFIG_NOSYSTEM: "1",
  };
  for (const name of kept) if (process.env[name] !== undefined) env[name] = process.env[name];
  return env;
}
