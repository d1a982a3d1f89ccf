const LONGEST = 2_000;

/** A repeated group that itself repeats or branches can take exponential time; the server checks those. */
const RISKY = /\((?:[^()\\]|\\.)*(?:[*+}|]|\{\d)(?:[^()\\]|\\.)*\)\s*[*+{]|\)\)+[*+{]|\\[1-9]/;

/** Whether the text matches; a pattern this engine cannot or should not run counts as matched. */
export function checkPattern(pattern: string, text: string): boolean {
  if (text.length > LONGEST || pattern.length > LONGEST || RISKY.test(pattern)) return true;
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
