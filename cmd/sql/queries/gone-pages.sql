-- Which pages were captured before, and answered 404 or 410, or with a soft 404, since then? (Needs --all-months to compare months.)
-- No row: no page that was captured in the opened rounds has gone since. One month alone rarely fetches a page twice: add --all-months
SELECT g.url, g.last_crawl, g.last_round, g.crawl, g.round
FROM page_changes g
LEFT JOIN page_changes back ON back.url = g.url AND back.change <> 'gone'
  AND (back.crawl > g.crawl OR back.crawl = g.crawl AND back.round > g.round)
WHERE g.change = 'gone' AND back.url IS NULL
ORDER BY g.url, g.crawl, g.round;
