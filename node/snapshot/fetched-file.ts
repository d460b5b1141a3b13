/**
 * The file of a snapshot that is fetched from peers, part by part. Each part is proven before it is written. After a
 * kill the file is read and proven again, truncated after the last proven part, and continued.
 */
import { type FileHandle, open } from 'node:fs/promises';
import type { Bytes } from '../../protocol/bytes.ts';
import { LENGTH_BYTES, MAGIC } from './snapshot-file.ts';
import type { PartRule } from './snapshot-parts.ts';

export class FetchedFile {
  readonly #file: FileHandle;
  #at = MAGIC.length;
  /** False from the first missing part on. */
  #isRereading = true;
  parts = 0;

  private constructor(file: FileHandle) {
    this.#file = file;
  }

  static async open(path: string): Promise<FetchedFile> {
    const file = await open(path, 'a+', 0o600).then(async (made) => {
      await made.close();
      return await open(path, 'r+');
    });
    const fetched = new FetchedFile(file);
    const magic = await fetched.#read(0, MAGIC.length);
    if (magic === undefined || !magic.equals(MAGIC)) {
      fetched.#isRereading = false;
      await file.truncate(0);
      await file.write(MAGIC, 0, MAGIC.length, 0);
    }
    return fetched;
  }

  async #read(at: number, length: number): Promise<Buffer | undefined> {
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let done = 0; done < length; ) {
      const { bytesRead } = await this.#file.read(bytes, done, length - done, at + done);
      if (bytesRead === 0) return undefined;
      done += bytesRead;
    }
    return bytes;
  }

  /** The next part from an earlier run; undefined if it has to be fetched. */
  async reread<T>(rule: PartRule<T>): Promise<{ readonly value: T } | undefined> {
    if (!this.#isRereading) return undefined;
    const found = await this.#reread(rule);
    if (found !== undefined) return found;
    this.#isRereading = false;
    await this.#file.truncate(this.#at);
    return undefined;
  }

  async #reread<T>({ maxBytes, read }: PartRule<T>): Promise<{ readonly value: T } | undefined> {
    const length = (await this.#read(this.#at, LENGTH_BYTES))?.readUInt32LE();
    if (length === undefined || length > maxBytes) return undefined;
    const bytes = await this.#read(this.#at + LENGTH_BYTES, length);
    if (bytes === undefined) return undefined;
    try {
      const value = read(bytes);
      this.#at += LENGTH_BYTES + length;
      this.parts++;
      return { value };
    } catch {
      return undefined;
    }
  }

  async append(bytes: Bytes): Promise<void> {
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(bytes.length);
    const part = Buffer.concat([length, bytes]);
    for (let done = 0; done < part.length; )
      done += (await this.#file.write(part, done, part.length - done, this.#at + done)).bytesWritten;
    this.#at += part.length;
    this.parts++;
  }

  /** Nothing follows the last part. */
  async end(): Promise<void> {
    await this.#file.truncate(this.#at);
    await this.#file.sync();
  }

  async close(): Promise<void> {
    await this.#file.close();
  }
}
