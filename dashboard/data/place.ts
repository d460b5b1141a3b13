/** The place that the address of the page names, followed. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { type Place, placeOf } from '../router.ts';

/** The page stays, and with it the focus on the link that was chosen. */
const isOtherTab = (a: Place, b: Place): boolean =>
  a.page === 'miner' && b.page === 'miner' && a.address !== undefined && a.address === b.address;

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash, location.pathname));
  const isMoved = useRef(false);
  useEffect(() => {
    const follow = () =>
      setPlace((before) => {
        const place = placeOf(location.hash, location.pathname);
        isMoved.current = !isOtherTab(before, place);
        return place;
      });
    addEventListener('hashchange', follow);
    setPlace(placeOf(location.hash, location.pathname)); // it may have changed since the page was drawn
    return () => removeEventListener('hashchange', follow);
  }, []);
  // Once the new page is drawn: `main` then has its name, which is read aloud.
  useEffect(() => {
    if (isMoved.current) document.getElementById('main')?.focus();
    isMoved.current = false;
  }, [place]);
  return place;
}
