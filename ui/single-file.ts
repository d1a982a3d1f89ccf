import type { Plugin } from "vite";

/** Folds the page's one script and one stylesheet into its HTML, so that a strict CSP needs just two hashes. */
export function singleFile(): Plugin {
  return {
    name: "toolgrove-single-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      const files = Object.values(bundle);
      const page = files.find((file) => file.type === "asset" && file.fileName.endsWith(".html"));
      const scripts = files.filter((file) => file.type === "chunk");
      const styles = files.filter((file) => file.type === "asset" && file.fileName.endsWith(".css"));
      if (page?.type !== "asset" || scripts.length !== 1 || styles.length !== 1) {
        throw new Error(`a page is one HTML, one script and one stylesheet, not ${Object.keys(bundle).join(", ")}`);
      }
      const [script] = scripts;
      const [style] = styles;
      if (script?.type !== "chunk" || style?.type !== "asset") throw new Error("unreachable");

      const head = String(page.source)
        .replace(/\s*<script\b[^>]*\bsrc="[^"]*"[^>]*><\/script>/g, "")
        .replace(/\s*<link\b[^>]*\brel="(?:stylesheet|modulepreload)"[^>]*>/g, "");
      const html = head
        .replace("</head>", () => `<style>${inertStyle(String(style.source))}</style>\n  </head>`)
        .replace("</body>", () => `  <script type="module">${inertScript(script.code)}</script>\n  </body>`)
        .replace(/\r\n?/g, "\n");
      page.source = html;
      for (const name of Object.keys(bundle)) {
        if (bundle[name] !== page) delete bundle[name];
      }
    },
  };
}

/** The HTML parser ends a script at these words even inside a string literal. */
function inertScript(code: string): string {
  return code.trim().replace(/<(\/script|!--)/gi, (_match, rest: string) => `\\x3c${rest}`);
}

function inertStyle(css: string): string {
  return css.trim().replace(/<\//g, "<\\/");
}
