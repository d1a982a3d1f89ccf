import { Icon, type IconName } from "./Icon";

interface Props {
  icon: IconName;
  label: string;
  title?: string;
  onClick: () => void;
  class?: string;
  size?: number;
  disabled?: boolean;
  id?: string;
  opens?: string;
  testId?: string;
}

/** A button without a word: its label is what is spoken, and shown to a mouse that rests on it. */
export function IconButton({
  icon,
  label,
  title = label,
  onClick,
  class: more,
  size = 16,
  disabled,
  id,
  opens,
  testId,
}: Props) {
  return (
    <button
      type="button"
      class={more === undefined ? "icon-button" : `icon-button ${more}`}
      id={id}
      aria-label={label}
      title={title}
      disabled={disabled}
      data-opens={opens}
      data-testid={testId}
      onClick={onClick}
    >
      <Icon name={icon} size={size} />
    </button>
  );
}
