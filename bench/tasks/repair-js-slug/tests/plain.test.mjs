import assert from "node:assert/strict";
import { slug } from "../src/slug.mjs";

assert.equal(slug("Two words"), "two-words");
