/**
 * The socket under the driver. When a server cuts a connection, postgres 3.4.9 drops its reference to the socket first and rejects the
 * waiting queries afterwards; their next statement, such as a rollback, is then written to null, which throws outside any
 * promise and would end the process. This socket emits 'error' first, and 'close' only after those statements were written
 * (to a dead socket, which is harmless), so that they are rejected normally.
 *
 * No setting of the driver avoids it: the defect is its issue 1208 (also 1154), open as of 3.4.9; the proposed fix is
 * its pull request 1209. Once a release has it, delete this file and the `socket` in connect.ts.
 */
import { Socket } from 'node:net';

export class ConnectionCut extends Error {
  readonly code = 'CONNECTION_CLOSED';

  constructor() {
    super('the database closed the connection');
    this.name = 'ConnectionCut';
  }
}

export class DatabaseSocket extends Socket {
  #failed = false;

  override emit(event: string | symbol, ...values: unknown[]): boolean {
    if (event === 'error') this.#failed = true;
    if (event !== 'close') return super.emit(event as 'error', ...(values as [Error]));
    if (!this.#failed && this.listenerCount('error') > 0) super.emit('error', new ConnectionCut());
    setImmediate(() => setImmediate(() => super.emit('close', false)));
    return true;
  }
}
