/** Settings for a graphics card's process or worker: plain data that is passed between processes. */
import type { Tuning } from '../../kernels/gpu/tune.ts';
import type { NetworkName } from '../../protocol/network.ts';

export type GpuSettings = {
  readonly network: NetworkName;
  /** Part of the adapter's name, where there are several. */
  readonly adapter: string | undefined;
  readonly unsafe: boolean;
  /** Tuning compiles and tries many kernels: seconds on a card, minutes on a software adapter. */
  readonly autoTune: boolean;
  readonly tuning: Tuning | undefined;
  /** Times the passes of the device, for --benchmark. */
  readonly timed: boolean;
};
