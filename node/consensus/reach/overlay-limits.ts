/** Resource limits of the overlay: per address, per stranger, and for all strangers together. */
/**
 * How long an address that broke a rule is barred, and a key that was proved there. A neighbour named by the operator is dialled again after a quarter of it,
 * after twice as long each further time, and after all of it at most: it may be an honest one that has a fault.
 */
export const BARRED_MILLIS = 10_000;
/** Faults of a neighbour that is dialled are forgotten after so long without one. */
export const FORGIVEN_MILLIS = 60_000;
/** A false identity is never an accident. The bar is long, so each false check costs the sender an address. */
export const BARRED_FORGER_MILLIS = 600_000;
export const MAX_BARRED = 65_536;
export const CONNECT_MILLIS = 5_000;
export const FIRST_RETRY_MILLIS = 250;
export const LAST_RETRY_MILLIS = 5_000;
/** Connections from one address that is not this machine. */
export const CONNECTIONS = { perSecond: 1, burst: 16 };
export const MAX_COUNTED = 65_536;
/**
 * Connections from all addresses together that are neither named nor known from a member: each handshake costs half a
 * millisecond, and addresses cost nothing where a customer has 65,536 networks. As many at once as two committees have
 * members.
 */
export const NEWCOMERS = { perSecond: 100, burst: 256 };
/** Addresses of each member that are remembered. */
export const FAMILIAR_ADDRESSES = 4;
/**
 * Identities that are checked, of each member's key: one costs a third of a millisecond, so 64 members a tenth of a
 * core at most. Beyond that, a connection counts as a stranger until there is capacity.
 */
export const CHECKS = { perSecond: 5, burst: 20 };
export const CHECK_AGAIN_MILLIS = 5_000;
/** Signatures for diallers whose key the chain does not list: nodes that follow, or strangers with any key. */
export const PROOFS = { perSecond: 5, burst: 20 };
/** Bytes read from one stranger, and from all together. */
export const STRANGER = {
  bytes: { perSecond: 2 * 1024 * 1024, burst: 8 * 1024 * 1024 },
  messages: { perSecond: 200, burst: 1_000 },
  queuedBytes: 4 * 1024 * 1024,
};
export const STRANGERS = {
  bytes: { perSecond: 16 * 1024 * 1024, burst: 80 * 1024 * 1024 },
  messages: { perSecond: 2_000, burst: 8_000 },
  /** A longer wait is caused only by a stranger's own traffic, not by that of others. */
  mostMillis: 1_000,
};
/**
 * KiB sent to all strangers, of which each address has a fair part; messages beyond that are dropped, as on a full line.
 * The rest of the bandwidth is for members. A node that must not miss messages should be named by the operator as a
 * neighbour.
 */
export const SENT_TO_STRANGERS = { perSecond: 4 * 1024, burst: 32 * 1024 };
