-- Which pages hold articles rather than lists of links?
SELECT url, title, word_count, outlinks, published_at
FROM pages
WHERE page_hint IS NULL AND link_density < 0.5 AND word_count >= 100 AND duplicate_of IS NULL
ORDER BY word_count DESC, url
LIMIT 1000;
