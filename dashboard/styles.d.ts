/** Style sheets are imported for their effect alone; vite puts them into the page. */
declare module '*.css';
