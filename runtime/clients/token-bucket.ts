/** A token bucket over a clock passed in: bounds messages, requests, checks and logins, per client and overall. */

export type Bucket = { readonly tokens: number; readonly atMillis: number };
export type BucketRate = { readonly perSecond: number; readonly burst: number };

export const fullBucket = (rate: BucketRate, nowMillis: number): Bucket => ({
  tokens: rate.burst,
  atMillis: nowMillis,
});

/** The bucket as it is now. A clock going back refills nothing. */
export const refill = (bucket: Bucket, rate: BucketRate, nowMillis: number): Bucket => ({
  tokens: tokensAt(bucket, rate, nowMillis),
  atMillis: nowMillis,
});

/** The bucket after taking `cost`, or undefined when it does not hold that much. */
export function take(bucket: Bucket, rate: BucketRate, nowMillis: number, cost = 1): Bucket | undefined {
  const tokens = tokensAt(bucket, rate, nowMillis);
  return tokens < cost ? undefined : { tokens: tokens - cost, atMillis: nowMillis };
}

/** The bucket with `tokens` added. */
export const give = (bucket: Bucket, rate: BucketRate, tokens: number): Bucket => ({
  tokens: Math.min(rate.burst, bucket.tokens + tokens),
  atMillis: bucket.atMillis,
});

function tokensAt(bucket: Bucket, rate: BucketRate, nowMillis: number): number {
  const millis = Math.max(0, nowMillis - bucket.atMillis);
  // Multiplied first: whole milliseconds then lose no part of a token to rounding.
  return Math.min(rate.burst, bucket.tokens + (millis * rate.perSecond) / 1000);
}
