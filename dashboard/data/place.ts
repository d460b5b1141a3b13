/** The place that the address of the page names, followed. */
import { useEffect, useState } from 'preact/hooks';
import { type Place, placeOf } from '../router.ts';

export function usePlace(): Place {
  const [place, setPlace] = useState(() => placeOf(location.hash, location.pathname));
  useEffect(() => {
    const follow = () => {
      setPlace(placeOf(location.hash, location.pathname));
      document.getElementById('main')?.focus();
    };
    addEventListener('hashchange', follow);
    setPlace(placeOf(location.hash, location.pathname)); // it may have changed since the page was drawn
    return () => removeEventListener('hashchange', follow);
  }, []);
  return place;
}
