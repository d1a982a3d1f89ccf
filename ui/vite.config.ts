import { defineConfig } from "vite";
import { singleFile } from "./single-file.ts";

/** The mode names the page: `vite build --mode explorer` turns explorer.html into dist/explorer.html. */
export default defineConfig(({ mode }) => ({
  base: "./",
  plugins: [singleFile()],
  build: {
    target: ["chrome123", "firefox128", "safari17.5"],
    outDir: "dist",
    emptyOutDir: false,
    assetsInlineLimit: Number.MAX_SAFE_INTEGER,
    modulePreload: false,
    cssCodeSplit: false,
    reportCompressedSize: false,
    rollupOptions: { input: `${mode}.html` },
  },
}));
