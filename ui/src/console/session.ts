/** Who looks: the operator's token, kept for this tab only and never in the address. */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { browserFetch, type Fetch } from "../lib/http";
import type { Storage } from "../lib/storage";

const KEY = "toolgrove.token";

/** Trying: a request is on its way. Asking: the server wants a token that we do not have. */
export type Standing = "trying" | "asking" | "in";

export class Session {
  readonly standing: Signal<Standing> = signal("trying");
  private readonly held: Signal<string | null>;
  private readonly key: string;

  constructor(
    private readonly storage: Storage,
    private readonly under: Fetch = browserFetch,
    project = "",
  ) {
    this.key = KEY + project;
    this.held = signal(storage.read(this.key));
  }

  get token(): ReadonlySignal<string | null> {
    return this.held;
  }

  /** Sends a request with the token, and notices when the server does not know it. */
  readonly fetch: Fetch = async (input, init) => {
    const headers = new Headers(init?.headers);
    const token = this.held.peek();
    if (token !== null) headers.set("Authorization", `Bearer ${token}`);
    const response = await this.under(input, { ...init, headers, credentials: "omit" });
    if (response.status === 401 && this.held.peek() === token) this.standing.value = "asking";
    else if (response.ok) this.standing.value = "in";
    return response;
  };

  use(token: string): void {
    this.held.value = token;
    this.storage.write(this.key, token);
    this.standing.value = "trying";
  }

  forget(): void {
    this.held.value = null;
    this.storage.remove(this.key);
    this.standing.value = "asking";
  }
}

/** The token in an address's fragment, as the server prints it; null if there is none. */
export function tokenIn(hash: string): string | null {
  const match = /^#token=([^&]+)/.exec(hash);
  if (!match) return null;
  try {
    return decodeURIComponent(match[1] as string);
  } catch {
    return match[1] as string;
  }
}

/** A header cannot carry anything else. */
export function isSendable(token: string): boolean {
  return /^[\x21-\x7e]+$/.test(token);
}
