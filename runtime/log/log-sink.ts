/** Where finished log lines go: standard error, a file, or nowhere in a test. */
export interface LogSink {
  write(line: string): void;
  /** Everything written so far is with the operating system when this returns. */
  flush(): void;
  close(): void;
}
