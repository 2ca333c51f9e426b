import assert from "node:assert/strict";
import { Bus } from "../src/bus.mjs";

const bus = new Bus();
const seen = [];
const handler = (value) => seen.push(value);
const remove = bus.on("a", handler);
bus.on("a", handler);
remove();
remove();
bus.emit("a", 1);
assert.deepEqual(seen, [1]);
bus.once("b", (value) => seen.push(value));
bus.emit("b", 2);
bus.emit("b", 3);
assert.deepEqual(seen, [1, 2]);
