// The address is the command.

import assert from "node:assert/strict";
import test from "node:test";

globalThis.window = { addEventListener() {}, removeEventListener() {} };
const { addressOf, commandOf, pythonOf, readPlace, splitMechanisms } = await import("../../src/separatrix/web/static/js/address.js");

const MAP = {
  command: "map",
  names: ["spike", "softmax,power:beta=4"],
  words: [["a1", "0.5:1.5:64"], ["n", "1e3:1e18:64:log"]],
  options: [["of", "margin"], ["difference", "yes"]],
};

function located(address) {
  return new URL(address, "http://127.0.0.1:1");
}

test("an address is readable", () => {
  assert.equal(addressOf(MAP), "/map/spike/softmax,power:beta=4?a1=0.5:1.5:64&n=1e3:1e18:64:log&--of=margin&--difference=yes");
});

test("an address leads back to its place", () => {
  assert.deepEqual(readPlace(located(addressOf(MAP))), MAP);
  const odd = { command: "verdict", names: ["a b", "é/ü"], words: [["a1", "1&2=3#4"]], options: [] };
  assert.deepEqual(readPlace(located(addressOf(odd))), odd);
});

test("the command has the words of the address", () => {
  assert.equal(
    commandOf(MAP),
    "separatrix map spike softmax,power:beta=4 a1=0.5:1.5:64 n=1e3:1e18:64:log --of margin --difference",
  );
});

test("a command that is pasted into a shell is no more than that command", () => {
  const odd = { command: "verdict", names: ["spike", "softmax"], words: [["a1", "1;rm -rf '~'"]], options: [] };
  assert.equal(commandOf(odd), `separatrix verdict spike softmax 'a1=1;rm -rf '"'"'~'"'"''`);
});

test("Python has the same words", () => {
  assert.equal(
    pythonOf(MAP),
    'sx.map("spike", "softmax,power:beta=4", a1="0.5:1.5:64", n="1e3:1e18:64:log", of="margin", difference=True)',
  );
});

test("parameters of a mechanism stay with it", () => {
  assert.deepEqual(splitMechanisms("softmax,power:beta=4,scale=2, linear"), ["softmax", "power:beta=4,scale=2", "linear"]);
  assert.deepEqual(splitMechanisms("mine:Module:dim=64,heads=2,window:size=8"), ["mine:Module:dim=64,heads=2", "window:size=8"]);
  assert.deepEqual(splitMechanisms(""), []);
});

test("an address that is no text is shown as it is", () => {
  assert.deepEqual(readPlace({ pathname: "/verdict/%E0%A4%A", search: "" }).names, ["%E0%A4%A"]);
});
