import assert from "node:assert/strict";
import { seconds } from "../src/duration.mjs";

assert.throws(() => seconds("-5m!"), RangeError);
assert.throws(() => seconds("10min"), RangeError);
