/** Matches a schema's pattern only when that cannot take long: a page has no way to stop a regular expression. */

const MOST_STEPS = 5_000_000;

/** Whether the text matches; a pattern this engine cannot or should not run counts as matched, for the server to check. */
export function checkPattern(pattern: string, text: string): boolean {
  if (worstSteps(pattern, text.length) > MOST_STEPS) return true;
  const expression = compile(pattern);
  return expression === null || expression.test(text);
}

function compile(pattern: string): RegExp | null {
  for (const flags of ["u", ""]) {
    try {
      return new RegExp(pattern, flags);
    } catch {
      // Python's and ECMAScript's dialects differ; try the laxer reading.
    }
  }
  return null;
}

const TOKEN =
  /\\[1-9]|\\.|\[(?:\\.|[^\]\\])*\]|\((?:\?(?:[:=!]|<[=!]|P?<\w+>))?|\)|\||[*+?]\??|\{(\d+)(,(\d*))?\}\??|./gsu;

/**
 * An upper bound on backtracking: every choice multiplies it, by the text's length where the choice is open.
 * A repeated group with a choice inside is exponential, as is a back reference.
 */
export function worstSteps(pattern: string, length: number): number {
  /** For each open group, and the pattern itself: whether it holds a choice. */
  const choices = [false];
  let closed: boolean | null = null;
  let steps = length + 1;
  for (const [token, from, range, to] of pattern.matchAll(TOKEN)) {
    if (/^\\[1-9]/.test(token)) return Number.POSITIVE_INFINITY;
    const within = choices.length - 1;
    const inside: boolean | null = closed;
    closed = null;
    if (token.startsWith("(")) choices.push(false);
    else if (token === ")" && within > 0) {
      closed = choices.pop() as boolean;
      choices[within - 1] ||= closed;
    } else if (token === "|") {
      steps *= 2;
      choices[within] = true;
    } else if (/^(?:[*+?]|\{\d)/.test(token)) {
      const optional = token.startsWith("?");
      const fixed = from !== undefined && range === undefined;
      if (inside && !optional) return Number.POSITIVE_INFINITY;
      if (fixed) continue;
      steps *= optional ? 2 : to ? Math.max(1, Number(to) - Number(from) + 1) : length + 1;
      choices[within] = true;
    }
  }
  return steps;
}
