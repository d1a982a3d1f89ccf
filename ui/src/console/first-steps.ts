/** What a newcomer has done already; the browser keeps it for each project. */
import { browserStorage } from "../lib/storage";
import type { Project } from "./facts";
import type { Route } from "./route";

const KEY = "toolgrove.welcome";
export type Step = "approve" | "access" | "watch" | "connect";

export function doneSteps(project: Project): ReadonlySet<string> {
  return new Set((browserStorage.read(`${KEY}.${project.name}`) ?? "").split(" "));
}

export function tick(project: Project, step: Step | "dismissed"): ReadonlySet<string> {
  const done = doneSteps(project);
  if (done.has(step)) return done;
  const after = new Set([...done, step]);
  browserStorage.write(`${KEY}.${project.name}`, [...after].join(" ").trim());
  return after;
}

/** Whether it is the project of `toolgrove demo`. */
export function isSample({ agents }: Project): boolean {
  return ["sprinkler", "researcher"].every((name) => agents.some((agent) => agent.name === name));
}

/** Two steps are taken by looking at a page, however one got there. */
export function tickVisit(project: Project, { view, subject }: Route): void {
  if (view === "tree") tick(project, "watch");
  if (view === "agents" && (subject === null || subject === "researcher" || !isSample(project)))
    tick(project, "access");
}
