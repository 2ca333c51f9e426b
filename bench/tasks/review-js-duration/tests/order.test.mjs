import assert from "node:assert/strict";
import { sorted } from "../src/duration.mjs";

const entries = [
  { id: 1, at: 30 },
  { id: 2, at: 5 },
  { id: 3, at: 100 },
];
assert.deepEqual(sorted(entries).map((entry) => entry.id), [2, 1, 3]);
