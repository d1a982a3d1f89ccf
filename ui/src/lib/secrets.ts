import { isObject, type Json, type JsonObject, objectOf } from "./json";
import { fieldOf, isSecret, itemSchemaAt, propertiesOf } from "./schema";

const DEEPEST = 30;

/** The arguments without the values whose schema calls them secret; for links and history. */
export function withoutSecrets(schema: JsonObject, args: JsonObject): JsonObject {
  const kept = strip(schema, args, schema, 0);
  return isObject(kept) ? kept : objectOf([]);
}

function strip(schema: Json | undefined, value: Json, root: JsonObject, depth: number): Json | undefined {
  if (schema === undefined || depth > DEEPEST) return value;
  const field = fieldOf(schema, root);
  if (isSecret(field.schema)) return undefined;
  const schemas = field.kind === "variants" ? field.variants : [field.schema];
  if (Array.isArray(value)) {
    return value.flatMap(
      (item, index) =>
        stripAll(
          schemas.map((each) => itemSchemaAt(each, index)),
          item,
          root,
          depth,
        ) ?? [],
    );
  }
  if (!isObject(value)) return value;
  return objectOf(
    Object.entries(value).flatMap(([name, item]) => {
      const kept = stripAll(
        schemas.map((each) => propertiesOf(each)[name]),
        item,
        root,
        depth,
      );
      return kept === undefined ? [] : [[name, kept] as const];
    }),
  );
}

/** A value that is secret in any of the alternatives is left out. */
function stripAll(schemas: (Json | undefined)[], value: Json, root: JsonObject, depth: number): Json | undefined {
  return schemas.reduce<Json | undefined>(
    (kept, schema) => (kept === undefined ? undefined : strip(schema, kept, root, depth + 1)),
    value,
  );
}
