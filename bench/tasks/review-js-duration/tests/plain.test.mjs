import assert from "node:assert/strict";
import { seconds } from "../src/duration.mjs";

assert.equal(seconds("1h 30m"), 5400);
