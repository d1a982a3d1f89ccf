import { useId } from "preact/hooks";

interface Props {
  label: string;
  value: string;
  /** Each value with what it is called. */
  options: (readonly [string, string])[];
  onChange: (value: string) => void;
}

/** A choice of one; a value that is not among the options is shown all the same. */
export function Select({ label, value, options, onChange }: Props) {
  const id = useId();
  const unknown = !options.some(([name]) => name === value);
  return (
    <div class="filter">
      <label class="eyebrow" for={id}>
        {label}
      </label>
      <select id={id} class="input select" value={value} onChange={(event) => onChange(event.currentTarget.value)}>
        {options.map(([name, said]) => (
          <option key={name} value={name}>
            {said}
          </option>
        ))}
        {unknown && <option value={value}>{value}</option>}
      </select>
    </div>
  );
}
