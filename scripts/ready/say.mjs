/** Output of the start scripts: each step, and what to do where one fails. */

/** @param {string} text */
export const say = (text) => void process.stderr.write(`ready: ${text}\n`);

/** Ends the run with a reason and a remedy; caught at the top of ready.mjs. */
export class NotReady extends Error {}
