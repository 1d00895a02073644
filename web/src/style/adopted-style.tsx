import { useInsertionEffect } from "react";

export interface AdoptedStyleProps {
  /** Contents in the form of a style element's. */
  readonly dangerouslySetInnerHTML?: { readonly __html: string };
  readonly children?: string;
}

/**
 * Style sheet in place of a style element, which the content policy forbids; sheets made by scripts are allowed. The
 * build redirects the libraries' style elements here (scripts/build-web.mjs).
 */
export function AdoptedStyle({ children, dangerouslySetInnerHTML }: AdoptedStyleProps): null {
  const css = dangerouslySetInnerHTML?.__html ?? children ?? "";
  useInsertionEffect(() => adopt(css), [css]);
  return null;
}

/** Applies a style sheet. Returns a function that removes it. */
export function adopt(css: string): () => void {
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(css);
  document.adoptedStyleSheets.push(sheet);
  return () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
  };
}
