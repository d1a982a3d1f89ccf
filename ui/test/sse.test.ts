import { expect, test } from "vitest";
import { callEventOf } from "../src/lib/api";
import { printJson } from "../src/lib/json-print";
import { EventParser } from "../src/lib/sse";

const STREAM = '\uFEFFevent: progress\ndata: {"a":1}\n\n: comment\nid: 7\nretry: 5\n\ndata: one\r\ndata: two\r\n\r\nevent:x\rdata:y\r\rdata\n\nevent: result\ndata: no end';

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

test("call events are read and others ignored", () => {
  expect(callEventOf({ event: "progress", data: '{"progress":1,"total":null,"message":null}' })).toEqual({ type: "progress", progress: { progress: 1, total: null, message: null } });
  expect(callEventOf({ event: "error", data: '{"error":"no","status":400}' })).toEqual({ type: "error", error: "no", status: 400 });
  const result = callEventOf({ event: "result", data: '{"result":12345678901234567890}' });
  expect(result?.type === "result" && printJson(result.result)).toBe("12345678901234567890");
  expect(callEventOf({ event: "question", data: '{"id":"q","message":"?","schema":null}' })).toEqual({ type: "question", question: { id: "q", message: "?", schema: null } });
  expect(callEventOf({ event: "result", data: "broken" })).toMatchObject({ type: "error" });
  expect(callEventOf({ event: "message", data: "{}" })).toBeNull();
});
