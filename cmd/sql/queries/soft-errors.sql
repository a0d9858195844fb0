-- Which pages answered 200 but look like an error, a parked domain or a login?
-- No row: no page looks like an error, a parked domain or a login
SELECT page_hint, url, title, word_count
FROM pages
WHERE page_hint IS NOT NULL AND page_hint <> 'scripts'
ORDER BY page_hint, url;
