import { useState } from "react";

const SHOWN_MS = 2_000;

/** Copies a text. The clipboard API needs https or localhost; elsewhere a selection is copied. */
async function copyText(text: string, beside: HTMLElement): Promise<boolean> {
  if ("clipboard" in navigator) {
    const isWritten = await navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
    if (isWritten) return true;
  }
  const field = document.createElement("textarea");
  field.className = "copied-from";
  field.value = text;
  field.readOnly = true;
  // Placed beside the button, because dialogs keep the focus inside.
  beside.after(field);
  field.select();
  const isCopied = document.execCommand("copy");
  field.remove();
  beside.focus();
  return isCopied;
}

/** Returns whether the text was just copied or failed to copy; null for neither. */
export function useCopy(text: string) {
  const [copied, setCopied] = useState<boolean | null>(null);
  const copy = async (beside: HTMLElement): Promise<void> => {
    setCopied(await copyText(text, beside));
    setTimeout(() => setCopied(null), SHOWN_MS);
  };
  return { copied, copy };
}

export const copyLabel = (label: string, copied: boolean | null): string => {
  if (copied === null) return label;
  return copied ? "Copied" : "Select it and copy it yourself";
};
