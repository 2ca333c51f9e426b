import assert from "node:assert/strict";
import { Bus } from "../src/bus.mjs";

const bus = new Bus();
const seen = [];
bus.on("a", () => {
  bus.on("a", () => seen.push("late"));
  second();
});
const second = bus.on("a", () => seen.push("second"));
bus.emit("a");
assert.deepEqual(seen, ["second"]);
