/** Takes pictures of the page's main states: `node dev/shots.mjs <folder>`. */
import { mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { launch } from "./browser.mjs";
import { start } from "./server.mjs";

const folder = process.argv[2] ?? join(tmpdir(), "ui-shots");
mkdirSync(folder, { recursive: true });
const server = await start();
const browser = await launch();
for (const theme of ["light", "dark"]) {
  for (const width of [1280, 360]) {
    const context = await browser.newContext({
      viewport: { width, height: width === 360 ? 760 : 860 },
      colorScheme: theme,
      deviceScaleFactor: width === 360 ? 2 : 1,
    });
    const page = await context.newPage();
    page.on("console", (message) => message.type() === "error" && console.log("console:", message.text()));
    page.on("pageerror", (error) => console.log("pageerror:", error.message));
    const shot = (name) => page.screenshot({ path: join(folder, `${name}-${theme}-${width}.png`) });
    const open = async (name) => {
      await page.goto(`${server.url}#/tool/${encodeURIComponent(name)}`);
      await page.getByTestId("tool-detail").waitFor();
    };
    await page.goto(server.url);
    await page.getByTestId("tool-link").first().waitFor();
    await shot("1-list");
    await open("image.resize");
    await shot("2-detail");
    await page.getByTestId("run").click();
    await shot("3-form-error");
    await page.getByLabel("width", { exact: true }).fill("800");
    await page.getByLabel("height", { exact: true }).fill("600");
    await page.getByTestId("run").click();
    await page.getByTestId("result-value").waitFor();
    if (width === 360) await page.getByTestId("result").scrollIntoViewIfNeeded();
    await shot("4-result");
    await page.getByRole("tab", { name: "Documentation" }).click();
    await shot("5-docs");
    await open("orders.create");
    await page.getByRole("button", { name: "Add shipping" }).click();
    await page.getByRole("button", { name: "Add an entry to labels" }).click();
    await shot("6-nested");
    await page.screenshot({ path: join(folder, `6b-nested-full-${theme}-${width}.png`), fullPage: true });
    await page.getByRole("tab", { name: "Code" }).click();
    await page.getByRole("tab", { name: "Python" }).click();
    await shot("7-code");
    await open("orders.search");
    await page.getByTestId("run").click();
    await page.getByTestId("result-value").waitFor();
    if (width === 360) await page.getByTestId("result").scrollIntoViewIfNeeded();
    await shot("8-table");
    await open("reports.build");
    await page.getByTestId("run").click();
    await page.waitForTimeout(900);
    await shot("9-progress");
    await page.getByTestId("result-value").waitFor();
    await open("orders.purge");
    await page.getByLabel("older_than_days", { exact: true }).fill("90");
    await page.getByTestId("run").click();
    await page.getByTestId("confirm").waitFor();
    await page.waitForTimeout(250);
    await shot("10-confirm");
    await page.getByRole("button", { name: "Back" }).click();
    await page.getByTestId("open-history").click();
    await page.waitForTimeout(250);
    await shot("11-history");
    await page.keyboard.press("Escape");
    await open("travel.book");
    await page.getByLabel("to", { exact: true }).fill("Lisbon");
    await page.getByTestId("run").click();
    await page.getByTestId("question").waitFor();
    await page.waitForTimeout(250);
    await shot("12-question");
    await page.keyboard.press("Escape");
    await open("data.odd");
    await page.getByTestId("run").click();
    await page.getByTestId("result-value").waitFor();
    await shot("13-odd");
    await context.close();
  }
}
await browser.close();
await server.stop();
