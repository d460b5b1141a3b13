/**
 * What a release leaves behind: a folder of files, and the facts that it reads from them. `write` is run once, with the release that the
 * folder is named after; `read` for ever after, and must find the same facts.
 */
export type Fixture = {
  /** Of its files, and in docs/formats.md. */
  readonly name: string;
  readonly write: (folder: string) => Promise<void>;
  /** The folder is a copy: it may be written to, as the program that opens it does. */
  readonly read: (folder: string) => Promise<unknown>;
};

/** Facts as JSON has them: amounts are decimal text, bytes hex. */
export const plain = (value: unknown): unknown =>
  JSON.parse(
    JSON.stringify(value, function (this: Record<string, unknown>, key: string, shown: unknown) {
      const given = this[key];
      if (given instanceof Uint8Array) return Buffer.from(given).toString('hex');
      if (given instanceof Map) return [...given];
      if (typeof given === 'bigint') return String(given);
      return shown;
    }) ?? 'null',
  );
