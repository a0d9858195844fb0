-- Which pages changed since an earlier round or month? (Needs --all-months to compare months.)
SELECT url, changes, fetches, last_fetched
FROM urls
WHERE changes > 0
ORDER BY changes DESC, url
LIMIT 1000;
