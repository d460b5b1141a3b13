/**
 * Conditions without which a program must not continue, because it could only do more damage: the error is not caught,
 * and the program ends and names the invariant (program.ts). Any other error while serving a client ends that client
 * only (client-fault.ts).
 */
import type { RuntimeErrorCode } from './runtime-error.ts';

export class InvariantError extends Error {
  readonly code: RuntimeErrorCode = 'invariant_broken';

  constructor(message: string) {
    super(message);
    this.name = 'InvariantError';
  }
}
