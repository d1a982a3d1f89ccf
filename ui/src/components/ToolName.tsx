import { Fragment } from "preact";

/** A name that may break after its underscores and dots, and nowhere else as long as it fits. */
export function ToolName({ name }: { name: string }) {
  return (
    <>
      {name.split(/(?<=[_.])/).map((part, index) => (
        <Fragment key={index}>
          {index > 0 && <wbr />}
          {part}
        </Fragment>
      ))}
    </>
  );
}
