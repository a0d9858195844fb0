-- Which pages do most pages link to?
SELECT url, title, inlinks
FROM pages
WHERE duplicate_of IS NULL
ORDER BY inlinks DESC, url, title
LIMIT 100;
