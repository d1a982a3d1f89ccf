/** A message of a server-sent event stream. */
export interface ServerEvent {
  event: string;
  data: string;
}

/** Takes the text of a stream in pieces, cut anywhere, and gives the messages that are complete. */
export class EventParser {
  private rest = "";
  private event = "";
  private data: string[] = [];
  private started = false;
  private midLine = false;

  push(chunk: string): ServerEvent[] {
    if (this.midLine && !/[\r\n]/.test(chunk)) {
      this.rest += chunk;
      return [];
    }
    const events: ServerEvent[] = [];
    let text = this.rest + chunk;
    if (!this.started && text.length > 0) {
      this.started = true;
      if (text.startsWith("\uFEFF")) text = text.slice(1);
    }
    let start = 0;
    for (;;) {
      const line = nextLine(text, start);
      if (!line) break;
      this.line(text.slice(start, line.end), events);
      start = line.next;
    }
    this.rest = text.slice(start);
    this.midLine = this.rest !== "" && !this.rest.endsWith("\r");
    return events;
  }

  private line(line: string, events: ServerEvent[]): void {
    if (line === "") {
      if (this.data.length > 0) events.push({ event: this.event || "message", data: this.data.join("\n") });
      this.event = "";
      this.data = [];
      return;
    }
    const colon = line.indexOf(":");
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") this.event = value;
    else if (field === "data") this.data.push(value);
  }
}

/** A line ends at LF, CRLF or CR; a CR at the very end waits, for an LF may follow in the next piece. */
function nextLine(text: string, start: number): { end: number; next: number } | null {
  for (let at = start; at < text.length; at += 1) {
    if (text[at] === "\n") return { end: at, next: at + 1 };
    if (text[at] === "\r") {
      if (at + 1 === text.length) return null;
      return { end: at, next: text[at + 1] === "\n" ? at + 2 : at + 1 };
    }
  }
  return null;
}
