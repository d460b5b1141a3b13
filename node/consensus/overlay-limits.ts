/** What one address, one stranger and all of them together may cost a node of the overlay. */
/** How long an address that broke a rule is not let in; a neighbour that the operator named is dialled again as late. */
export const BARRED_MILLIS = 10_000;
/** A false identity is never an accident. So long, a check costs its sender an address. */
export const BARRED_FORGER_MILLIS = 600_000;
export const MAX_BARRED = 65_536;
export const CONNECT_MILLIS = 5_000;
export const FIRST_RETRY_MILLIS = 250;
export const LAST_RETRY_MILLIS = 5_000;
/** Of a registered route: anybody with a bond may register any. */
export const FIRST_ROUTE_RETRY_MILLIS = 2_500;
export const LAST_ROUTE_RETRY_MILLIS = 60_000;
/** Connections from one address that is not this machine. */
export const CONNECTIONS = { perSecond: 1, burst: 16 };
export const MAX_COUNTED = 65_536;
/** Identities that are checked, of each member's key: one costs a third of a millisecond, so 64 members a tenth of a core at most. One that comes beyond it is a stranger until there is time. */
export const CHECKS = { perSecond: 5, burst: 20 };
export const CHECK_AGAIN_MILLIS = 5_000;
/** Signatures for diallers whose key is no member's now: they may be members tomorrow, or strangers with any key. */
export const PROOFS = { perSecond: 5, burst: 20 };
/** What is read of one stranger, and of all together. */
export const STRANGER = {
  bytes: { perSecond: 2 * 1024 * 1024, burst: 8 * 1024 * 1024 },
  messages: { perSecond: 200, burst: 1_000 },
  queuedBytes: 4 * 1024 * 1024,
};
export const STRANGERS = {
  bytes: { perSecond: 16 * 1024 * 1024, burst: 80 * 1024 * 1024 },
  messages: { perSecond: 2_000, burst: 8_000 },
  /** What others sent makes nobody wait longer; what each sent itself does. */
  mostMillis: 1_000,
};
/** What is sent to strangers of one address, and to all together; what comes beyond it is lost, as on any line that is full. The rest of the line is the members'. A node that must not miss anything is a neighbour that the operator names. */
export const SENT_TO_STRANGERS = {
  ofOneAddress: { perSecond: 2 * 1024 * 1024, burst: 16 * 1024 * 1024 },
  together: { perSecond: 4 * 1024 * 1024, burst: 32 * 1024 * 1024 },
} as const;
