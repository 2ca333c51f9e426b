import assert from "node:assert/strict";
import { slug } from "../src/slug.mjs";

assert.equal(slug("Übergröße"), "ubergrosse");
assert.equal(slug("Crème brûlée"), "creme-brulee");
