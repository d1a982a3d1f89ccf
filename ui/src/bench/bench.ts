/** The bench where one tool is tried: its arguments, its runs, its questions. Any page that can call tools has one. */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { type ComponentType, createContext } from "preact";
import { useContext } from "preact/hooks";
import { isDestructive } from "../components/Badge";
import type { FormDraft } from "../lib/draft";
import type { ToolDetail } from "../lib/tool";
import type { Run, Runner } from "./runner";

export interface Opened {
  tool: ToolDetail;
  draft: FormDraft;
}

/** How the same call is made from elsewhere. */
export interface Reach {
  /** Undefined where the server has no MCP endpoint for pages. */
  mcpUrl: string | undefined;
  /** Where such a server takes plain calls. */
  callUrl: (tool: string) => string;
  /** Whether a caller needs a token of its own. */
  needsToken: boolean;
}

export class Bench {
  /** The tool whose run waits for a second yes. */
  readonly confirming: Signal<Opened | null> = signal(null);

  constructor(
    readonly runner: Runner,
    /** Null while nobody knows. */
    readonly canRun: ReadonlySignal<boolean | null>,
    readonly reach: ReadonlySignal<Reach>,
    /** What the page has to say about a failed run, below its error. */
    readonly Advice?: ComponentType<{ run: Run }>,
  ) {}

  /** Runs a tool if its arguments hold, after asking where the tool is dangerous. */
  run(opened: Opened): boolean {
    if (this.canRun.peek() !== true || this.runner.isActive(opened.tool.name)) return true;
    if (!opened.draft.submit()) return false;
    this.runUnchecked(opened);
    return true;
  }

  /** Leaves judging the arguments to the server. */
  runUnchecked(opened: Opened): void {
    const { tool, draft } = opened;
    if (!draft.sendable) return;
    if (isDestructive(tool) || tool.requiresApproval) this.confirming.value = opened;
    else this.runner.start({ tool, args: draft.value.peek() });
  }

  /** Makes the same call once more. */
  again({ request }: Run): void {
    this.runner.start({ tool: request.tool, args: request.args });
  }

  confirmed({ tool, draft }: Opened): void {
    this.confirming.value = null;
    this.runner.start({ tool, args: draft.value.peek() });
  }
}

export const BenchContext = createContext<Bench | null>(null);

export function useBench(): Bench {
  const bench = useContext(BenchContext);
  if (!bench) throw new Error("no bench above this component");
  return bench;
}
