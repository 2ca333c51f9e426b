// The form of a question that nobody but the user can answer.

import { html, nothing } from "lit";
import type { JsonValue, Question, QuestionLine, QuestionOption } from "../../shared/wire.js";
import type { Panel } from "../panel-context.js";
import { plainText } from "../safe-text.js";
import { may } from "../surface.js";
import { answerQuestion } from "../verbs.js";
import { icon, type View } from "./parts.js";

export function question(panel: Panel, asked: Question): View {
  const busy = panel.state.busy[asked.request] === true;
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    if (event.currentTarget instanceof HTMLFormElement) {
      answerQuestion(panel, asked, answersOf(event.currentTarget, asked.questions));
    }
  };
  return html`<form class="card asks" aria-label="A question of Tiller" data-request=${asked.request} @submit=${submit}>
    <div class="card-title">${icon("comment-discussion")} <span class="grow">Tiller asks you</span></div>
    <fieldset class="plain-set" ?disabled=${!may(panel, "approver")}>${asked.questions.map((line) => lineView(asked, line))}</fieldset>
    ${
      may(panel, "approver")
        ? html`<div class="answers">
            <button type="submit" class="primary" ?disabled=${busy}>Answer</button>
            <button type="button" class="secondary" ?disabled=${busy} @click=${() => answerQuestion(panel, asked, undefined)}>Decline</button>
          </div>`
        : html`<p class="dim why">Answer it in the terminal or the editor: this page only reads.</p>`
    }
  </form>`;
}

function lineView(asked: Question, line: QuestionLine): View {
  const name = `${asked.request}:${line.id}`;
  const words = plainText(line.text);
  if (line.kind === "text") {
    return html`<label class="asked-line"
      ><span>${words}</span>
      <textarea name=${name} rows="2">${typeof line.default === "string" ? line.default : ""}</textarea>
    </label>`;
  }
  const options: readonly QuestionOption[] = line.kind === "confirm" ? CONFIRM : (line.options ?? []);
  const usual: JsonValue | undefined =
    line.kind === "confirm" ? (line.default === false ? "no" : "yes") : line.default;
  return html`<fieldset class="asked-line">
    <legend>${words}</legend>
    ${options.map(
      (option) =>
        html`<label class="option">
          <input type=${Array.isArray(line.default) ? "checkbox" : "radio"} name=${name} value=${option.id} ?checked=${chosen(usual, option.id)} />
          <span>${plainText(option.label)}</span>
          ${option.description ? html`<span class="dim">${plainText(option.description)}</span>` : nothing}
        </label>`,
    )}
  </fieldset>`;
}

const CONFIRM: readonly QuestionOption[] = [
  { id: "yes", label: "Yes" },
  { id: "no", label: "No" },
];

function chosen(usual: JsonValue | undefined, id: string): boolean {
  return Array.isArray(usual) ? usual.includes(id) : usual === id;
}

function answersOf(form: HTMLFormElement, lines: readonly QuestionLine[]): Record<string, JsonValue> {
  const given = new FormData(form);
  const answers: Record<string, JsonValue> = {};
  for (const line of lines) {
    const values = [...given.entries()]
      .filter(([name]) => name.endsWith(`:${line.id}`))
      .map(([, value]) => String(value));
    const [first] = values;
    if (Array.isArray(line.default)) answers[line.id] = values;
    else if (line.kind === "confirm") answers[line.id] = first === "yes";
    else if (first !== undefined) answers[line.id] = first;
  }
  return answers;
}
