import { type Signal, signal } from "@preact/signals";

export type LiveState = "connecting" | "live" | "lost";

const FIRST_WAIT = 1_000;
const LONGEST_WAIT = 30_000;

/** Listens for changes of the tool list and reconnects quietly, ever more slowly, when the server goes away. */
export class LiveEvents {
  readonly state: Signal<LiveState> = signal("connecting");
  private source: EventSource | null = null;
  private wait = FIRST_WAIT;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly url: string,
    /** Called when the list changed, or may have while nobody listened. */
    private readonly onChange: () => void,
    /** Called once each time the connection is lost. */
    private readonly onLost: () => void,
  ) {}

  connect(): void {
    clearTimeout(this.timer);
    this.source?.close();
    const source = new EventSource(this.url);
    this.source = source;
    source.addEventListener("open", () => {
      if (this.state.peek() === "lost") this.onChange();
      this.state.value = "live";
      this.wait = FIRST_WAIT;
    });
    source.addEventListener("changed", () => this.onChange());
    source.addEventListener("error", () => {
      source.close();
      if (this.state.peek() !== "lost") this.onLost();
      this.state.value = "lost";
      this.timer = setTimeout(() => this.connect(), this.wait);
      this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
    });
  }
}
