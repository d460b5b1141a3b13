/** A logger for tests: silent, unless RUST_LOG asks for lines, which then go to standard error. */
import { createLogger, readLevelFilter, standardErrorSink } from '../runtime/log/log.ts';

export const quietLog = createLogger(
  'test',
  { filter: readLevelFilter(process.env.RUST_LOG ?? 'off'), format: 'text' },
  { sink: standardErrorSink, now: Date.now },
);
