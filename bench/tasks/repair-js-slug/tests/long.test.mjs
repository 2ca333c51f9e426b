import assert from "node:assert/strict";
import { slug } from "../src/slug.mjs";

assert.equal(slug("one two three", 9), "one-two");
assert.equal(slug("abcdefghij", 4), "abcd");
