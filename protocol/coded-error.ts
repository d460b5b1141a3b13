/** An error under a code that docs/errors.md explains. Each part of the project has a class of its own with its codes. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;
  /** Figures that belong to it, for a log line or an answer. */
  readonly fields: Readonly<Record<string, unknown>>;

  constructor(code: Code, message: string, fields: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.code = code;
    this.fields = fields;
  }
}
