-- Which pages were fetched again, and how many of these fetches found another content? All of them are counted in each row.
-- No row: no URL was fetched twice, so nothing can have changed: a later round or month fetches a URL again when it is due
SELECT url, changes, fetches, last_fetched,
  count(*) OVER () AS urls_fetched_again, count(CASE WHEN changes > 0 THEN 1 END) OVER () AS urls_changed
FROM urls
WHERE fetches > 1
ORDER BY changes DESC, url
LIMIT 1000;
