import type { ReactElement } from "react";

const OUTLINES = {
  home: "M4 11.5 12 5l8 6.5M6.5 10v9h11v-9M10 19v-5h4v5",
  inbox: "M4 13h4.5l1.5 3h4l1.5-3H20M4 13l3-7.5h10L20 13v6H4z",
  agent:
    "M7 9h10a2 2 0 0 1 2 2v6a2 2 0 0 1-2 2H7a2 2 0 0 1-2-2v-6a2 2 0 0 1 2-2zM12 9V5.5M9.5 13.5v1.5M14.5 13.5v1.5M3 13v2.5M21 13v2.5",
  list: "M4 7h16M4 12h16M4 17h10",
  tree: "M5 4h6v5H5zM13 15h6v5h-6zM13 9.5h6v3h-6zM8 9v8.5h5M8 11h5",
  settings: "M5 7h9M18 7h1M5 17h1M10 17h9M16 5v4M8 15v4M5 12h4M13 12h6M11 10v4",
  shield: "M12 3.5 19 6v5.5c0 4.3-2.9 7.4-7 8.8-4.1-1.4-7-4.5-7-8.8V6zM9 12l2.2 2.2L15.2 10",
  key: "M15 9.5a4 4 0 1 1-3.6-4M11.5 12 5 18.5v2h3v-2h2v-2h2l1.5-2",
  people:
    "M9 11.5a3.25 3.25 0 1 0 0-6.5 3.25 3.25 0 0 0 0 6.5zM3.5 19c.4-3 2.6-4.8 5.5-4.8s5.1 1.8 5.5 4.8M15.5 5.5a3 3 0 0 1 0 5.6M17 14.6c2 .6 3.2 2.2 3.5 4.4",
  webhook:
    "M8 16.5h8.5M7 14.8 10.5 9M17 14.5 13.5 8.5M6.5 19a2.5 2.5 0 1 0 0-5M17.5 14a2.5 2.5 0 1 1 0 5M12 4a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5z",
  log: "M6 4h9l4 4v12H6zM14.5 4v4.5H19M9 12.5h7M9 16h5",
  plus: "M12 5v14M5 12h14",
  pause: "M9 6v12M15 6v12",
  play: "M8 5.5v13l10.5-6.5z",
  stop: "M8.5 3.5h7l5 5v7l-5 5h-7l-5-5v-7zM9 9l6 6M15 9l-6 6",
  archive: "M4 5h16v4H4zM5.5 9v10h13V9M10 13h4",
  copy: "M9 9h10v10H9zM15 9V5H5v10h4",
  check: "m5 12.5 4.5 4.5L19 7.5",
  close: "M6 6l12 12M18 6 6 18",
  alert: "M12 4 21 19.5H3zM12 10v4.5M12 17v.1",
  info: "M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17zM12 11v5M12 8v.1",
  down: "M6 9.5l6 6 6-6",
  right: "M9.5 6l6 6-6 6",
  left: "M14.5 6l-6 6 6 6",
  download: "M12 4v11M7.5 11l4.5 4.5 4.5-4.5M5 20h14",
  card: "M4 6h16a1 1 0 0 1 1 1v10a1 1 0 0 1-1 1H4a1 1 0 0 1-1-1V7a1 1 0 0 1 1-1zM3 10h18M7 14.5h3",
  wallet: "M4 7.5h15a1 1 0 0 1 1 1V18a1 1 0 0 1-1 1H5a1 1 0 0 1-1-1zM4 7.5 15 4v3.5M16.5 13.3v.1",
  clock: "M12 20.5a8.5 8.5 0 1 0 0-17 8.5 8.5 0 0 0 0 17zM12 7.5V12l3 2",
  sun: "M12 16a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM12 3v2M12 19v2M3 12h2M19 12h2M5.6 5.6 7 7M17 17l1.4 1.4M18.4 5.6 17 7M7 17l-1.4 1.4",
  moon: "M19.5 14.5A8 8 0 0 1 9.5 4.5a8 8 0 1 0 10 10z",
  more: "M5.5 12v.1M12 12v.1M18.5 12v.1",
  out: "M14 5H6v14h8M10.5 12H20M16.5 8.5 20 12l-3.5 3.5",
  refresh: "M19 12a7 7 0 1 1-2.1-5M19 4.5V8h-3.5",
  trash: "M5 7h14M10 7V4.5h4V7M7 7l.8 12.5h8.4L17 7M10.5 11v5M13.5 11v5",
  edit: "M5 19h3.5L19 8.5 15.5 5 5 15.5zM13 7.5 16.5 11",
  finger:
    "M7 19c-.7-1.5-1-3.2-1-5a6 6 0 0 1 12 0v2M9.5 20.5C9 18.6 8.8 16.6 9 14a3 3 0 0 1 6 0c0 2.6.2 4.5 1 6.5M12 14c0 3 .2 5 .8 7",
  menu: "M4 7h16M4 12h16M4 17h16",
  book: "M5 5.5c2.5-.8 4.8-.5 7 1 2.2-1.5 4.5-1.8 7-1v13c-2.5-.8-4.8-.5-7 1-2.2-1.5-4.5-1.8-7-1zM12 6.5v13",
} as const;

export type IconName = keyof typeof OUTLINES;

interface IconProps {
  readonly name: IconName;
  readonly size?: number;
}

/** Icon beside words with the same meaning, so hidden from screen readers. */
export function Icon({ name, size = 18 }: IconProps): ReactElement {
  return (
    <svg
      aria-hidden="true"
      className="icon"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.75"
      strokeLinecap="round"
      strokeLinejoin="round"
    >
      <path d={OUTLINES[name]} />
    </svg>
  );
}

export function Logo({ size = 30 }: { readonly size?: number }): ReactElement {
  return (
    <svg aria-hidden="true" width={size} height={size} viewBox="0 0 32 32">
      <rect width="32" height="32" rx="8" fill="#4338ca" />
      <path
        d="M16 6.5 24 9.4v6.3c0 5-3.4 8.3-8 9.8-4.6-1.5-8-4.8-8-9.8V9.4zM12.4 15.8l2.6 2.6 4.8-5"
        fill="none"
        stroke="#fff"
        strokeWidth="2.2"
        strokeLinecap="round"
        strokeLinejoin="round"
      />
    </svg>
  );
}
