/** Line icons on a 16-unit grid; decorative, the text beside them speaks. */
const PATHS = {
  search: "M7 12A5 5 0 1 0 7 2a5 5 0 0 0 0 10zm3.6-1.4L14 14",
  chevron: "m6 4 4 4-4 4",
  back: "M10 3 5 8l5 5",
  close: "m4 4 8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.5 8.5h6l.5-8.5",
  copy: "M5.5 5.5V3h7.5v7.5h-2.5M3 5.5h7.5V13H3z",
  check: "m3 8.5 3.5 3.5L13 4.5",
  link: "M6.5 9.5a2.5 2.5 0 0 0 3.6 0l2.3-2.3a2.54 2.54 0 0 0-3.6-3.6l-.9.900M9.5 6.5a2.5 2.5 0 0 0-3.6 0L3.6 8.8a2.54 2.54 0 0 0 3.6 3.6l.9-.9",
  clock: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 5v3.2l2 1.3",
  play: "M5 3.2v9.6L12.5 8z",
  stop: "M4 4h8v8H4z",
  warning: "M8 2.5 14.2 13H1.8zM8 6.5v3M8 11.3v.2",
  info: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 7.5v3.5M8 5v.2",
  sun: "M8 10.8A2.8 2.8 0 1 0 8 5.2a2.8 2.8 0 0 0 0 5.6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.900M11.7 11.7l.9.900M3.4 12.6l.9-.9M11.7 4.3l.9-.9",
  moon: "M13.2 9.6A5.6 5.6 0 0 1 6.4 2.8a5.6 5.6 0 1 0 6.8 6.8z",
  screen: "M2.5 3h11v7.5h-11zM6 13.5h4M8 10.5v3",
  keyboard: "M1.5 4h13v8.5h-13zM4 6.7h.1M6.7 6.7h.1M9.3 6.7h.1M12 6.7h.1M5 9.8h6",
  restore: "M3 3v3.5h3.5M3.3 6.5A5.2 5.2 0 1 1 2.9 9",
  plug: "M6 2v3.5M10 2v3.5M4 5.5h8V8a4 4 0 0 1-8 0zM8 12v2.5",
  leaf: "M8 14V7.5m0 2C4.8 9.5 3.5 7.6 3.5 4.5 6.7 4.5 8 6.4 8 9.5zm0-2c0-2.6 1.3-4 4.2-4 0 2.8-1.3 4-4.2 4z",
  lines: "M3 4.5h10M3 8h10M3 11.5h6",
  overview: "M2.5 2.5h4.5v6H2.5zM9 2.5h4.5v3.500H9zM9 8h4.500v5.500H9zM2.500 10.500H7v3H2.500z",
  agents:
    "M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.500 13.500c0-2.500 2-4 4.500-4s4.500 1.500 4.500 4M10.500 3.300a2.300 2.300 0 0 1 0 4.500M12 9.900c1.500.5 2.500 1.800 2.500 3.600",
  tree: "M3 2.500h4v3H3zM9 6.500h4v3H9zM9 11h4v3H9zM5 5.500v7h4M5 8h4",
  inbox: "M2 9.500 4 3h8l2 6.500V13H2zM2 9.500h3.500l1 1.700h3l1-1.700H14",
  pin: "M6 2.500h4l-.5 4.500 2 2.200h-7l2-2.200zM8 9.200v4.500",
  log: "M3.500 2h9v12h-9zM6 5.200h4M6 8h4M6 10.800h2.500",
  flask:
    "M6.300 2.200v4L2.800 12.300c-.5.9 0 1.700 1 1.700h8.400c1 0 1.500-.8 1-1.700L9.700 6.200v-4M5.200 2.200h5.600M4.700 10h6.600",
  undo: "M6 3 2.700 6.200 6 9.500M3 6.200h6.500a3.500 3.500 0 0 1 0 7H6.500",
  redo: "m10 3 3.300 3.200L10 9.500M13 6.200H6.500a3.500 3.500 0 0 0 0 7h3",
  tag: "M2.500 2.500h5l6 6-5 5-6-6zM5.300 5.300h.1",
  camera: "M2 5h3l1-1.700h4L11 5h3v8H2zM8 11a2.200 2.200 0 1 0 0-4.400A2.200 2.200 0 0 0 8 11z",
  edit: "M3 13l.6-2.700L10.800 3 13 5.200 5.700 12.400zM9.300 4.600l2.200 2.200",
  move: "M8 2v12M2 8h12M8 2 6.300 3.700M8 2l1.700 1.700M8 14l-1.700-1.700M8 14l1.700-1.700M2 8l1.700-1.700M2 8l1.700 1.700M14 8l-1.700-1.700M14 8l-1.700 1.700",
  shield: "M8 2 3 4v4c0 3 2.200 5 5 6 2.800-1 5-3 5-6V4zM5.800 8l1.600 1.600 2.900-3.200",
  download: "M8 2.500v7.500M4.800 7 8 10.200 11.200 7M3 13.500h10",
  out: "M9.500 3H3.500v10h6M7 8h6.500M11 5.500 13.500 8 11 10.500",
  compare: "M5.500 2.500v11M10.500 2.500v11M2.500 5.500l3-3 3 3M7.500 10.500l3 3 3-3",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      width={size}
      height={size}
      viewBox="0 0 16 16"
      fill="none"
      stroke="currentColor"
      stroke-width="1.5"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
