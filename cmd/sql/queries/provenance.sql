-- Where does this URL come from: which source listed it, or which page links to it?
-- No row: no source listed this URL and no page links to it (why-not-crawled)
SELECT url, first_seen, depth, listed_first_source, listed_first_at, listed_first_round, listed_last_source, listed_last_at, listed_last_round, first_source
FROM urls
WHERE url IN ('{url}');
