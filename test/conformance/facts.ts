/** Every fact, in the order of the specification's sections. */
import { AGREEMENT } from './agreement.ts';
import { AUTHENTICATION, LIMITS } from './authentication.ts';
import { ECONOMICS } from './economics.ts';
import type { Fact } from './fact.ts';
import { CONVENTIONS, ENDPOINTS, RESOURCES, VERSIONING } from './http-api.ts';
import { METRICS } from './metrics.ts';
import { MINING } from './mining.ts';
import { SECOND_READING } from './second-reading.ts';
import { SOCKETS } from './sockets.ts';
import { WALLET } from './wallet-daemon.ts';

export const FACTS: readonly Fact[] = [
  ...CONVENTIONS,
  ...ECONOMICS,
  ...RESOURCES,
  ...AGREEMENT,
  ...ENDPOINTS,
  ...SOCKETS,
  ...WALLET,
  ...MINING,
  ...AUTHENTICATION,
  ...LIMITS,
  ...METRICS,
  ...VERSIONING,
  ...SECOND_READING,
];
