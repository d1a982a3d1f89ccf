import { isNumber, isObject, type Json, numberText } from "../lib/json";
import { LongText } from "./LongText";

/** A value without parts, in its colour; `bare` leaves out the quotes. */
export function Scalar({ value, bare = false }: { value: Json; bare?: boolean }) {
  if (typeof value === "string")
    return value === "" ? <span class="quiet">empty text</span> : <LongText text={value} quoted={!bare} />;
  if (isNumber(value)) return <span class="j-number">{numberText(value)}</span>;
  if (Array.isArray(value)) return <span class="quiet">empty list</span>;
  if (isObject(value)) return <span class="quiet">empty object</span>;
  return <span class="j-word">{String(value)}</span>;
}
