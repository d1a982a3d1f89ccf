import "../styles/tokens.css";
import "../styles/base.css";
import "../styles/controls.css";
import "../styles/form.css";
import "../styles/content.css";
import "../styles/dialog.css";
import "../styles/frame.css";
import "../styles/bench.css";
import "../styles/explorer.css";
import { render } from "preact";
import { BenchContext } from "../bench/bench";
import { Api } from "../lib/api";
import { Settings } from "../lib/settings";
import { browserStorage } from "../lib/storage";
import { App } from "./App";
import { listenForKeys } from "./keys";
import { Explorer, ExplorerContext } from "./model";

const settings = new Settings(browserStorage, document.documentElement);
const explorer = new Explorer(new Api(location.href), settings, browserStorage, window);
listenForKeys(explorer);
render(
  <ExplorerContext.Provider value={explorer}>
    <BenchContext.Provider value={explorer.bench}>
      <App />
    </BenchContext.Provider>
  </ExplorerContext.Provider>,
  document.getElementById("app") as HTMLElement,
);
void explorer.start();
