import { type Signal, signal } from "@preact/signals";
import type { News } from "./news";

/** Paused: nobody looks at the page. */
export type LiveState = "connecting" | "live" | "lost" | "paused";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 5_000;

/** Follows the project's events and reconnects, ever more slowly, when the server goes away. */
export class LiveEvents {
  readonly state: Signal<LiveState> = signal("connecting");
  /** When the next attempt is made, in milliseconds since 1970; null while none is due. */
  readonly retryAt: Signal<number | null> = signal(null);
  private stop = new AbortController();
  private wait = FIRST_WAIT;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly events: (signal: AbortSignal) => AsyncIterable<News>,
    private readonly onNews: (news: News) => void,
    /** Called whenever the connection is lost or cannot be had. */
    private readonly onLost: () => void,
  ) {}

  connect(): void {
    this.hangUp();
    void this.follow(this.stop.signal);
  }

  /** Lets go of the connection, of which a browser has few. */
  pause(): void {
    this.hangUp();
    this.state.value = "paused";
  }

  private hangUp(): void {
    clearTimeout(this.timer);
    this.retryAt.value = null;
    this.stop.abort();
    this.stop = new AbortController();
  }

  private async follow(signal: AbortSignal): Promise<void> {
    try {
      for await (const news of this.events(signal)) {
        if (signal.aborted) return;
        this.state.value = "live";
        this.wait = FIRST_WAIT;
        this.onNews(news);
      }
    } catch {
      // Lost either way; what is wrong shows when the overview is fetched.
    }
    if (signal.aborted) return;
    this.state.value = "lost";
    this.onLost();
    this.timer = setTimeout(() => this.connect(), this.wait);
    this.retryAt.value = Date.now() + this.wait;
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }
}
