/** Finds and groups tools by what the user types. */
export interface Findable {
  name: string;
  description: string;
  tags: readonly string[];
}

/** A stretch of a text that answers the query: [from, to). */
export type Span = readonly [number, number];

export interface Hit<T> {
  item: T;
  /** The parts of the name to highlight. */
  spans: Span[];
}

export interface Group<T> {
  name: string;
  hits: Hit<T>[];
}

/** The items every word of the query is found in; best first when there is a query, else as given. */
export function find<T extends Findable>(items: readonly T[], query: string, tags: ReadonlySet<string>): Hit<T>[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const tagged = items.filter((item) => [...tags].every((tag) => item.tags.includes(tag)));
  if (words.length === 0) return tagged.map((item) => ({ item, spans: [] }));
  return tagged
    .flatMap((item) => {
      const found = words.map((word) => match(item, word));
      const score = found.reduce((sum, each) => sum + each.score, 0);
      return found.every((each) => each.score > 0)
        ? [{ item, score, spans: merge(found.flatMap((each) => each.spans)) }]
        : [];
    })
    .sort((a, b) => b.score - a.score)
    .map(({ item, spans }) => ({ item, spans }));
}

function match(item: Findable, word: string): { score: number; spans: Span[] } {
  const name = item.name.toLowerCase();
  const at = name.indexOf(word);
  if (at >= 0) {
    const whole = at === 0 || /[^a-z0-9]/.test(name[at - 1] as string);
    return { score: whole ? 100 : 80, spans: [[at, at + word.length]] };
  }
  if (item.tags.some((tag) => tag.toLowerCase().includes(word))) return { score: 60, spans: [] };
  if (item.description.toLowerCase().includes(word)) return { score: 40, spans: [] };
  const spans = word.length > 1 ? scattered(name, word) : null;
  return spans ? { score: Math.max(1, 30 - spans.length), spans } : { score: 0, spans: [] };
}

/** The letters of the word in their order, each anywhere in the name. */
function scattered(name: string, word: string): Span[] | null {
  const spans: Span[] = [];
  let from = 0;
  for (const letter of word) {
    const at = name.indexOf(letter, from);
    if (at < 0) return null;
    spans.push([at, at + letter.length]);
    from = at + letter.length;
  }
  return merge(spans);
}

function merge(spans: Span[]): Span[] {
  const merged: [number, number][] = [];
  for (const [from, to] of [...spans].sort((a, b) => a[0] - b[0])) {
    const last = merged.at(-1);
    if (last && from <= last[1]) last[1] = Math.max(last[1], to);
    else merged.push([from, to]);
  }
  return merged;
}

/** Groups by the part of the name before its first dot; names without one come last, under "". */
export function group<T extends Findable>(hits: readonly Hit<T>[]): Group<T>[] {
  const groups = new Map<string, Hit<T>[]>();
  for (const hit of hits) {
    const dot = hit.item.name.indexOf(".");
    const name = dot > 0 ? hit.item.name.slice(0, dot) : "";
    const members = groups.get(name) ?? [];
    members.push(hit);
    groups.set(name, members);
  }
  return [...groups]
    .map(([name, members]) => ({ name, hits: members }))
    .sort((a, b) => Number(a.name === "") - Number(b.name === ""));
}

/** Every tag with how many items carry it, most used first. */
export function countTags(items: readonly Findable[]): [string, number][] {
  const counts = new Map<string, number>();
  for (const item of items) for (const tag of new Set(item.tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
}
