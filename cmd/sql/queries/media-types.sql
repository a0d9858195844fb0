-- Which media types were fetched, and which were not stored?
SELECT content_mime_detected, outcome, count(*) AS urls, sum(wire_bytes) AS bytes
FROM fetches
WHERE outcome IN ('ok', 'mime_filtered')
GROUP BY content_mime_detected, outcome
ORDER BY urls DESC, content_mime_detected, outcome;
