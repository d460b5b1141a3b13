/** The operator's token: made at the first start, readable by the owner alone, compared in constant time. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { readFile, stat } from 'node:fs/promises';
import { writeDurably } from '../../runtime/durable-file.ts';

export class OperatorToken {
  readonly #path: string;
  #kept: { token: string; changed: number } | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  async ensure(): Promise<void> {
    try {
      await stat(this.#path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await writeDurably(this.#path, `${randomBytes(32).toString('hex')}\n`, 0o600);
    }
  }

  /** Read again when the file changed, so that a token can be replaced without a restart. */
  async #token(): Promise<string> {
    const { mtimeMs } = await stat(this.#path);
    if (this.#kept?.changed !== mtimeMs)
      this.#kept = { token: (await readFile(this.#path, 'utf8')).trim(), changed: mtimeMs };
    return this.#kept.token;
  }

  async admits(authorization: string | undefined): Promise<boolean> {
    const given = /^Bearer ([\x21-\x7e]{1,256})$/.exec(authorization ?? '')?.[1];
    if (given === undefined) return false;
    const token = Buffer.from(await this.#token());
    const offered = Buffer.from(given);
    return token.length >= 16 && token.length === offered.length && timingSafeEqual(token, offered);
  }
}
