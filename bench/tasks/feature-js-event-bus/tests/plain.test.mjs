import assert from "node:assert/strict";
import { Bus } from "../src/bus.mjs";

const bus = new Bus();
const seen = [];
bus.on("a", (value) => seen.push(value));
bus.emit("a", 1);
bus.emit("b", 2);
assert.deepEqual(seen, [1]);
