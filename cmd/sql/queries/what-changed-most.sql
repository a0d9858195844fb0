-- Which pages changed their text most since their last capture? It shows 1,000. (Needs --all-months to compare months.)
-- No row: no page changed its text between two captures in the opened rounds. One month alone rarely fetches a page twice: add --all-months
SELECT url, distance, title_changed, last_crawl, last_round, crawl, round
FROM page_changes
WHERE change = 'text'
ORDER BY distance DESC, url, crawl, round
LIMIT 1000;
