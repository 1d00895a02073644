/** Whether a file system or network error has this code (`ENOENT`, `EADDRINUSE`, ...). */
export const hasErrorCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;
