/** For people without a wallet: an address made in the page. The words are shown once, checked, and kept nowhere. */

import { useRef, useState } from 'preact/hooks';
import type { NetworkName } from '../../protocol/network.ts';
import { useHeadFocus } from '../view/focus.ts';
import { say } from '../view/say.ts';
import { word, wordAround } from '../words/language.ts';
import type { NewAddress } from './new-address.ts';

type Stage =
  | { readonly name: 'offer'; readonly problem?: string }
  | { readonly name: 'words'; readonly made: NewAddress }
  | { readonly name: 'check'; readonly made: NewAddress; readonly asked: readonly number[]; readonly wrong: boolean }
  | { readonly name: 'done'; readonly address: string };

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
      // Each time, though the text stays the same.
      say(word('make.wrong'));
      return;
    }
    setStage({ name: 'done', address: made.address });
    onAddress(made.address);
  };

  if (stage.name === 'offer')
    return (
      <section class="card">
        <h2 ref={head} tabIndex={-1}>
          {word('make.title')}
        </h2>
        <p>
          {wordAround('make.explained', {
            restore: <code>svc-wallet restore</code>,
            wallet: <code>svc-wallet</code>,
          })}
        </p>
        <button type="button" onClick={() => void make()}>
          {word('make.button')}
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
          {word('make.words')}
        </h2>
        <p class="warn">{word('make.warning')}</p>
        <ol class="words">
          {made.words.map((each, i) => (
            <li key={i} class="mono">
              {each}
            </li>
          ))}
        </ol>
        <p>
          {word('make.address', { network })} <span class="mono long">{made.address}</span>
        </p>
        <div class="row unprinted">
          <button type="button" class="primary" onClick={() => void ask(made)}>
            {word('make.written')}
          </button>
          <button type="button" onClick={() => print()}>
            {word('make.print')}
          </button>
          <button type="button" onClick={() => setStage({ name: 'offer' })}>
            {word('make.discard')}
          </button>
        </div>
      </section>
    );
  }
  if (stage.name === 'check')
    return (
      <section class="card">
        <h2 ref={head} tabIndex={-1}>
          {word('make.words')}
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
              {word('make.word', { place: place + 1 })}
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
            {word('make.check')}
          </button>
          <button type="button" onClick={() => setStage({ name: 'words', made: stage.made })}>
            {word('make.again')}
          </button>
        </form>
        <p id="words-problem" class="bad">
          {stage.wrong ? word('make.wrong') : ''}
        </p>
      </section>
    );
  return (
    <section class="card">
      <h2 ref={head} tabIndex={-1}>
        {word('make.ready')}
      </h2>
      <p role="status">{wordAround('make.entered', { address: <span class="mono long">{stage.address}</span> })}</p>
    </section>
  );
}
