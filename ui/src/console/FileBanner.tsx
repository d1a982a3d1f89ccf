import { Icon } from "../components/Icon";
import { plural } from "../lib/format";
import { useConsole } from "./model";

/** What is wrong with the project file, and where, until it is mended. */
export function FileBanner() {
  const problems = useConsole().project.value?.configuration ?? [];
  if (problems.length === 0) return null;
  return (
    <div class="file-banner" role="alert" data-testid="file-banner">
      <Icon name="warning" />
      <div>
        <p>
          <strong>The project file has {plural(problems.length, "error")}.</strong> The last good version stays in force
          until you fix it.
        </p>
        <ul>
          {problems.map((problem) => (
            <li key={`${problem.line}:${problem.column} ${problem.path}`}>
              {problem.line > 0 && <strong>Line {problem.line}: </strong>}
              {problem.path !== "" && (
                <>
                  <code>{problem.path}</code>:{" "}
                </>
              )}
              {problem.message}
            </li>
          ))}
        </ul>
      </div>
    </div>
  );
}
