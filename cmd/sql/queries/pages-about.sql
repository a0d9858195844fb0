-- Which pages are about this term, a word or two neighbouring words?
-- No row: it is no topic of a page: the topics are in lower case, without stop words
SELECT array_position(topics, '{term}') AS place, url, title, language, inlinks, crawl, round
FROM pages
WHERE array_position(topics, '{term}') > 0 AND duplicate_of IS NULL
ORDER BY place, inlinks DESC, url, crawl, round
LIMIT 100;
