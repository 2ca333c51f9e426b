// The panel, as its user sees and uses it.
import type { FrameLocator, Locator } from "playwright-core";
import { overEdge } from "../../test/webview/over-edge.ts";
import { until } from "./until.ts";

export class Panel {
  readonly frame: FrameLocator;

  constructor(frame: FrameLocator) {
    this.frame = frame;
  }

  get composer(): Locator {
    return this.frame.getByRole("combobox", { name: "Prompt" });
  }

  /** Types words and sends them. */
  async say(words: string): Promise<void> {
    await this.composer.fill(words);
    await this.composer.press("Enter");
  }

  /** A change that waits for a verdict, counted from 1. */
  hunk(number: number): Locator {
    return this.frame.getByRole("group", { name: /^Change at line/ }).nth(number - 1);
  }

  /** The card that asks whether something may be done. */
  get permission(): Locator {
    return this.frame.getByRole("alertdialog");
  }

  /** Gives the permission that is asked for, once. */
  async allow(): Promise<void> {
    await this.permission.getByRole("button", { name: "Allow once" }).click();
    await this.permission.waitFor({ state: "hidden" });
  }

  button(name: string | RegExp): Locator {
    return this.frame.getByRole("button", { name });
  }

  text(words: string | RegExp): Locator {
    return this.frame.getByText(words).first();
  }

  /** What stands in the transcript, as far as it is drawn. */
  async transcript(): Promise<string> {
    // biome-ignore lint/performance/useDomNodeTextContent: words of neighbours are joined without the layout.
    return this.frame.locator("#app").innerText();
  }

  /** Waits until the transcript fits, and gives it. */
  async until(what: string, fits: (transcript: string) => boolean): Promise<string> {
    return until(what, async () => {
      const text = await this.transcript();
      return fits(text) && text;
    });
  }

  /** Looks at the transcript again and again until some words are there; gives what was seen, each text once. */
  async watch(end: string): Promise<string[]> {
    const seen: string[] = [];
    await this.until(`"${end}" in the panel`, (text) => {
      if (seen.at(-1) !== text) seen.push(text);
      return text.includes(end);
    });
    return seen;
  }

  /** What the right edge of the panel cuts off, each by the beginning of its HTML. */
  async overEdge(): Promise<string[]> {
    return this.frame.locator("#app").evaluate(overEdge);
  }

  /** What axe finds that is serious or worse, as one line for each place. */
  async faults(axe: string): Promise<string[]> {
    const frame = await (await this.frame.locator("#app").elementHandle())?.ownerFrame();
    if (!frame) throw new Error("the panel is closed");
    await frame.evaluate(axe);
    return frame.evaluate(async () => {
      const { axe } = globalThis as unknown as { axe: { run(): Promise<{ violations: Violation[] }> } };
      interface Violation {
        id: string;
        impact: string;
        nodes: { html: string; failureSummary: string }[];
      }
      // The page lets the side bar shine through, which axe takes for white.
      document.body.style.setProperty("background", "var(--vscode-sideBar-background)");
      const { violations } = await axe.run();
      return violations
        .filter((one) => one.impact === "serious" || one.impact === "critical")
        .flatMap((one) => one.nodes.map((node) => `${one.id}: ${node.html} ${node.failureSummary}`));
    });
  }
}
