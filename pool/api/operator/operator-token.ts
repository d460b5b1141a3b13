/** The operator's token: made at the first start, readable by the owner alone, compared in constant time. */
import { randomBytes, timingSafeEqual } from 'node:crypto';
import { stat } from 'node:fs/promises';
import { writeDurably } from '../../../runtime/files/durable-file.ts';
import { PRIVATE_MODE, privateText, readPrivateFile } from '../../../runtime/files/private-file.ts';
import type { Logger } from '../../../runtime/log/log.ts';

const MIN_CHARACTERS = 16;

export class OperatorToken {
  readonly #path: string;
  readonly #log: Logger;
  /** Undefined while the file cannot be used: then every request is refused. */
  #kept: { readonly token: string | undefined; readonly changed: string } | undefined;

  constructor(path: string, dependencies: { log: Logger }) {
    this.#path = path;
    this.#log = dependencies.log;
  }

  /** Throws a RuntimeError for a file that others can read: anyone who has the token can mark payouts as sent. */
  async ensure(): Promise<void> {
    try {
      await stat(this.#path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      await writeDurably(this.#path, `${randomBytes(32).toString('hex')}\n`, PRIVATE_MODE);
    }
    privateText(this.#path, '--operator-token-file');
  }

  /** Read again when the file or its mode changed, so that a token can be replaced without a restart. */
  async #token(): Promise<string | undefined> {
    const { mtimeMs, ctimeMs } = await stat(this.#path).catch(() => ({ mtimeMs: 0, ctimeMs: 0 }));
    const changed = `${mtimeMs} ${ctimeMs}`;
    if (this.#kept?.changed === changed) return this.#kept.token;
    const file = readPrivateFile(this.#path);
    if (file.kind !== 'text')
      this.#log.error('the operator token cannot be used: the operator routes refuse every request', {
        reason: file.kind === 'missing' ? `there is no file ${this.#path}` : file.reason,
      });
    this.#kept = { token: file.kind === 'text' ? file.text.trim() : undefined, changed };
    return this.#kept.token;
  }

  async admits(authorization: string | undefined): Promise<boolean> {
    const given = /^Bearer ([\x21-\x7e]{1,256})$/.exec(authorization ?? '')?.[1];
    if (given === undefined) return false;
    const kept = await this.#token();
    if (kept === undefined) return false;
    const [token, offered] = [Buffer.from(kept), Buffer.from(given)];
    return token.length >= MIN_CHARACTERS && token.length === offered.length && timingSafeEqual(token, offered);
  }
}
