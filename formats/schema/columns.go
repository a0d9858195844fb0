package schema

import "cmp"

// URLColumns are the columns that Common Crawl's cc-index derives from a URL.
type URLColumns struct {
	SURT                 string `parquet:"url_surtkey,delta" doc:"SURT key: host reversed by commas, then path and query; the sort key of every table"`
	URL                  string `parquet:"url,delta" doc:"canonical URL of the document"`
	HostName             string `parquet:"url_host_name,dict" doc:"host name without port"`
	HostTLD              string `parquet:"url_host_tld,optional,dict" doc:"last label of the host name; null for an IP address"`
	Host2ndLastPart      string `parquet:"url_host_2nd_last_part,optional,dict" doc:"second last label of the host name"`
	Host3rdLastPart      string `parquet:"url_host_3rd_last_part,optional,dict" doc:"third last label of the host name"`
	Host4thLastPart      string `parquet:"url_host_4th_last_part,optional,dict" doc:"fourth last label of the host name"`
	Host5thLastPart      string `parquet:"url_host_5th_last_part,optional,dict" doc:"fifth last label of the host name"`
	HostRegistrySuffix   string `parquet:"url_host_registry_suffix,optional,dict" doc:"public suffix, from the ICANN section of the list only"`
	HostRegisteredDomain string `parquet:"url_host_registered_domain,optional,dict" doc:"registry suffix plus one label"`
	HostPrivateSuffix    string `parquet:"url_host_private_suffix,optional,dict" doc:"public suffix, including the private section of the list"`
	HostPrivateDomain    string `parquet:"url_host_private_domain,optional,dict" doc:"private suffix plus one label: the unit of sharding"`
	HostNameReversed     string `parquet:"url_host_name_reversed,optional,dict" doc:"labels of the host name in reverse order, joined by dots"`
	Protocol             string `parquet:"url_protocol,dict" doc:"http or https"`
	Port                 int32  `parquet:"url_port,optional" doc:"port, unless it is the scheme's default"`
	Path                 string `parquet:"url_path,delta" doc:"path of the URL"`
	Query                string `parquet:"url_query,optional" doc:"query of the URL without the question mark"`
}

// CaptureColumns are the columns that Common Crawl's cc-index takes from a response and its WARC record, in its order, and
// the URL that was sent.
type CaptureColumns struct {
	FetchTime        Time   `parquet:"fetch_time,timestamp(microsecond)" vol:"1" doc:"when the request was written"`
	FetchStatus      int16  `parquet:"fetch_status" doc:"HTTP status"`
	FetchRedirect    string `parquet:"fetch_redirect,optional" doc:"absolute target of a redirect; null in pages, which are documents"`
	ContentDigest    string `parquet:"content_digest,optional" doc:"SHA-1 of the payload, base 32, without prefix"`
	MimeType         string `parquet:"content_mime_type,optional,dict" doc:"media type in the Content-Type header"`
	MimeDetected     string `parquet:"content_mime_detected,optional,dict" doc:"media type that the content shows"`
	Charset          string `parquet:"content_charset,optional,dict" doc:"character set from which an HTML, text, sitemap or feed document was decoded"`
	Languages        string `parquet:"content_languages,optional,dict" doc:"ISO-639-3 codes, comma separated, most likely first"`
	Truncated        string `parquet:"content_truncated,optional,dict" doc:"null, or why the record lacks content: length, time, disconnect; unspecified if noarchive forbids keeping it"`
	WARCFilename     string `parquet:"warc_filename,dict" vol:"1" doc:"key of the WARC file in the store; in pages, of the file with the payload"`
	WARCRecordOffset int32  `parquet:"warc_record_offset" vol:"1" doc:"offset of the record's gzip member, bytes"`
	WARCRecordLength int32  `parquet:"warc_record_length" vol:"1" doc:"length of the record's gzip member, bytes"`
	WARCSegment      string `parquet:"warc_segment,dict" vol:"1" doc:"partition that fetched the URL, such as part-00017"`
	Sent             string `parquet:"sent,optional" doc:"URL that was sent, and the record's WARC-Target-URI: url with path and query as they were linked; null: url itself"`
}

// Capture is a row of the captures dataset: a stored response, including redirect hops and
// robots.txt. The dataset is partitioned by crawl, subset and round. The columns warc_* locate the
// WARC record of the capture. For a revisit, payload_warc_* locate the record with the payload.
type Capture struct {
	URLColumns
	CaptureColumns
	Revisit          Revisit `parquet:"revisit,optional,dict" vol:"1" doc:"null, or why the record holds no payload: identical_payload, not_modified"`
	PayloadFilename  string  `parquet:"payload_warc_filename,optional,dict" vol:"1" doc:"for a revisit: key of the WARC file with the payload"`
	PayloadRecordOff int32   `parquet:"payload_warc_record_offset,optional" vol:"1" doc:"for a revisit: offset of the record with the payload, bytes"`
	PayloadRecordLen int32   `parquet:"payload_warc_record_length,optional" vol:"1" doc:"for a revisit: length of the record with the payload, bytes"`
}

// Asked returns the URL that was sent, which is the WARC-Target-URI of the record.
func (c *Capture) Asked() string { return cmp.Or(c.Sent, c.URL) }
