import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/controls.css";
import "../styles/form.css";
import "../styles/content.css";
import "../styles/dialog.css";
import "../styles/frame.css";
import "../styles/bench.css";
import "../styles/console.css";
import "../styles/sources.css";
import "../styles/tree.css";
import { render } from "preact";
import { renderVisibly } from "../components/visible-text";
import { browserFetch } from "../lib/http";
import { Settings } from "../lib/settings";
import { browserStorage, tabStorage } from "../lib/storage";
import { App } from "./App";
import { pathOf } from "./api";
import { listenForKeys } from "./keys";
import { Console, ConsoleContext } from "./model";
import { Session } from "./session";

renderVisibly();
const settings = new Settings(browserStorage, document.documentElement);
const console = new Console(new Session(tabStorage, browserFetch, pathOf(location)), settings, window);
listenForKeys(console);
render(
  <ConsoleContext.Provider value={console}>
    <App />
  </ConsoleContext.Provider>,
  document.getElementById("app") as HTMLElement,
);
console.start();
