import { useInsertionEffect } from "react";

export interface AdoptedStyleProps {
  /** Contents as of a style element. */
  readonly dangerouslySetInnerHTML?: { readonly __html: string };
  readonly children?: string;
}

/**
 * A style sheet in the place of a style element, which the content policy forbids: sheets that scripts make are not markup. Those of
 * the libraries come here (scripts/build-web.mjs).
 */
export function AdoptedStyle({ children, dangerouslySetInnerHTML }: AdoptedStyleProps): null {
  const css = dangerouslySetInnerHTML?.__html ?? children ?? "";
  useInsertionEffect(() => adopt(css), [css]);
  return null;
}

/** Puts a sheet in force; what it answers takes it away. */
export function adopt(css: string): () => void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets.push(sheet);
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
  };
}
