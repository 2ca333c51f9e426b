// How long the page's main thread was kept busy by one task, in its own processor time: a clock measures the machine as well.
import type { Browser, Page } from "playwright-core";

const CATEGORIES = ["toplevel", "devtools.timeline", "disabled-by-default-devtools.timeline"];

interface TraceEvent {
  name: string;
  pid: number;
  tid: number;
  tdur?: number;
  args: { name?: string };
}

/** Plays something, and gives the longest task meanwhile, in milliseconds. */
export async function longestTaskMs(
  browser: Browser,
  page: Page,
  play: () => Promise<void>,
): Promise<number> {
  await browser.startTracing(page, { categories: CATEGORIES });
  let recorded: Buffer;
  try {
    await play();
  } finally {
    recorded = await browser.stopTracing();
  }
  const trace = JSON.parse(recorded.toString()) as { traceEvents: TraceEvent[] };
  const thread = ({ pid, tid }: TraceEvent) => `${pid}:${tid}`;
  const mains = new Set(
    trace.traceEvents
      .filter((one) => one.name === "thread_name" && one.args.name === "CrRendererMain")
      .map(thread),
  );
  const tasks = trace.traceEvents.filter(
    (one) => one.name.endsWith("RunTask") && mains.has(thread(one)) && one.tdur !== undefined,
  );
  if (tasks.length === 0) throw new Error("the trace has no tasks");
  return Math.max(...tasks.map((one) => one.tdur ?? 0)) / 1000;
}
