-- Why were found URLs not planned?
-- No row: no found URL was skipped
SELECT reason, detail, count(DISTINCT url) AS urls, min(url) AS example
FROM skips
GROUP BY reason, detail
ORDER BY urls DESC, reason, detail;
