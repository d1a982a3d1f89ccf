import type * as api from "./api-types";

export type Trouble = api.Project["troubles"][number];

/** What a person reads of a trouble: what is wrong, what it means for agents, and what to do. */
interface Words {
  title: string;
  text: string;
  /** Whether agents are served all the same. */
  isServed?: boolean;
}

export const TROUBLES: Readonly<Record<Trouble, Words>> = {
  store_locked: {
    title: "Another program holds the store",
    text: "Changes are refused until it lets go, and reads work. Close whatever has the store's file open.",
  },
  store_unreachable: {
    title: "The database does not answer",
    text: "Changes are refused until it does, and reads work. Nothing that was answered is lost.",
  },
  store_behind: {
    title: "This replica has not caught up with the database",
    text: "It may not know what other replicas changed. Look whether the database is slow or out of reach.",
  },
  store_diverged: {
    title: "The database was set back to an earlier state",
    text: "Some changes that were answered here are gone. The stored tree is read again, and calls are refused meanwhile. The audit log names what was lost.",
  },
  store_unwritable: {
    title: "The store cannot be written",
    text: "Every change is refused, and reads work. Look at the server's log and at the store's disk: it may be full.",
  },
  store_gone: {
    title: "The store's files are gone",
    text: "They were deleted, replaced or overwritten. Stop the gateway, put them back or restore a backup, and start again.",
  },
  state_gone: {
    title: "The state file is gone",
    text: "It was deleted, replaced or overwritten, so tokens and approvals cannot be read. Put it back or restore a backup, and start again.",
  },
  file_outdated: {
    title: "Another replica has a newer project file",
    text: "This replica still works by an older one. Give all replicas the same file.",
  },
  limits_narrowed: {
    title: "The shared rate limits do not answer",
    text: "Agents are served, but each may make only this replica's share of its calls. It ends by itself when the counts are back.",
    isServed: true,
  },
  version_outdated: {
    title: "A newer version of Toolgrove has taken the database over",
    text: "This replica refuses changes until you replace it with the newer version, and reads work.",
  },
  stopping: {
    title: "The gateway is stopping",
    text: "It ends the calls that are under way, and takes no new clients.",
  },
};

const UNKNOWN: Words = {
  title: "Something keeps the gateway from its work",
  text: "The server's log and /ready say more.",
};

/** What to say of a trouble, also of one that a newer gateway has and this page does not know. */
export function wordsOf(trouble: string): Words {
  return Object.hasOwn(TROUBLES, trouble) ? TROUBLES[trouble as Trouble] : UNKNOWN;
}
