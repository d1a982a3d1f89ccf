/**
 * Drives the built page in Chromium as a person would: behaviour, hostile data, axe in every state.
 * Fails on any console error, CSP violation, axe A/AA finding or request that leaves the server.
 */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { launch } from "./browser.mjs";
import { start } from "./server.mjs";
import { TOOLS } from "./tools.mjs";

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const STANDARD = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa"];
const findings = [];
let states = 0;

const browser = await launch();

/** A page on its own server, with everything that must stay silent listened to. */
async function visit({ width = 1280, theme = "light", hash = "", quietErrors = false, ...options }, script) {
  const server = await start(options);
  const context = await browser.newContext({
    viewport: { width, height: 800 },
    colorScheme: theme,
    reducedMotion: "reduce",
    permissions: ["clipboard-read", "clipboard-write"],
    bypassCSP: false,
  });
  const page = await context.newPage();
  const noise = [];
  page.on("console", (message) => ["error", "warning"].includes(message.type()) && noise.push(message.text()));
  page.on("pageerror", (error) => noise.push(`pageerror: ${error.message}`));
  page.on("dialog", (dialog) => noise.push(`dialog: ${dialog.message()}`));
  page.on(
    "request",
    (request) =>
      !request.url().startsWith(new URL(server.url).origin) &&
      !request.url().startsWith("data:") &&
      noise.push(`left the server: ${request.url()}`),
  );
  await page.addInitScript(() => {
    window.__violations = [];
    document.addEventListener("securitypolicyviolation", (event) =>
      window.__violations.push(`${event.violatedDirective} ${event.blockedURI}`),
    );
  });
  await page.goto(server.url + hash);
  const tools = {
    page,
    server,
    open: async (name) => {
      await page.evaluate((hash) => (location.hash = hash), `#/tool/${encodeURIComponent(name)}`);
      await page
        .getByTestId("tool-detail")
        .and(page.getByLabel(name, { exact: true }))
        .waitFor();
    },
    run: async (status = "done") => {
      await page.getByTestId("run").click();
      await page.locator(`[data-testid=result][data-status=${status}]`).waitFor();
    },
    audit: (name) => audit(page, `${name} ${theme} ${width}`),
  };
  try {
    await script(tools);
    assert.deepEqual(await page.evaluate(() => window.__violations), [], "CSP violations");
    assert.equal(await page.evaluate(() => window.__pwned), undefined, "hostile text ran");
    if (!quietErrors) assert.deepEqual(noise, []);
  } finally {
    await context.close();
    await server.stop();
  }
}

async function audit(page, state) {
  states += 1;
  await page.waitForTimeout(60);
  // Through the debugger, which the page's CSP does not bind.
  await page.evaluate(axeSource);
  const { violations } = await page.evaluate(
    (tags) => window.axe.run(document, { runOnly: { type: "tag", values: tags }, resultTypes: ["violations"] }),
    STANDARD,
  );
  for (const violation of violations) {
    for (const node of violation.nodes)
      findings.push(`${state}: ${violation.id} ${node.target.join(" ")} ${node.failureSummary?.split("\n")[1] ?? ""}`);
  }
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (overflow > 0) findings.push(`${state}: the page is ${overflow} px too wide`);
}

const checks = [];
const check = (name, options, script) => checks.push([name, options, script]);

for (const theme of ["light", "dark"]) {
  for (const width of [1280, 360]) {
    check(`axe in ${theme} at ${width}`, { theme, width }, async ({ page, open, run, audit }) => {
      await page.getByTestId("tool-link").first().waitFor();
      await audit("list");
      await page.getByTestId("search").fill("zzzz");
      await page.getByTestId("no-hits").waitFor();
      await audit("no hits");
      await page.getByTestId("search").fill("");
      await page.getByTestId("tag").first().click();
      await audit("tag filter");
      await page.getByTestId("tag").first().click();
      await open("image.resize");
      await audit("detail");
      await page.getByTestId("run").click();
      await page.getByTestId("problems").waitFor();
      await audit("form error");
      await page.getByLabel("width", { exact: true }).fill("800");
      await page.getByLabel("height", { exact: true }).fill("600");
      await run();
      await audit("result");
      await page.getByRole("tab", { name: "Raw JSON" }).click();
      await audit("raw result");
      await page.getByRole("tab", { name: "JSON", exact: true }).click();
      await audit("raw arguments");
      await page.getByTestId("raw-json").fill("{");
      await audit("raw arguments broken");
      await page.getByRole("tab", { name: "Code" }).click();
      await audit("code");
      for (const tab of ["Documentation", "Schema"]) {
        await page.getByRole("tab", { name: tab }).click();
        await audit(tab);
      }
      await open("orders.create");
      await page.getByRole("button", { name: "Add shipping" }).click();
      await page.getByRole("button", { name: "Add an entry to labels" }).click();
      await page.getByRole("button", { name: "Send null for payment" }).click();
      await page.getByLabel("Form of payment").selectOption({ label: "Card" });
      await page.getByRole("button", { name: "Add to items" }).click();
      await page.getByTestId("run").click();
      await audit("nested form errors");
      await open("orders.search");
      await run();
      await audit("table result");
      await open("reports.build");
      await page.getByTestId("run").click();
      await page.getByRole("progressbar").waitFor();
      await audit("running");
      await page.keyboard.press("Escape");
      await page.getByTestId("cancelled").waitFor();
      await audit("cancelled");
      await open("math.divide");
      await page.getByLabel("dividend").fill("1");
      await page.getByLabel("divisor").fill("0");
      await run("failed");
      await audit("error result");
      await open("orders.purge");
      await page.getByLabel("older_than_days").fill("3");
      await page.getByTestId("run").click();
      await page.getByTestId("confirm").waitFor();
      await audit("confirm dialog");
      await page.keyboard.press("Escape");
      await page.getByTestId("open-history").click();
      await audit("history");
      await page.keyboard.press("Escape");
      await page.getByTestId("open-help").click();
      await audit("help");
      await page.keyboard.press("Escape");
      await open("travel.book");
      await page.getByLabel("to", { exact: true }).fill("Lisbon");
      await page.getByTestId("run").click();
      await page.getByTestId("question").waitFor();
      await audit("question");
      await page.getByRole("button", { name: "Answer" }).click();
      await audit("question error");
      await page.getByRole("button", { name: "Decline" }).click();
      await open("data.odd");
      await run();
      await audit("odd result");
      await open(TOOLS.find((tool) => tool.name.startsWith("evil.")).name);
      await audit("hostile tool");
    });
  }
  check(
    `axe without execution in ${theme}`,
    { theme, allowExecute: false, hash: "#/tool/image.resize" },
    async ({ page, audit }) => {
      await page.getByTestId("run-off").waitFor();
      assert.ok(await page.getByTestId("run").isDisabled());
      await audit("run off");
    },
  );
  check(`axe without tools in ${theme}`, { theme, tools: [] }, async ({ page, audit }) => {
    await page.getByTestId("no-tools").waitFor();
    await audit("no tools");
  });
  check(
    `axe on a missing tool in ${theme}`,
    { theme, hash: "#/tool/nope", quietErrors: true },
    async ({ page, audit }) => {
      await page.getByTestId("tool-error").waitFor();
      await audit("missing tool");
    },
  );
}

check("the keyboard alone finds, fills, runs and cancels", {}, async ({ page }) => {
  await page.getByTestId("tool-link").first().waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("report");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.getByTestId("tool-detail").waitFor();
  await page.keyboard.press("Control+Enter");
  await page.getByRole("progressbar").waitFor();
  await page.keyboard.press("Escape");
  await page.getByTestId("cancelled").waitFor();
  await page.keyboard.press("?");
  await page.getByTestId("help").waitFor();
  await page.getByRole("checkbox").uncheck();
  await page.keyboard.press("Escape");
  await page.getByTestId("help").waitFor({ state: "detached" });
  await page.keyboard.press("?");
  await page.waitForTimeout(100);
  assert.equal(await page.getByTestId("help").count(), 0);
});

check("aborting a call closes its connection", {}, async ({ page, server, open }) => {
  await open("reports.build");
  await page.getByTestId("run").click();
  await page.getByRole("progressbar").waitFor();
  await page.getByTestId("cancel").click();
  await page.getByTestId("cancelled").waitFor();
  await page.waitForTimeout(200);
  assert.equal(server.state.cancelled, 1);
});

check("messages stand beside their fields and the way round works", {}, async ({ page, server, open, run }) => {
  await open("image.resize");
  await page.getByTestId("run").click();
  const width = page.getByLabel("width", { exact: true });
  assert.equal(await width.getAttribute("aria-invalid"), "true");
  const described = (await width.getAttribute("aria-describedby")).split(" ");
  const texts = await page.evaluate((ids) => ids.map((id) => document.getElementById(id)?.textContent), described);
  assert.ok(texts.includes("Required"), texts.join("|"));
  assert.ok(await width.evaluate((element) => element === document.activeElement), "focus goes to the first problem");
  await width.fill("99999");
  await page.getByLabel("height", { exact: true }).fill("x");
  assert.equal(
    await page
      .getByTestId("field-problem")
      .allTextContents()
      .then((all) => all.join("; ")),
    "Must be at most 8192; Must be a whole number",
  );
  await page.getByRole("button", { name: "Send anyway" }).click();
  await page.locator("[data-testid=result][data-status=done]").waitFor();
  assert.deepEqual(server.state.calls[0].args, { width: 99999, height: "x", filter: "bilinear" });
  await width.fill("123456789012345678901234567890");
  await page.getByRole("button", { name: "Send anyway" }).click();
  await page.waitForTimeout(200);
  assert.ok(server.state.calls.at(-1).text.includes("123456789012345678901234567890"));
  await width.fill("5");
  await page.getByLabel("height", { exact: true }).fill("6");
  await run();
});

check("the server's own messages land beside the field", {}, async ({ page, open, run }) => {
  await open("math.divide");
  await page.getByLabel("dividend").fill("1");
  await page.getByLabel("divisor").fill("13");
  await run("failed");
  assert.equal(await page.getByTestId("field-problem").textContent(), "thirteen is not lucky (value_error)");
});

check("form and JSON stay in step; lists grow, move and shrink", {}, async ({ page, open }) => {
  await open("orders.search");
  const add = page.getByRole("button", { name: "Add to state" });
  await add.click();
  await add.click();
  await page.getByLabel("state 2", { exact: true }).selectOption("shipped");
  await page.getByRole("button", { name: "Move state 2 up" }).click();
  await page.getByRole("tab", { name: "JSON", exact: true }).click();
  const raw = page.getByTestId("raw-json");
  assert.deepEqual(JSON.parse(await raw.inputValue()), { state: ["shipped", "open"], limit: 25 });
  await raw.fill('{"customer":"Ada","state":["paid"],"since":"2026-01-02"}');
  await page.getByRole("tab", { name: "Form" }).click();
  assert.equal(await page.getByLabel("customer", { exact: true }).inputValue(), "Ada");
  assert.equal(await page.getByLabel("since", { exact: true }).inputValue(), "2026-01-02");
  await page.getByRole("button", { name: "Remove state 1" }).click();
  await page.getByRole("tab", { name: "JSON", exact: true }).click();
  assert.deepEqual(JSON.parse(await raw.inputValue()), { customer: "Ada", state: [], since: "2026-01-02" });
});

check("alternatives, maps, null, constants and secrets", {}, async ({ page, server, open, run }) => {
  await open("orders.create");
  await page.getByLabel("name", { exact: true }).fill("Ada");
  await page.getByLabel("email", { exact: true }).fill("ada@example.org");
  await page.getByLabel("sku", { exact: true }).fill("ABC-1");
  await page.getByRole("button", { name: "Send null for payment" }).click();
  await page.getByLabel("Form of payment").selectOption({ label: "Invoice" });
  await page.getByLabel("days", { exact: true }).fill("14");
  await page.getByRole("button", { name: "Add an entry to labels" }).click();
  await page.getByLabel("Key of entry key1").fill("colour");
  await page.keyboard.press("Enter");
  await page.getByLabel("colour", { exact: true }).fill("green");
  await page.getByRole("button", { name: "Send null for discount" }).click();
  await page.getByLabel("api_key").fill("s3cret");
  await run();
  assert.deepEqual(server.state.calls[0].args, {
    customer: { name: "Ada", email: "ada@example.org", vip: false },
    items: [{ sku: "ABC-1", quantity: 1 }],
    payment: { method: "invoice", days: 14 },
    labels: { colour: "green" },
    discount: null,
    api_key: "s3cret",
    kind: "order",
  });
  await page.getByTestId("copy-link").click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const args = JSON.parse(Buffer.from(new URL(link).hash.split("args=")[1], "base64url").toString());
  assert.equal(args.api_key, undefined);
  assert.equal(args.customer.name, "Ada");
  assert.ok(!(await page.evaluate(() => JSON.stringify(localStorage))).includes("s3cret"));
});

check(
  "a deep link fills the form and runs nothing",
  { hash: `#/tool/image.resize?args=${Buffer.from('{"width":12,"height":34}').toString("base64url")}` },
  async ({ page, server }) => {
    await page.getByTestId("tool-detail").waitFor();
    await page.waitForFunction(() => document.querySelector("input.number")?.value === "12");
    assert.equal(server.state.calls.length, 0);
  },
);

check("a dangerous tool asks first, and Back runs nothing", {}, async ({ page, server, open }) => {
  await open("orders.purge");
  await page.getByLabel("older_than_days").fill("3");
  await page.getByTestId("run").click();
  await page.getByRole("button", { name: "Back" }).click();
  assert.equal(server.state.calls.length, 0);
  await page.getByTestId("run").click();
  await page.getByRole("button", { name: "Run it" }).click();
  await page.locator("[data-testid=result][data-status=done]").waitFor();
  assert.equal(server.state.calls.length, 1);
});

check("a question is asked and the same call goes on with its answer", {}, async ({ page, server, open }) => {
  await open("travel.book");
  await page.getByLabel("to", { exact: true }).fill("Lisbon");
  await page.getByTestId("run").click();
  await page.getByTestId("question").waitFor();
  await page.getByLabel("seat", { exact: true }).selectOption("first");
  await page.getByRole("button", { name: "Answer" }).click();
  await page.locator("[data-testid=result][data-status=done]").waitFor();
  assert.ok((await page.getByTestId("result-value").textContent()).includes('"first"'));
  const { requestState, inputResponses, arguments: args } = JSON.parse(server.state.calls[1].text).params;
  assert.deepEqual(
    { requestState, inputResponses, args },
    {
      requestState: "sealed",
      inputResponses: { answer: { action: "accept", content: { seat: "first" } } },
      args: { to: "Lisbon" },
    },
  );
  await page.getByTestId("run").click();
  await page.getByTestId("question").waitFor();
  await page.keyboard.press("Escape");
  await page.locator("[data-testid=result][data-status=failed]").waitFor();
});

check("history restores, runs again and clears", {}, async ({ page, server, open, run }) => {
  await open("math.divide");
  await page.getByLabel("dividend").fill("8");
  await page.getByLabel("divisor").fill("2");
  await run();
  await open("ping");
  await page.getByTestId("open-history").click();
  await page.getByRole("button", { name: "Restore math.divide" }).click();
  await page.waitForFunction(
    () => [...document.querySelectorAll("input.number")].map((input) => input.value).join() === "8,2",
  );
  await page.getByTestId("open-history").click();
  await page.getByRole("button", { name: "Run again: math.divide" }).click();
  await page.waitForFunction(() => document.querySelector("[data-testid=result]")?.dataset.status === "done");
  assert.equal(server.state.calls.length, 2);
  await page.getByTestId("open-history").click();
  await page.getByRole("button", { name: "Clear history" }).click();
  assert.equal(await page.getByTestId("history-entry").count(), 0);
});

check("the list follows the server, and says so", {}, async ({ page, server }) => {
  await page.getByTestId("tool-link").first().waitFor();
  await page.getByTestId("live-state").filter({ hasText: "Live" }).waitFor();
  server.change([...TOOLS, { ...TOOLS[0], name: "image.rotate" }]);
  await page.locator("[data-tool='image.rotate'] .new").waitFor();
  assert.equal(await page.getByTestId("toast").textContent(), "Tool list updated: 1 new");
});

check("a server that goes away is noticed, and Retry recovers", { quietErrors: true }, async ({ page, server }) => {
  await page.getByTestId("tool-link").first().waitFor();
  await page.getByTestId("live-state").filter({ hasText: "Live" }).waitFor();
  await page.route("**/*", (route) => route.abort());
  for (const listener of server.state.listeners) listener.destroy();
  await page.getByTestId("offline").waitFor();
  await page.unroute("**/*");
  await page.getByRole("button", { name: "Retry" }).click();
  await page.getByTestId("offline").waitFor({ state: "detached" });
  await page.getByTestId("live-state").filter({ hasText: "Live" }).waitFor();
});

check(
  "without an MCP endpoint tools run plainly and nothing claims to be live",
  { mcp: false },
  async ({ page, server, open, run }) => {
    await page.getByTestId("tool-link").first().waitFor();
    await page.getByTestId("live-state").waitFor({ state: "detached" });
    await open("reports.build");
    await run();
    await open("travel.book");
    await page.getByRole("tab", { name: "Code" }).click();
    assert.ok((await page.getByTestId("code").textContent()).includes("/explorer/tools/travel.book/call"));
    assert.equal(await page.getByRole("tab", { name: "Python" }).count(), 0);
    assert.equal(server.state.calls.length, 1);
  },
);

check("5,000 levels and 10,000 rows stay usable", {}, async ({ page, open, run }) => {
  await open("data.deep");
  await run();
  const expand = async () => {
    for (let step = 0; step < 12; step += 1) {
      const closed = page.locator(".tree [aria-expanded=false]").last();
      if ((await closed.count()) === 0) break;
      await closed.click();
    }
  };
  await expand();
  await page.getByTestId("show-deeper").click();
  await page.getByText("12 levels down").waitFor();
  await page.getByRole("tab", { name: "Raw JSON" }).click();
  await page.getByText("Show more (").waitFor();
  await open("data.rows");
  const started = Date.now();
  await run();
  assert.ok(Date.now() - started < 3_000, "rows show within 3 s");
  assert.ok((await page.locator(".tree tr").count()) < 100);
  await page.getByTestId("show-more").first().click();
  assert.ok((await page.locator(".tree tr").count()) > 250);
});

check("hostile text is shown, not run", {}, async ({ page, open, run }) => {
  const evil = TOOLS.find((tool) => tool.name.startsWith("evil.")).name;
  await open(evil);
  await page.getByRole("tab", { name: "Documentation" }).click();
  const links = await page.locator(".prose a").evaluateAll((all) => all.map((link) => link.href));
  assert.deepEqual(links, ["https://example.org/"]);
  await page.getByRole("button", { name: /Try it/ }).click();
  await page.getByRole("button", { name: "Reset" }).click();
  await run();
  await open("data.schema");
  await page.getByRole("tab", { name: "Schema" }).click();
  await open("data.odd");
  await run();
  assert.equal(await page.locator(".tree img").count(), 0);
  assert.equal(await page.locator("[style]").count(), 0);
  await page.getByTestId("search").fill("<img");
  assert.equal(await page.getByTestId("tool-link").count(), 1);
});

check("themes are chosen and remembered", {}, async ({ page }) => {
  await page.getByTestId("tool-link").first().waitFor();
  const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await background();
  await page.getByRole("radio", { name: "Dark theme" }).check({ force: true });
  assert.notEqual(await background(), light);
  await page.reload();
  await page.getByTestId("tool-link").first().waitFor();
  assert.notEqual(await background(), light);
});

check("a phone goes from list to tool and back", { width: 360 }, async ({ page }) => {
  await page.getByTestId("tool-link").first().click();
  await page.getByTestId("tool-detail").waitFor();
  assert.ok(await page.getByRole("heading", { level: 1 }).evaluate((heading) => heading === document.activeElement));
  assert.equal(await page.getByTestId("search").isVisible(), false);
  await page.getByRole("link", { name: "All tools" }).click();
  await page.getByTestId("search").waitFor();
  assert.ok(
    await page
      .getByTestId("tool-link")
      .first()
      .evaluate((link) => link === document.activeElement),
  );
});

let failed = 0;
const only = process.argv[2];
for (const [name, options, script] of checks) {
  if (only && !name.includes(only)) continue;
  const before = findings.length;
  try {
    await visit(options, script);
    console.log(findings.length > before ? "AXE " : "ok  ", name);
  } catch (error) {
    failed += 1;
    console.log("FAIL", name, "\n    ", String(error.message).split("\n").slice(0, 12).join("\n     "));
  }
}
await browser.close();
for (const finding of [...new Set(findings)].slice(0, 60)) console.log("axe:", finding);
console.log(`${checks.length} checks, ${failed} failed; axe over ${states} states: ${findings.length} findings`);
process.exitCode = failed + findings.length > 0 ? 1 : 0;
