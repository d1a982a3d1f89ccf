import type { ComponentType } from "preact";
import type { FormDraft } from "../../lib/draft";
import type { Json } from "../../lib/json";
import type { Field } from "../../lib/schema";

/** One place in a form: which part of the value it edits, and how the schema describes it. */
export interface Slot {
  draft: FormDraft;
  /** Sets this form's ids apart from another's on the page. */
  scope: string;
  path: string;
  name: string;
  schema: Json | undefined;
  required: boolean;
  /** A row of a list: always there, removed with its row. */
  row: boolean;
  depth: number;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  /** Shows a field within this one; fields nest without importing each other. */
  Field: ComponentType<{ slot: Slot }>;
}

/** What a control of one kind gets: its slot, its field, and the attributes that tie it to label and message. */
export interface ControlProps {
  slot: Slot;
  field: Field;
  id: string;
  aria: ControlAria;
}

export interface ControlAria {
  "aria-describedby": string | undefined;
  "aria-invalid": "true" | undefined;
  "aria-required": "true" | undefined;
}

export function idOf(slot: Slot, part = ""): string {
  return `${slot.scope}${encodeURIComponent(slot.path.toWellFormed()).replace(/'/g, "%27")}${part}`;
}
