/** Loaded before svc-miner: its random waits, which keep many miners from asking a pool at once, are a tenth as long. */
const random = Math.random;
Math.random = () => random() / 10;
