/** The state of a generated form: one JSON value that both the fields and the raw text edit. */
import { computed, type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { isObject, type Json, type JsonObject } from "./json";
import { JsonError, parseJson } from "./json-parse";
import { printJson } from "./json-print";
import { seedArguments } from "./seed";
import { type Problem, validate } from "./validate";

export type Problems = ReadonlyMap<string, readonly string[]>;

export class FormDraft {
  readonly value: Signal<JsonObject>;
  readonly raw: Signal<string>;
  /** Why the raw text is not an arguments object; the fields keep the last good value. */
  readonly rawError: Signal<string | null> = signal(null);
  readonly submitted = signal(false);
  /** Which alternative the user picked, by path. */
  readonly picks: Signal<ReadonlyMap<string, number>> = signal(new Map());
  /** All problems, shown or not. */
  readonly problems: ReadonlySignal<Problems>;
  /** The problems worth showing: of fields that were left, or all once a run was tried. */
  readonly shown: ReadonlySignal<Problems>;

  private readonly touched: Signal<ReadonlySet<string>> = signal(new Set());
  private readonly unparsed: Signal<ReadonlyMap<string, string>> = signal(new Map());
  private readonly fromServer: Signal<Problem[]> = signal([]);

  constructor(
    readonly schema: JsonObject,
    initial: JsonObject = seedArguments(schema),
  ) {
    this.value = signal(initial);
    this.raw = signal(printJson(initial, 2));
    this.problems = computed(() => {
      const unparsed = [...this.unparsed.value].map(([path, message]) => ({ path, message }));
      return byPath([...validate(schema, this.value.value, schema), ...unparsed]);
    });
    this.shown = computed(() => {
      const local = [...this.problems.value].filter(([path]) => this.submitted.value || this.touched.value.has(path));
      return new Map([...local, ...byPath(this.fromServer.value)]);
    });
  }

  /** Takes a value from the fields. */
  edit(value: Json | undefined): void {
    this.value.value = isObject(value) ? value : seedArguments(this.schema);
    this.raw.value = printJson(this.value.value, 2);
    this.rawError.value = null;
    this.fromServer.value = [];
  }

  /** Takes a whole new value, as from an example, a link or the history. */
  load(value: JsonObject): void {
    this.forget();
    this.edit(value);
  }

  reset(): void {
    this.load(seedArguments(this.schema));
  }

  editRaw(text: string): void {
    this.raw.value = text;
    try {
      const value = parseJson(text);
      if (!isObject(value)) throw new TypeError("The arguments must be one JSON object: { … }");
      this.forget();
      this.value.value = value;
      this.rawError.value = null;
    } catch (error) {
      this.rawError.value = error instanceof JsonError || error instanceof TypeError ? error.message : String(error);
    }
  }

  touch(path: string): void {
    if (!this.touched.value.has(path)) this.touched.value = new Set([...this.touched.value, path]);
  }

  pick(path: string, index: number): void {
    this.picks.value = new Map([...this.picks.value, [path, index]]);
  }

  /** A field that holds text which is not yet JSON reports it here. */
  setUnparsed(path: string, message: string | null): void {
    if ((this.unparsed.value.get(path) ?? null) === message) return;
    const next = new Map(this.unparsed.value);
    if (message === null) next.delete(path);
    else next.set(path, message);
    this.unparsed.value = next;
  }

  /** Whether the value may be sent; from now on every problem shows. */
  submit(): boolean {
    this.submitted.value = true;
    return this.rawError.value === null && this.problems.value.size === 0;
  }

  /** Whether the user may insist on sending: the server then judges the value. */
  get sendable(): boolean {
    return this.rawError.value === null && this.unparsed.value.size === 0;
  }

  setServerProblems(problems: Problem[]): void {
    this.fromServer.value = problems;
  }

  private forget(): void {
    this.touched.value = new Set();
    this.unparsed.value = new Map();
    this.picks.value = new Map();
    this.fromServer.value = [];
    this.submitted.value = false;
  }
}

function byPath(problems: Problem[]): Problems {
  const map = new Map<string, string[]>();
  for (const { path, message } of problems) {
    const messages = map.get(path) ?? [];
    if (!messages.includes(message)) messages.push(message);
    map.set(path, messages);
  }
  return map;
}

/** Reads “- width: must be positive (code)” lines of a validation answer into problems by field. */
export function serverProblems(error: string, args: JsonObject): Problem[] {
  return error.split("\n").flatMap((line) => {
    const match = /^\s*-\s+([^:\s]+):\s+(.+)$/.exec(line);
    if (!match) return [];
    const steps = (match[1] as string)
      .replace(/\[(\d+)\]/g, ".$1")
      .split(/[./]/)
      .filter(Boolean);
    if (steps.length > 1 && steps[0] !== undefined && !Object.hasOwn(args, steps[0])) return [];
    return [{ path: steps.map((step) => `/${step.replace(/~/g, "~0")}`).join(""), message: match[2] as string }];
  });
}
