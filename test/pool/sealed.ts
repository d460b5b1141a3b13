/** The seal of a pool in tests: a secret of its own, the same in all processes of a test. */
import { Seal } from '../../pool/shared/seal.ts';
import { UnreadValues } from '../../pool/shared/unread-values.ts';
import type { Logger } from '../../runtime/log/log.ts';
import { pattern } from '../../vectors/generate/pattern.ts';
import { quietLog } from '../quiet-log.ts';

export const testSealed = (options: { secret?: string; format?: number; log?: Logger } = {}) => ({
  seal: new Seal(pattern(options.secret ?? 'secret of a pool', 32), 'test', options.format),
  unread: new UnreadValues({ log: options.log ?? quietLog, now: Date.now }),
});
