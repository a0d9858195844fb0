-- Which documents are largest?
SELECT url, content_mime_detected, content_bytes, word_count, content_truncated
FROM pages
ORDER BY content_bytes DESC, url
LIMIT 100;
