import { expect, test } from "vitest";
import { EventParser } from "../src/lib/sse";

const STREAM =
  '\uFEFFevent: progress\ndata: {"a":1}\n\n: comment\nid: 7\nretry: 5\n\ndata: one\r\ndata: two\r\n\r\nevent:x\rdata:y\r\rdata\n\nevent: result\ndata: no end';

test("messages come out whole however the stream is cut", () => {
  const whole = new EventParser().push(STREAM);
  expect(whole).toEqual([
    { event: "progress", data: '{"a":1}' },
    { event: "message", data: "one\ntwo" },
    { event: "x", data: "y" },
    { event: "message", data: "" },
  ]);
  for (let size = 1; size < 12; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < STREAM.length; at += size) events.push(...parser.push(STREAM.slice(at, at + size)));
    expect(events).toEqual(whole);
  }
});

test("a long line in many pieces is read in linear time", () => {
  const parser = new EventParser();
  const started = performance.now();
  parser.push("data: ");
  for (let piece = 0; piece < 2_000; piece += 1) parser.push("x".repeat(5_000));
  expect(parser.push("\n\n")[0]?.data.length).toBe(10_000_000);
  expect(performance.now() - started).toBeLessThan(3_000);
});
