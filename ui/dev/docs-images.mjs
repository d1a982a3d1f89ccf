/** Takes the pictures of the documentation from a running server (`make run`): `node dev/docs-images.mjs URL FOLDER`. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { launch } from "./browser.mjs";

const [url = "http://127.0.0.1:8000/explorer/", folder = "../docs/images"] = process.argv.slice(2);
const wide = { width: 1280, height: 800 };

mkdirSync(folder, { recursive: true });
const browser = await launch();

async function shoot(name, tool, options, script) {
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(`${url}#/tool/${tool}`);
  await page.locator(".live.live").waitFor();
  await script(page);
  await page.screenshot({ path: join(folder, `${name}.png`) });
  await context.close();
}

await shoot("explorer", "orders.quote", { viewport: wide }, async (page) => {
  await page.getByTestId("use-example").last().click();
  await page.getByTestId("run").click();
  await page.locator("[data-testid=result][data-status=done]").waitFor();
  await page.getByRole("heading", { level: 1 }).hover();
});

await shoot("explorer-dark", "jobs.render", { viewport: wide, colorScheme: "dark" }, async (page) => {
  await page.getByTestId("run").click();
  await page
    .locator(".progress-message")
    .filter({ hasText: /frame (9|1\d) of/ })
    .waitFor();
});

await shoot(
  "explorer-phone",
  "trips.plan",
  { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2 },
  async (page) => {
    await page.getByTestId("run").click();
    await page.getByTestId("question").waitFor();
  },
);

await browser.close();
