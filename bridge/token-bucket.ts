/** A token bucket over a clock passed in: bounds checks, requests and logins per connection and overall. */

export type Bucket = { readonly tokens: number; readonly atMillis: number };
export type BucketRate = { readonly perSecond: number; readonly burst: number };

export const fullBucket = (rate: BucketRate, nowMillis: number): Bucket => ({
  tokens: rate.burst,
  atMillis: nowMillis,
});

/** The bucket after taking `cost`, or undefined when it does not hold that much. A clock going back refills nothing. */
export function take(bucket: Bucket, rate: BucketRate, nowMillis: number, cost = 1): Bucket | undefined {
  const seconds = Math.max(0, nowMillis - bucket.atMillis) / 1000;
  const tokens = Math.min(rate.burst, bucket.tokens + seconds * rate.perSecond);
  return tokens < cost ? undefined : { tokens: tokens - cost, atMillis: nowMillis };
}
