-- Which WARC records hold the HTML pages of this domain, as a query that was written for Common Crawl's cc-index asks?
-- No row: no HTML page of this domain is stored (domain-health)
SELECT url, warc_filename, warc_record_offset, warc_record_length
FROM ccindex
WHERE subset = 'warc'
  AND url_host_private_domain = '{domain}'
  AND content_mime_detected = 'text/html'
  AND fetch_status = 200
ORDER BY url, warc_filename, warc_record_offset;
