/** Pages of the documentation, made fit for the console. */
import { hashOf } from "./route";

/** The text with links between pages as addresses of the console; what only a checkout has stays as words. */
export function linked(text: string, page: string, known: ReadonlySet<string>): string {
  return text.replace(
    /(!?)\[([^\]\n]*)\]\((?!https?:)([\w./-]*)(?:#([\w-]+))?\)(?:\{[^}\n]*\})?/g,
    (_, picture: string, words: string, file: string, place: string | undefined) => {
      const name = file === "" ? page : (/^([\w-]+)\.md$/.exec(file)?.[1] ?? "");
      if (picture !== "") return "";
      return known.has(name) ? `[${words}](${hashOf("docs", name, place ?? null)})` : words;
    },
  );
}

/** A heading as links name it. */
export function slug(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\w\s-]/g, "")
    .trim()
    .replace(/[\s-]+/g, "-");
}
