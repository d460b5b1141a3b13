/** The first byte of every message between validators: no two kinds share a number. */

/** Of the engine (driver/messages.ts). */
export const MESSAGE_TYPES = { proposal: 1, vote: 2, proof: 3, have: 4, finalized: 5 } as const;
export const BLOCK_MESSAGE_TYPES = { want: 6, block: 7, offer: 8 } as const;
export const ROLL_CALL_TYPES = { call: 9, answer: 10, here: 11 } as const;
export const ECHO_TYPES = { question: 12, answer: 13 } as const;
/** Of relays. */
export const CIRCUIT_TYPES = { record: 14, slot: 15, granted: 16, circuit: 17, invitation: 18 } as const;
/** Around a vote or a proposal (driver/forwarding.ts). */
export const FORWARD_TYPE = 19;
