// What the acts of one story share: a ground, a VS Code with the extension, and a window.
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { after, afterEach, before } from "node:test";
import { ARTEFACTS, type Ground, keepLogs, leave, makeGround, type Soil, VSIX } from "./ground.ts";
import type { Window } from "./window.ts";
import { OF_CHECKOUT, Workbench } from "./workbench.ts";

export interface Scene extends Soil {
  /** Settings of VS Code; the server of the checkout is used unless they say otherwise. */
  editor?: (ground: Ground) => Record<string, unknown> | Promise<Record<string, unknown>>;
  trust?: "all" | "asked";
  env?: NodeJS.ProcessEnv;
}

export interface Stage {
  ground: Ground;
  code: Workbench;
  /** The first window, open on the folder. */
  window: Window;
}

/** Builds the stage before the acts of this file, pictures it after an act that fails, and takes it down. */
export function stage(name: string, scene: Scene): Stage {
  const built: Partial<Stage> = {};
  before(async () => {
    for (const log of ["log", "page.log"]) await rm(join(ARTEFACTS, `${name}.${log}`), { force: true });
    const ground = await makeGround(scene);
    built.ground = ground;
    const settings = { ...OF_CHECKOUT, ...(await scene.editor?.(ground)) };
    const { trust = "all", env = {} } = scene;
    built.code = await Workbench.start({ ground, name, vsix: VSIX, settings, trust, env });
    built.window = await built.code.open();
  });
  afterEach(async (context) => {
    if (!("passed" in context) || context.passed) return;
    await built.window?.picture(`failed: ${context.name}`);
  });
  after(async () => {
    await built.code?.close();
    if (built.ground === undefined) return;
    await keepLogs(built.ground, name);
    await leave(built.ground);
  });
  return new Proxy(built as Stage, {
    get(target, key) {
      const found: unknown = Reflect.get(target, key);
      if (found === undefined) throw new Error(`${String(key)} is not there before the first act`);
      return found;
    },
    set: (target, key, value) => Reflect.set(target, key, value),
  });
}
