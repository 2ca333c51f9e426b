import assert from "node:assert/strict";
import { Bus } from "../src/bus.mjs";

const bus = new Bus();
const seen = [];
bus.on("*", (name, value) => seen.push(`${name}:${value}`));
bus.on("a", (value) => seen.push(value));
bus.emit("a", 1);
assert.deepEqual(seen, [1, "a:1"]);
