import assert from "node:assert/strict";
import { test } from "node:test";
import { Parser } from "../../src/web/sse.js";

/** Gives the events and times of a stream that comes in these pieces. */
function read(...pieces: string[]): (string | number)[] {
  const heard: (string | number)[] = [];
  const parser = new Parser({
    event: (data) => heard.push(data),
    retry: (ms) => heard.push(ms),
    sign: () => undefined,
  });
  for (const piece of pieces) parser.take(piece);
  return heard;
}

test("events are read however they are cut into pieces", () => {
  const whole =
    'retry: 1000\n\n: alive\n\nevent: snapshot\nid: e.1\ndata: {"a":\ndata:  1}\n\ndata: b\r\n\r\n';
  const expected = [1000, '{"a":\n 1}', "b"];
  assert.deepEqual(read(whole), expected);
  assert.deepEqual(read(...whole), expected);
});

test("an event that the end cuts off is dropped, and one without data is none", () => {
  assert.deepEqual(read("id: e.1\n\ndata: a\n"), []);
});
