// Waiting for what can be seen, never for time to pass.
import { setTimeout as wait } from "node:timers/promises";

const LOOK_MS = 50;
/** Long enough for a machine that has much else to do; what has a limit of its own is held to that. */
export const PATIENCE_MS = 40_000;

/** Asks again and again until the answer is neither undefined nor false, and gives it. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false> | T | undefined | false,
  { patience_ms = PATIENCE_MS }: { patience_ms?: number } = {},
): Promise<T> {
  const end = performance.now() + patience_ms;
  for (;;) {
    const found = await ask();
    if (found !== undefined && found !== false) return found;
    if (performance.now() > end) throw new Error(`${what}: not within ${patience_ms / 1000} s`);
    await wait(LOOK_MS);
  }
}
