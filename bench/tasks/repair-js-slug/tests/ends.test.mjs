import assert from "node:assert/strict";
import { slug } from "../src/slug.mjs";

assert.equal(slug("Hello!"), "hello");
assert.equal(slug(" -- a"), "a");
