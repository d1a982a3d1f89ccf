/** What a failed call says: a text, or an error object with a code and facts beside its message. */
import { textIn, tryParse } from "./http";
import { get, isObject, type JsonObject, withKey } from "./json";

export interface ToolFailure {
  message: string;
  /** Empty where the tool gave none. */
  code: string;
  /** Everything else it said; null if nothing. */
  facts: JsonObject | null;
}

export function readFailure(text: string): ToolFailure {
  const answer = text.startsWith("{") ? tryParse(text) : undefined;
  const error = isObject(answer) ? get(answer, "error") : undefined;
  const message = isObject(error) ? textIn(error, "message") : null;
  if (!isObject(error) || message === null) return { message: text, code: "", facts: null };
  const facts = withKey(error, "message", undefined);
  return { message, code: textIn(error, "code") ?? "", facts: Object.keys(facts).length > 0 ? facts : null };
}
