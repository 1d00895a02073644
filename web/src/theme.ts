import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const indigo: MantineColorsTuple = [
  "#eef2ff",
  "#e0e7ff",
  "#c7d2fe",
  "#a5b4fc",
  "#818cf8",
  "#6366f1",
  "#4f46e5",
  "#4338ca",
  "#3730a3",
  "#312e81",
];

/** Colors of states. The darkest shade is legible on the lightest. */
const yellow: MantineColorsTuple = [
  "#fefce8",
  "#fef3c7",
  "#fde68a",
  "#fcd34d",
  "#fbbf24",
  "#f59e0b",
  "#d97706",
  "#b45309",
  "#92400e",
  "#7c3a0a",
];
const teal: MantineColorsTuple = [
  "#ecfdf8",
  "#d1faed",
  "#a7f3dc",
  "#6ee7c7",
  "#34d3ad",
  "#12b894",
  "#0a9679",
  "#0b7863",
  "#0d5f50",
  "#0c4e43",
];
const red: MantineColorsTuple = [
  "#fef2f2",
  "#fee2e2",
  "#fecaca",
  "#fca5a5",
  "#f98080",
  "#ef4444",
  "#dc2626",
  "#c01d1d",
  "#a31616",
  "#861313",
];

/** Neutrals with a trace of blue, from the page's background to its text. */
const dark: MantineColorsTuple = [
  "#e6e9ef",
  "#c3c9d4",
  "#9aa3b2",
  "#6c7687",
  "#3a4353",
  "#2a3240",
  "#1f2632",
  "#161b24",
  "#10141b",
  "#0b0e13",
];

const gray: MantineColorsTuple = [
  "#f8f9fb",
  "#f1f3f6",
  "#e5e8ee",
  "#d6dbe3",
  "#bcc3cf",
  "#8b94a3",
  "#5c6675",
  "#454e5c",
  "#2d3540",
  "#1a202a",
];

const SANS = '"Inter Variable", system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export const theme = createTheme({
  primaryColor: "indigo",
  primaryShade: { light: 7, dark: 6 },
  colors: { indigo, dark, gray, red, teal, yellow },
  fontFamily: SANS,
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: {
    fontFamily: SANS,
    fontWeight: "650",
    sizes: {
      h1: { fontSize: "1.625rem", lineHeight: "1.25" },
      h2: { fontSize: "1.125rem", lineHeight: "1.35" },
      h3: { fontSize: "1rem", lineHeight: "1.4" },
    },
  },
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Modal: {
      defaultProps: {
        styles: { title: { fontWeight: 650, fontSize: "1.1rem" } },
        closeButtonProps: { "aria-label": "Close" },
        centered: true,
        radius: "lg",
        overlayProps: { blur: 2, backgroundOpacity: 0.45 },
      },
    },
    Drawer: {
      defaultProps: {
        styles: { title: { fontWeight: 650, fontSize: "1.1rem" } },
        closeButtonProps: { "aria-label": "Close" },
        overlayProps: { blur: 2, backgroundOpacity: 0.35 },
      },
    },
    Paper: { defaultProps: { radius: "lg" } },
    Tooltip: { defaultProps: { withArrow: true } },
    Badge: { defaultProps: { variant: "light", radius: "sm", tt: "none" } },
    Menu: { defaultProps: { shadow: "md", position: "bottom-end" } },
  },
});

/** Dimmed text colors with a contrast of at least 4.5 to 1 on the page's background. */
export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#ffffff",
    "--mantine-color-text": "#1a202a",
    "--mantine-color-dimmed": "#5c6675",
    "--mantine-color-placeholder": "#6c7687",
    "--mantine-color-error": "#c81e1e",
    "--app-ground": "#f6f7f9",
    "--app-line": "#e5e8ee",
    "--app-raised": "#ffffff",
    "--app-good": "#0f766e",
    "--app-wait": "#b45309",
    "--app-bad": "#c81e1e",
  },
  dark: {
    "--mantine-color-body": "#10141b",
    "--mantine-color-dimmed": "#9aa3b2",
    "--mantine-color-placeholder": "#8b94a3",
    "--mantine-color-error": "#f98080",
    "--mantine-color-anchor": "#a5b4fc",
    "--app-ground": "#0b0e13",
    "--app-line": "#232b38",
    "--app-raised": "#12171f",
    "--app-good": "#2dd4bf",
    "--app-wait": "#fbbf24",
    "--app-bad": "#f98080",
  },
});
