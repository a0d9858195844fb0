-- Where in the WARC files are the responses of this URL?
-- No row: no response of this URL is stored (why-not-crawled)
SELECT crawl, round, fetch_status, revisit, coalesce(payload_warc_filename, warc_filename) AS file,
  coalesce(payload_warc_record_offset, warc_record_offset) AS record_offset,
  coalesce(payload_warc_record_length, warc_record_length) AS record_length
FROM captures
WHERE url IN ('{url}')
ORDER BY crawl, round, file, record_offset;
