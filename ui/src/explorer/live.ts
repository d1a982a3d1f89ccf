import { type Signal, signal } from "@preact/signals";
import type { Mcp } from "../lib/mcp";

/** Static: the server has no way to tell of changes. Paused: nobody looks at the page. */
export type LiveState = "static" | "paused" | "connecting" | "live" | "lost";

const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;

/** Listens for changes of the tool list and reconnects quietly, ever more slowly, when the server goes away. */
export class LiveTools {
  readonly state: Signal<LiveState> = signal("connecting");
  private stop = new AbortController();
  private wait = FIRST_WAIT;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    /** Null if the server has no endpoint for pages, undefined while nobody knows. */
    private readonly server: () => Mcp | null | undefined,
    /** Called when the list changed, or may have while nobody listened. */
    private readonly onChange: () => void,
    /** Called once each time the connection is lost, and as long as the endpoint is unknown. */
    private readonly onLost: () => void,
  ) {}

  connect(): void {
    this.hangUp();
    const mcp = this.server();
    if (mcp === null) this.state.value = "static";
    else void this.follow(mcp, this.stop.signal);
  }

  /** Lets go of the connection, of which a browser has few; `connect` catches up. */
  pause(): void {
    this.hangUp();
    if (this.state.peek() !== "static") this.state.value = "paused";
  }

  private hangUp(): void {
    clearTimeout(this.timer);
    this.stop.abort();
    this.stop = new AbortController();
  }

  private async follow(mcp: Mcp | undefined, signal: AbortSignal): Promise<void> {
    try {
      for await (const news of mcp?.listen(signal) ?? []) {
        if (news === "changed" || this.state.peek() !== "connecting") this.onChange();
        this.state.value = "live";
        this.wait = FIRST_WAIT;
      }
    } catch {
      // Lost either way; what is wrong shows when the list is fetched.
    }
    if (signal.aborted) return;
    if (this.state.peek() !== "lost" || !mcp) this.onLost();
    this.state.value = "lost";
    this.timer = setTimeout(() => this.connect(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }
}
