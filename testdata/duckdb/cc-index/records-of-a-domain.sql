-- file, offset and length of the WARC records of a domain, for range requests
SELECT url, warc_filename, warc_record_offset,
       warc_record_offset + warc_record_length - 1 AS last_byte
FROM "ccindex"."ccindex"
WHERE crawl = 'CC-MAIN-2018-05' AND subset = 'warc' AND url_host_registered_domain = 'example.org'
ORDER BY url_surtkey;
