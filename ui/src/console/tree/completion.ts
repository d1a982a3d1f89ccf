/** What a query can go on with at the place where one types. */
import type { Vocabulary } from "./model";

export interface Offer {
  /** What stands in the list. */
  label: string;
  kind: string;
  /** The query with it, and where the caret goes. */
  query: string;
  caret: number;
}

const MOST = 8;
const FACTS: [string, string][] = [
  ["@type", "what kind of node"],
  ["@tag", "a tag"],
  ["@name", "its name"],
  ["@id", "its id"],
  ["@depth", "how deep it is"],
  ["@childCount", "how many children"],
];

export function offersAt(text: string, caret: number, words: Vocabulary): Offer[] {
  const before = text.slice(0, caret);
  const [, value] = /@(type|tag)\s*=\s*("?[^\s"()|\]]*)$/.exec(before)?.slice(1) ?? [];
  const kind = /@(type|tag)\s*=\s*"?[^\s"()|\]]*$/.exec(before)?.[1];
  if (kind !== undefined && value !== undefined) {
    const pool = kind === "type" ? words.types : words.tags;
    return filled(
      text,
      caret,
      value.replace(/^"/, ""),
      value.length,
      pool.map((name) => [name, kind, quoted(name)]),
    );
  }
  const word = /[@\w.]+$/.exec(before)?.[0] ?? "";
  if (word === "") return [];
  const candidates: [string, string, string][] = [
    ...FACTS.map(([name, about]): [string, string, string] => [name, about, `${name} = `]),
    ...words.properties.map((name): [string, string, string] => [name, "property", `${name} `]),
    ...words.types.map((name): [string, string, string] => [name, "type", `@type = ${quoted(name)}`]),
    ...words.tags.map((name): [string, string, string] => [name, "tag", `@tag = ${quoted(name)}`]),
  ];
  return filled(text, caret, word, word.length, candidates);
}

function filled(
  text: string,
  caret: number,
  word: string,
  length: number,
  candidates: [string, string, string][],
): Offer[] {
  const low = word.toLowerCase();
  return candidates
    .filter(([name]) => name.toLowerCase().startsWith(low) && name !== word)
    .slice(0, MOST)
    .map(([label, kind, insert]) => {
      const head = text.slice(0, caret - length) + insert;
      return { label, kind, query: head + text.slice(caret), caret: head.length };
    });
}

function quoted(text: string): string {
  return /^[\w.-]+$/.test(text) ? text : JSON.stringify(text);
}
