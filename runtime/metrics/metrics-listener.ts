/** `GET /metrics` and nothing else, for programs that have no other HTTP listener. */
import { sharedInFlight } from '../clients/in-flight.ts';
import type { ListenAddress } from '../command-line/command-line.ts';
import { listenSmall, type SmallListenerDependencies } from '../door/small-listener.ts';
import type { Metrics } from './metrics.ts';

export const METRICS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

export function listenForMetrics(
  address: ListenAddress,
  { metrics, ...dependencies }: SmallListenerDependencies & { readonly metrics: Metrics },
) {
  const gather = sharedInFlight(() => metrics.text());
  const answer = () =>
    gather().then(
      (body) => ({ status: 200, body, headers: { 'content-type': METRICS_CONTENT_TYPE } }),
      (error: unknown) => {
        dependencies.log.error('metrics could not be gathered', { error });
        return { status: 500, body: 'metrics could not be gathered\n' };
      },
    );
  const what = { name: 'metrics', what: 'metrics', offers: 'only /metrics is here' };
  return listenSmall(address, { ...what, routes: { '/metrics': { answer } } }, dependencies);
}
