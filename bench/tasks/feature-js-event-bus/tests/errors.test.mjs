import assert from "node:assert/strict";
import { Bus } from "../src/bus.mjs";

const bus = new Bus();
const seen = [];
bus.on("a", () => {
  throw new Error("first");
});
bus.on("a", (value) => seen.push(value));
bus.on("a", () => {
  throw new Error("second");
});
assert.throws(
  () => bus.emit("a", 1),
  (error) => error instanceof AggregateError && error.errors.map((one) => one.message).join() === "first,second",
);
assert.deepEqual(seen, [1]);
