/** The formats worth a hint while typing; all others are left to the server. */
const FORMATS: Record<string, [(text: string) => boolean, string]> = {
  date: [isDate, "Must be a date like 2026-01-31"],
  "date-time": [isDateTime, "Must be a date and time like 2026-01-31T09:30:00Z"],
  time: [(text) => /^\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/i.test(text), "Must be a time like 09:30:00"],
  email: [(text) => /^[^\s@]+@[^\s@]+$/.test(text), "Must be an e-mail address"],
  uri: [(text) => /^[a-z][a-z\d+.-]*:\S+$/i.test(text), "Must be an address with a scheme, like https://example.org"],
  uuid: [(text) => /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i.test(text), "Must be a UUID"],
};

export function formatProblem(format: string | undefined, text: string): string | null {
  if (format === undefined || !Object.hasOwn(FORMATS, format)) return null;
  const [fits, message] = FORMATS[format] as [(text: string) => boolean, string];
  return fits(text) ? null : message;
}

function isDate(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text));
}

function isDateTime(text: string): boolean {
  return (
    /^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(:\d{2}(\.\d+)?)?(Z|[+-]\d{2}:?\d{2})?$/i.test(text) && isDate(text.slice(0, 10))
  );
}
