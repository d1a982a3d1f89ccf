import { get, type JsonObject } from "./json";

export interface Picture {
  mimeType: string;
  /** Base64, checked. */
  data: string;
}

const LARGEST = 20_000_000;

/** The picture an MCP image content holds; null unless the type is a plain bitmap and the data is base64. */
export function pictureOf(value: JsonObject): Picture | null {
  const mimeType = get(value, "mimeType");
  const data = get(value, "data");
  if (typeof mimeType !== "string" || !/^image\/(png|jpeg|gif|webp)$/.test(mimeType) || mimeType.includes("\n"))
    return null;
  if (typeof data !== "string" || data.length === 0 || data.length > LARGEST || !isBase64(data)) return null;
  return { mimeType, data };
}

function isBase64(text: string): boolean {
  if (text.length % 4 !== 0 || /[^A-Za-z0-9+/=]/.test(text)) return false;
  return /^[^=]*={0,2}$/.test(text.slice(-4)) && !text.slice(0, -2).includes("=");
}
