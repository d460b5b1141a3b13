/** For people without a wallet: an address made in the page. The words are shown once, checked, and kept nowhere. */
import { useRef, useState } from 'preact/hooks';
import type { NetworkName } from '../../protocol/network.ts';
import { useHeadFocus } from '../view/focus.ts';
import { say } from '../view/say.ts';
import type { NewAddress } from './new-address.ts';

type Stage =
  | { readonly name: 'offer'; readonly problem?: string }
  | { readonly name: 'words'; readonly made: NewAddress }
  | { readonly name: 'check'; readonly made: NewAddress; readonly asked: readonly number[]; readonly wrong: boolean }
  | { readonly name: 'done'; readonly address: string };

/** Said each time, though the text stays the same. */
const WRONG = 'These words do not match. Check your sheet.';

export function MakeAddress({ network, onAddress }: { network: NetworkName; onAddress(address: string): void }) {
  const [stage, setStage] = useState<Stage>({ name: 'offer' });
  const head = useHeadFocus(stage.name);
  const form = useRef<HTMLFormElement>(null);
  const make = async () => {
    try {
      const { newAddress } = await import('./new-address.ts');
      setStage({ name: 'words', made: await newAddress(network) });
    } catch (error) {
      setStage({ name: 'offer', problem: (error as Error).message });
    }
  };
  const ask = async (made: NewAddress) => {
    const { questionsFor } = await import('./new-address.ts');
    setStage({ name: 'check', made, asked: questionsFor(made.words.length), wrong: false });
  };
  const check = async ({ made, asked }: Extract<Stage, { name: 'check' }>) => {
    const { isAnswered } = await import('./new-address.ts');
    const answers = [...(form.current?.querySelectorAll('input') ?? [])].map((input) => input.value);
    if (!isAnswered(made.words, asked, answers)) {
      setStage({ name: 'check', made, asked, wrong: true });
      say(WRONG);
      return;
    }
    setStage({ name: 'done', address: made.address });
    onAddress(made.address);
  };

  if (stage.name === 'offer')
    return (
      <section class="card">
        <h2 ref={head} tabIndex={-1}>
          No address yet?
        </h2>
        <p>
          Make one here. You get 24 words, which are your wallet. The page does not keep them and sends them nowhere, so
          there is no other copy. To spend what you mined, enter them in <code>svc-wallet restore</code> later. For
          large amounts, make the wallet with <code>svc-wallet</code> on your own machine instead.
        </p>
        <button type="button" onClick={() => void make()}>
          Make an address
        </button>
        {stage.problem === undefined ? null : (
          <p class="bad" role="alert">
            {stage.problem}
          </p>
        )}
      </section>
    );
  if (stage.name === 'words') {
    const { made } = stage;
    return (
      <section class="card sheet">
        <h2 ref={head} tabIndex={-1}>
          Your 24 words
        </h2>
        <p class="warn">
          Write them down in this order. Anyone who has them can take your coins; without them your coins are lost. They
          are not shown again once you have finished here.
        </p>
        <ol class="words">
          {made.words.map((word, i) => (
            <li key={i} class="mono">
              {word}
            </li>
          ))}
        </ol>
        <p>
          Address ({network}): <span class="mono long">{made.address}</span>
        </p>
        <div class="row unprinted">
          <button type="button" class="primary" onClick={() => void ask(made)}>
            I have written them down
          </button>
          <button type="button" onClick={() => print()}>
            Print this sheet
          </button>
          <button type="button" onClick={() => setStage({ name: 'offer' })}>
            Discard them
          </button>
        </div>
      </section>
    );
  }
  if (stage.name === 'check')
    return (
      <section class="card">
        <h2 ref={head} tabIndex={-1}>
          Your 24 words
        </h2>
        <form
          ref={form}
          class="row"
          autocomplete="off"
          onSubmit={(event) => {
            event.preventDefault();
            void check(stage);
          }}
        >
          {stage.asked.map((place) => (
            <label key={place}>
              Word {place + 1}
              <input
                required
                autocomplete="off"
                autocapitalize="off"
                spellcheck={false}
                data-lpignore="true"
                aria-invalid={stage.wrong}
                aria-describedby="words-problem"
              />
            </label>
          ))}
          <button type="submit" class="primary">
            Check
          </button>
          <button type="button" onClick={() => setStage({ name: 'words', made: stage.made })}>
            Show them again
          </button>
        </form>
        <p id="words-problem" class="bad">
          {stage.wrong ? WRONG : ''}
        </p>
      </section>
    );
  return (
    <section class="card">
      <h2 ref={head} tabIndex={-1}>
        Your address is ready
      </h2>
      <p role="status">
        <span class="mono long">{stage.address}</span> has been entered in the form. The words are no longer on this
        page.
      </p>
    </section>
  );
}
