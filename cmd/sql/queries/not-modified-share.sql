-- How often did a server answer 304 and save the transfer?
SELECT crawl, round, count(*) AS requests, count(CASE WHEN http_status = 304 THEN 1 END) AS not_modified,
  round(100 * CAST(count(CASE WHEN http_status = 304 THEN 1 END) AS DOUBLE) / count(*), 1) AS percent
FROM requests
WHERE purpose = 'page'
GROUP BY crawl, round
ORDER BY crawl, round;
