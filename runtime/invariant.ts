/**
 * What must hold for a program to go on. Where it does not, going on could only spoil more: the error is caught by nobody,
 * and the program ends by saying which (program.ts). Everything else that goes wrong over one client ends that client only
 * (client-fault.ts).
 */
import type { RuntimeErrorCode } from './runtime-error.ts';

export class InvariantError extends Error {
  readonly code: RuntimeErrorCode = 'invariant_broken';

  constructor(message: string) {
    super(message);
    this.name = 'InvariantError';
  }
}
