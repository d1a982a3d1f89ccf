/** Fake tools for the development server: ordinary ones, awkward ones and hostile ones. */

const hints = (readOnlyHint, destructiveHint, idempotentHint, openWorldHint) => ({
  readOnlyHint,
  destructiveHint,
  idempotentHint,
  openWorldHint,
});
const object = (properties, required = [], more = {}) => ({ type: "object", properties, required, ...more });

function nested(levels) {
  let text = '"bottom"';
  for (let level = 0; level < levels; level += 1) text = `{"next":${text}}`;
  return text;
}

/** A schema of required objects within objects, and of alternatives within alternatives. */
function deepSchema(levels) {
  let inner = { type: "string" };
  let either = { type: "string" };
  for (let level = 0; level < levels; level += 1) {
    inner = object({ next: inner }, ["next"]);
    either = { anyOf: [either, { type: "null" }] };
  }
  return object({ inner, either, many: { enum: Array.from({ length: 5000 }, (_value, index) => `choice ${index}`) } }, [
    "inner",
  ]);
}

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAABgAAAAQCAIAAACDRijCAAADdElEQVR42gXBAaesTBgA4H5JRERERERE9Mr2ybZSxzitbGtd6xgZY4yRkZGRMdZ13B/8PY/jYvAw+BgCDCGGCEOMIcGQYsgw5BgKDCWGCkONocHQYugw9BhGDAjDhGHGsGBw3BW8tfbXS7D+F65ttF7j9ZasfboO2fqVr6hYv8v1Xq1zvT6a9dmur27906/vcf1BK57WdV7JslLHJeCRi0/agNxCMkQExeSekEdKXhl55wQXhJSEVUTURDZEtUR3xPTkM5JfRGAil5m0C7k5LgWP/ufTW0C/QnqP6DOm74SuKWUZ3XKqCnqW9FPRfzW9NPTa0qGj3z19jPQPoniidKZiobvjMvBY67MhYPeQvSKGY8YSJlOmM/bJGRSsLdlQsXvNXg3DLWMdkz3TI/sgBhNrZzYs7O64HDx+9TkK+DPkOOI85irhNuWQ8WvOUcGfJccV5zVXDbcth45fe45G/kQcT5zPXC3cOq4AT9x8cQ/EOxQsEioWn0RcUjFk4pELXAhRCl2J31q0jUCteHWC9EKOwiABk7jN4r6It+Nu4G29vz2CbQ03GW023i7J9pVur2yj+aaK7W+5tdX2XW/vZuPtprvtX7/dxm1GG562bd7MstWOK8GTgy9fgWSh1JGEWA6JfKWSZVLnEgo5lPJVSVZL3Uho5dDJVy/ZKDWSMMlhlq9FMsfdwdu//P0d7Fu4f6L9Gu+PZKfprrO9zndU7D/lLqv9b73fmv3Z7qzbz36/jPs32vG07/P+u+y94yrwFPIVDpQKFUQKxQonSqUKMoVyhQulSgWVQrXCjVKtgk6hXuFRKaRgUmhWeFHKcQ/wjm//IMFxhkcbHc/4EMnxNz2G7PjJD1UcdXncq4PWh2mOa3u8umPrj9/x+EIHno5jPi7LMTuuBk/ffc0C/Qn1EGkca53oNtWvTMtcQ6HvpWaV/tR6aDRute502+vXqCXSMOn7rNmiP457gnfO/imC81943qOTx+dvcn6nJ8vOv/mJipOW56c6v+qTNKdtz6E71/4049mjE0/nOZ+35fxxXAOeefhGBuYSmldkVGzaxLxTozNzyw0ujCnNUBlSm09jUGtYZ357cx+NQAYm85iNXMzFcS149ulbFdhraHFkbWxRYnlqIbPP3KrCXkuLK2trixrLWwudffZWjfaKLJ6snS1aLP8f4Su1cD0yodgAAAAASUVORK5CYII=";
const EVIL = '<img src=x onerror="window.__pwned=1"></script><script>window.__pwned=1</script>';

/** Each tool: what the API says of it, and `run`, which gives a result or drives the stream itself. */
export const TOOLS = [
  {
    name: "image.resize",
    description: "Resize an image to the given dimensions, keeping its proportions unless told otherwise.",
    annotations: hints(false, false, true, false),
    tags: ["image", "media"],
    documentation: `# Resizing images

Scales an image with a **high-quality** filter. Width and height are in *pixels*.

## Filters

| Filter | Speed | Quality |
|---|---|---|
| \`nearest\` | fastest | low |
| \`bilinear\` | fast | medium |
| \`lanczos\` | slow | best |

1. The image is decoded.
2. It is scaled:
   - in linear light
   - with the chosen filter
3. It is encoded again.

> Very large targets are refused; see [the limits](https://example.org/limits).

\`\`\`python
resize(width=800, height=600)
\`\`\`
`,
    examples: [
      {
        title: "Thumbnail",
        description: "A small square preview.",
        inputs: { width: 128, height: 128, filter: "lanczos" },
        output: { width: 128, height: 128, bytes: 6120 },
      },
      {
        title: "Full HD",
        inputs: { width: 1920, height: 1080, keep_ratio: true },
        output: { width: 1920, height: 1080 },
      },
    ],
    inputSchema: object(
      {
        width: { type: "integer", minimum: 1, maximum: 8192, description: "Target width in pixels." },
        height: { type: "integer", minimum: 1, maximum: 8192, description: "Target height in pixels." },
        filter: {
          enum: ["nearest", "bilinear", "lanczos"],
          default: "bilinear",
          description: "How pixels are combined.",
        },
        keep_ratio: { type: "boolean", description: "Fit inside the box instead of stretching." },
        background: {
          anyOf: [{ type: "string", pattern: "^#[0-9a-fA-F]{6}$" }, { type: "null" }],
          default: null,
          description: "Colour behind transparent parts, like #ffffff.",
        },
      },
      ["width", "height"],
    ),
    outputSchema: object({ width: { type: "integer" }, height: { type: "integer" }, bytes: { type: "integer" } }),
    run: (args) => ({
      width: args.width,
      height: args.height,
      filter: args.filter ?? "bilinear",
      bytes: 48213,
      preview: { type: "image", mimeType: "image/png", data: PNG },
    }),
  },
  {
    name: "image.describe",
    description: "Say in words what an image shows.",
    annotations: hints(true, false, true, true),
    tags: ["image", "ai"],
    inputSchema: object({ url: { type: "string", format: "uri" }, language: { type: "string", default: "en" } }, [
      "url",
    ]),
    run: () => ({ caption: "A grove of young birches in morning light. ".repeat(30), confidence: 0.93 }),
  },
  {
    name: "orders.search",
    description: "Find orders by customer, state and date.",
    annotations: hints(true, false, true, false),
    tags: ["orders", "search"],
    inputSchema: object({
      customer: { type: "string", description: "Part of the customer's name." },
      state: {
        type: "array",
        items: { enum: ["open", "paid", "shipped", "returned"] },
        description: "Any of these states.",
        uniqueItems: true,
      },
      since: { type: "string", format: "date" },
      changed_after: { type: "string", format: "date-time" },
      limit: { type: "integer", default: 25, minimum: 1, maximum: 500 },
    }),
    run: () =>
      Array.from({ length: 120 }, (_row, index) => ({
        id: `ord_${1000 + index}`,
        customer: ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Barbara Liskov"][index % 4],
        state: ["open", "paid", "shipped"][index % 3],
        total: Math.round(index * 1731.7) / 100,
        gift: index % 5 === 0,
      })),
  },
  {
    name: "orders.create",
    description: "Create an order with items, an address and a way to pay.",
    annotations: hints(false, false, false, false),
    tags: ["orders", "write"],
    documentation: "Creates one order. The **payment** is one of three forms; pick the one you have.",
    inputSchema: object(
      {
        customer: object(
          {
            name: { type: "string", minLength: 1 },
            email: { type: "string", format: "email" },
            vip: { type: "boolean", default: false },
          },
          ["name", "email"],
        ),
        items: {
          type: "array",
          minItems: 1,
          description: "What to send.",
          items: object(
            {
              sku: { type: "string", pattern: "^[A-Z]{3}-\\d+$" },
              quantity: { type: "integer", minimum: 1, default: 1 },
            },
            ["sku", "quantity"],
          ),
        },
        shipping: { $ref: "#/$defs/Address" },
        payment: {
          oneOf: [{ $ref: "#/$defs/Card" }, { $ref: "#/$defs/Invoice" }, { type: "null" }],
          description: "How the customer pays.",
        },
        labels: { type: "object", additionalProperties: { type: "string" }, description: "Free labels." },
        discount: { type: ["number", "null"], minimum: 0, maximum: 1 },
        notes: { type: "string", maxLength: 500 },
        api_key: { type: "string", format: "password" },
        kind: { const: "order" },
      },
      ["customer", "items", "payment", "kind"],
      {
        additionalProperties: false,
        $defs: {
          Address: object(
            { street: { type: "string" }, city: { type: "string" }, country: { enum: ["DE", "FR", "NL"] } },
            ["street", "city"],
            { description: "Where it goes." },
          ),
          Card: object(
            {
              method: { const: "card" },
              number: { type: "string", minLength: 12 },
              expires: { type: "string", pattern: "^\\d\\d/\\d\\d$" },
            },
            ["method", "number"],
            { title: "Card" },
          ),
          Invoice: object({ method: { const: "invoice" }, days: { type: "integer", default: 30 } }, ["method"], {
            title: "Invoice",
          }),
        },
      },
    ),
    run: (args) => ({ id: "ord_2001", status: "open", received: args }),
  },
  {
    name: "orders.purge",
    description: "Delete all orders older than the given number of days. There is no way back.",
    annotations: hints(false, true, true, false),
    tags: ["orders", "admin"],
    requiresApproval: true,
    inputSchema: object(
      { older_than_days: { type: "integer", minimum: 1 }, dry_run: { type: "boolean", default: true } },
      ["older_than_days", "dry_run"],
    ),
    run: (args) => ({ deleted: args.dry_run ? 0 : 412, matched: 412 }),
  },
  {
    name: "reports.build",
    description: "Build the monthly report; takes a while and tells how far it is.",
    annotations: hints(true, false, true, false),
    tags: ["reports"],
    streaming: true,
    inputSchema: object({
      steps: { type: "integer", default: 10 },
      pause_ms: { type: "integer", default: 200 },
      endless: { type: "boolean", default: false },
    }),
    stream: async (args, { progress, wait }) => {
      const steps = args.steps ?? 10;
      for (let step = 1; step <= steps; step += 1) {
        progress(step, args.endless ? null : steps, `Chapter ${step} of ${steps} written`);
        await wait(args.pause_ms ?? 200);
      }
      return { pages: steps * 12, url: "https://example.org/report.pdf" };
    },
  },
  {
    name: "travel.book",
    description: "Book a trip; asks back when something is missing.",
    annotations: hints(false, false, false, true),
    tags: ["travel"],
    inputSchema: object({ to: { type: "string" } }, ["to"]),
    stream: async (args, { progress, wait, ask }) => {
      progress(1, 3, "Looking for connections");
      await wait(150);
      const seat = { enum: ["first", "second"], description: "Class of travel." };
      const reply = ask(
        `Which class to ${args.to}, and may we contact you?`,
        object({ seat, email: { type: "string", format: "email" } }, ["seat"]),
      );
      if (reply.action !== "accept") throw new Error(`The question was answered with ${reply.action}`);
      return { booked: true, seat: reply.content.seat };
    },
  },
  {
    name: "math.divide",
    description: "Divide one number by another. Fails on zero.",
    annotations: hints(true, false, true, false),
    tags: ["math"],
    inputSchema: object({ dividend: { type: "number" }, divisor: { type: "number" } }, ["dividend", "divisor"]),
    run: (args) => {
      if (args.divisor === 0) throw new Error("ModuleExecuteError: division by zero");
      if (args.divisor === 13)
        throw new Error("Input validation failed:\n- divisor: thirteen is not lucky (value_error)");
      return args.dividend / args.divisor;
    },
  },
  {
    name: "data.deep",
    description: "Returns 5,000 nested objects.",
    annotations: hints(true, false, true, false),
    tags: ["stress"],
    inputSchema: object({}),
    raw: () => nested(5000),
  },
  {
    name: "data.schema",
    description: "Asks for 1,500 nested objects and one of 5,000 choices.",
    annotations: hints(true, false, true, false),
    tags: ["stress"],
    inputSchema: deepSchema(1500),
    run: () => "fine",
  },
  {
    name: "data.rows",
    description: "Returns 10,000 rows, and 10,000 mixed items.",
    annotations: hints(true, false, true, false),
    tags: ["stress"],
    inputSchema: object({}),
    run: () => ({
      rows: Array.from({ length: 10000 }, (_row, index) => ({ index, square: index * index })),
      mixed: Array.from({ length: 10000 }, (_row, index) => (index % 2 ? index : [index])),
    }),
  },
  {
    name: "data.odd",
    description: "Returns what usually breaks viewers.",
    annotations: hints(true, false, true, false),
    tags: ["stress"],
    inputSchema: object({ anything: {}, free: { type: "object" } }),
    raw: () =>
      `{"__proto__":{"polluted":true},"constructor":"c","huge":123456789012345678901234567890,"precise":1.10,"nothing":null,"empty":"","list":[],` +
      `"images":[{"type":"image","mimeType":"image/png\\" onerror=\\"window.__pwned=1","data":"AAAA"},{"type":"image","mimeType":"image/svg+xml","data":"PHN2Zy8+"},` +
      `{"type":"image","mimeType":"image/png","data":"not base64!"},{"type":"image","mimeType":"text/html","data":"AAAA"}],"html":${JSON.stringify(EVIL)},"link":"javascript:alert(1)","type":"div","props":{"dangerouslySetInnerHTML":{"__html":${JSON.stringify(EVIL)}}}}`,
  },
  {
    name: `evil.${EVIL}`,
    description: `${EVIL} javascript:alert(1)`,
    annotations: hints(false, false, false, true),
    tags: [EVIL, "hostile"],
    documentation: `# ${EVIL}\n\n[click](javascript:window.__pwned=1) [data](data:text/html,<script>1</script>) ![x](javascript:1)\n\n<a href="javascript:window.__pwned=1">a</a>\n\n<javascript:alert(1)>\n\n[ok](https://example.org/) ${"*".repeat(2000)}`,
    examples: [{ title: EVIL, description: EVIL, inputs: { [EVIL]: EVIL }, output: EVIL }],
    inputSchema: object(
      {
        [EVIL]: { type: "string", default: EVIL, description: EVIL, title: EVIL },
        __proto__named: { type: "string" },
        choice: { enum: [EVIL, "javascript:alert(1)", 123456789], default: EVIL },
        regex: { type: "string", pattern: "^(a+)+$" },
        broken: { type: "string", pattern: "([" },
        "a/b~c d": { type: "integer" },
        loop: { $ref: "#/$defs/Loop" },
      },
      ["choice"],
      { $defs: { Loop: object({ again: { $ref: "#/$defs/Loop" } }, ["again"]) } },
    ),
    run: (args) => ({ [EVIL]: EVIL, args }),
  },
  {
    name: "ping",
    description: "Answers with pong.",
    annotations: hints(true, false, true, false),
    tags: [],
    inputSchema: object({}),
    run: () => "pong",
  },
];
