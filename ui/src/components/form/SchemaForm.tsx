import type { FormDraft } from "../../lib/draft";
import { FieldView } from "./FieldView";
import { ObjectFields } from "./ObjectFields";

/** A form for the object a schema describes. */
export function SchemaForm({ draft, scope }: { draft: FormDraft; scope: string }) {
  const value = draft.value.value;
  return (
    <div class="fields">
      <ObjectFields
        slot={{
          draft,
          scope,
          path: "",
          name: "arguments",
          schema: draft.schema,
          required: true,
          row: false,
          depth: 0,
          value,
          onChange: (next) => draft.edit(next),
          Field: FieldView,
        }}
      />
    </div>
  );
}
