package schema

// Fetch is a row of the fetches dataset: a planned URL with its outcome.
type Fetch struct {
	SURT           string  `parquet:"url_surtkey,delta" doc:"SURT key of the planned URL"`
	URL            string  `parquet:"url,delta" doc:"canonical URL as planned"`
	Host           string  `parquet:"host,dict" doc:"host name, with its port unless 80 or 443"`
	Domain         string  `parquet:"domain,dict" doc:"registered domain, private suffixes counted"`
	Outcome        Outcome `parquet:"outcome,dict" doc:"how the fetch of the URL ended"`
	Attempts       int32   `parquet:"attempts" vol:"1" doc:"requests sent for the URL, without redirect hops"`
	HTTPStatus     int16   `parquet:"http_status,optional" doc:"status of the last response"`
	Error          string  `parquet:"error,optional" vol:"1" doc:"short phrase that says what failed, without host, address and number, so that errors can be grouped"`
	ErrorDetail    string  `parquet:"error_detail,optional" vol:"1" doc:"details of the error: host, address, URL, numbers, the message of a library"`
	RobotsAllowed  *bool   `parquet:"robots_allowed,optional" doc:"verdict of robots.txt; null if robots.txt was not consulted"`
	RobotsRule     string  `parquet:"robots_rule,optional,dict" doc:"line of robots.txt that decided; null: no rule matched"`
	Priority       int32   `parquet:"priority" doc:"priority as planned, 0 to 1000"`
	Depth          int32   `parquet:"depth" doc:"links from the nearest source URL"`
	FetchedAt      Time    `parquet:"fetched_at,optional,timestamp(microsecond)" vol:"1" doc:"when the last request was written"`
	RecordedAt     Time    `parquet:"recorded_at,timestamp(microsecond)" vol:"1" doc:"when the outcome was decided"`
	TotalMS        *int64  `parquet:"total_ms,optional" vol:"1" doc:"time from the last request to the end of its response, milliseconds; null if no request was sent"`
	TotalUS        *int64  `parquet:"total_us,optional" vol:"1" doc:"the same, microseconds"`
	WireBytes      int64   `parquet:"wire_bytes,optional" vol:"1" doc:"bytes received for all requests of the URL, heads included"`
	ContentBytes   int64   `parquet:"content_bytes,optional" doc:"bytes of the decoded document"`
	ContentDigest  string  `parquet:"content_digest,optional" doc:"SHA-1 of the payload, base 32"`
	Truncated      string  `parquet:"content_truncated,optional,dict" doc:"null, or why the record lacks content: length, time, disconnect; unspecified if noarchive forbids keeping it"`
	MimeType       string  `parquet:"content_mime_type,optional,dict" doc:"media type as declared"`
	MimeDetected   string  `parquet:"content_mime_detected,optional,dict" doc:"media type that the content of a 2xx response shows; also for the outcome mime_filtered"`
	RedirectTarget string  `parquet:"redirect_target,optional" doc:"canonical target of a redirect that only the frontier follows"`
	RedirectSent   string  `parquet:"redirect_sent,optional" doc:"redirect_target as the server wrote it; null: redirect_target itself"`
	Redirects      int32   `parquet:"redirects" doc:"redirects followed"`
	FinalURL       string  `parquet:"final_url,optional" doc:"canonical URL of the last response"`
	ETag           string  `parquet:"etag,optional" doc:"ETag of the last response"`
	LastModified   string  `parquet:"last_modified,optional" vol:"1" doc:"Last-Modified of the last response, as sent"`
	WARCFilename   string  `parquet:"warc_filename,optional,dict" vol:"1" doc:"key of the WARC file with the last response"`
	WARCRecordOff  int32   `parquet:"warc_record_offset,optional" vol:"1" doc:"offset of the record in the WARC file, bytes"`
	WARCRecordLen  int32   `parquet:"warc_record_length,optional" vol:"1" doc:"length of the record in the WARC file, bytes"`
	PlannedRow     int32   `parquet:"planned_row" vol:"1" doc:"row in the partition's plan file, from 0"`
	RetryAfterMS   *int64  `parquet:"retry_after_ms,optional" vol:"1" doc:"Retry-After of the last response, milliseconds; null if the field is missing"`
	Revisit        Revisit `parquet:"revisit,optional,dict" vol:"1" doc:"null, or why the WARC record holds no payload: identical_payload, not_modified"`
	BlockedBy      string  `parquet:"blocked_by,optional,dict" doc:"service that refused the request (outcome blocked), or that made the host suspended (host_suspended), such as cloudflare; other: the page only says that access is denied"`
	Price          string  `parquet:"price,optional,dict" doc:"price that a response with status 402 states (header field crawler-price), such as USD 0.01"`

	Form // as planned

	Listing `json:"-"` // not stored in checkpoints, because the plan has it

	PlannedFor DueReason `parquet:"planned_for,optional,dict" vol:"1" json:"-" doc:"why the plan took a known URL that was due: its column due_reason in urls; null for a URL that was due at once"` // as Listing
}

// Listing says which sources listed a URL: the first entry of the earliest plan that accepted the
// URL from a source, and the last entry of the latest such plan. Within a plan, entries come in the
// order of its sources. The columns are null for a URL that no source listed.
type Listing struct {
	ListedFirstSource string `parquet:"listed_first_source,optional,dict" vol:"1" doc:"file or other source that listed the URL first, without credentials; null if none did: the URL was found by links, redirects or sitemaps that robots.txt names"`
	ListedFirstAt     string `parquet:"listed_first_at,optional" doc:"place in listed_first_source: number of the line, row, record or entry, from 1, or the key of a row in a database"`
	ListedFirstRound  string `parquet:"listed_first_round,optional,dict" doc:"crawl and round of the first plan that took the URL from a source, such as 2026-11.0"`
	ListedLastSource  string `parquet:"listed_last_source,optional,dict" vol:"1" doc:"file or other source that listed the URL last"`
	ListedLastAt      string `parquet:"listed_last_at,optional" doc:"place in listed_last_source"`
	ListedLastRound   string `parquet:"listed_last_round,optional,dict" doc:"crawl and round of the last plan that took the URL from a source"`
}

// Request is a row of the requests dataset: a request, with its times, addresses and sizes.
// BytesSent is 0 if the request got no connection and was not sent.
type Request struct {
	Purpose       Purpose `parquet:"purpose,dict" doc:"page, redirect, robots, sitemap or probe"`
	URL           string  `parquet:"url,delta" doc:"canonical URL of the request"`
	Sent          string  `parquet:"sent,optional" doc:"URL that was sent, of which robots.txt was asked: url with path and query as they were linked; null: url itself"`
	PlannedURL    string  `parquet:"planned_url,optional" doc:"planned URL for which the request was sent"`
	RobotsFor     string  `parquet:"robots_for,optional" doc:"URL of the robots.txt whose redirects led to this request for a robots.txt; null without redirects, and for other purposes"`
	Host          string  `parquet:"host,dict" doc:"host name, with its port unless 80 or 443"`
	Address       string  `parquet:"address,optional,dict" vol:"1" doc:"IP address and port of the server"`
	Start         Time    `parquet:"start,timestamp(microsecond)" vol:"1" doc:"when the request was written or, without a connection (bytes_sent 0), when the attempt to connect began"`
	GapMS         *int64  `parquet:"gap_ms,optional" vol:"1" doc:"time since the previous request to the host was written, milliseconds; null for the first request to the host in an attempt (epoch), and for a request that was not written; the command host computes it across attempts"`
	DelayMS       int64   `parquet:"delay_ms" vol:"1" doc:"current delay between requests to the host, milliseconds"`
	RobotsRule    string  `parquet:"robots_rule,optional,dict" doc:"line of robots.txt that allowed the request; null: no rule matched"`
	RobotsDigest  string  `parquet:"robots_digest,optional,dict" doc:"SHA-1 of the robots.txt that applied, base 32; null if there is none (4xx), and for requests for robots.txt"`
	RobotsFile    string  `parquet:"robots_warc_filename,optional,dict" vol:"1" doc:"key of the WARC file with the response to the request for the robots.txt that applied, possibly from an earlier round; null for requests for robots.txt"`
	RobotsOffset  int32   `parquet:"robots_warc_record_offset,optional" vol:"1" doc:"offset of the record in the WARC file, bytes"`
	RobotsLength  int32   `parquet:"robots_warc_record_length,optional" vol:"1" doc:"length of the record in the WARC file, bytes"`
	Status        int16   `parquet:"http_status,optional" doc:"HTTP status; null if there was no response"`
	Error         string  `parquet:"error,optional" vol:"1" doc:"short phrase that says what failed, without host, address and number, so that errors can be grouped"`
	ErrorDetail   string  `parquet:"error_detail,optional" vol:"1" doc:"details of the error: host, address, URL, numbers, the message of a library"`
	ErrorClass    string  `parquet:"error_class,optional,dict" doc:"outcome class of the failure: dns_error, connect_error, tls_error, timeout, protocol_error; blocked: there was a response, but a service in front of the site sent it (error_detail has its name); null if the crawl itself aborted the request"`
	QueueMS       int64   `parquet:"queue_ms" vol:"1" doc:"time by which the request started later than it was due, milliseconds"`
	DNSMS         *int64  `parquet:"dns_ms,optional" vol:"1" doc:"time of the name resolution, milliseconds; null: not needed (connection reused, address given)"`
	DNSUS         *int64  `parquet:"dns_us,optional" vol:"1" doc:"the same, microseconds"`
	ConnectMS     *int64  `parquet:"connect_ms,optional" vol:"1" doc:"time of the TCP connect, milliseconds; null: not tried (connection reused, no address)"`
	ConnectUS     *int64  `parquet:"connect_us,optional" vol:"1" doc:"the same, microseconds"`
	TLSMS         *int64  `parquet:"tls_ms,optional" vol:"1" doc:"time of the TLS handshake, milliseconds; null: not tried (connection reused, http)"`
	TLSUS         *int64  `parquet:"tls_us,optional" vol:"1" doc:"the same, microseconds"`
	FirstByteMS   *int64  `parquet:"first_byte_ms,optional" vol:"1" doc:"time from request to first byte of the response, milliseconds; null: no response"`
	FirstByteUS   *int64  `parquet:"first_byte_us,optional" vol:"1" doc:"the same, microseconds"`
	TotalMS       int64   `parquet:"total_ms" vol:"1" doc:"time from start to the end of the response, or of the attempt to connect, milliseconds"`
	TotalUS       *int64  `parquet:"total_us,optional" vol:"1" doc:"the same, microseconds"`
	BytesSent     int64   `parquet:"bytes_sent" vol:"1" doc:"bytes of the request; 0: the request was not sent, because there was no connection (error_class says why)"`
	BytesReceived int64   `parquet:"bytes_received" vol:"1" doc:"bytes of the response before decoding"`
	Attempt       int32   `parquet:"attempt" vol:"1" doc:"number of the attempt at this URL, from 1"`
	Epoch         int32   `parquet:"epoch" vol:"1" doc:"epoch of the fetch task that sent the request"`
	Certificate   string  `parquet:"certificate,optional,dict" doc:"what is wrong with the server's certificate: expired, not_yet_valid, untrusted (self-signed, chain incomplete), other_name (for other hosts); several are separated by commas; null: nothing, or no TLS"`
	Warnings      string  `parquet:"warnings,optional" doc:"malformed parts of a response that was read nevertheless"`
}

// Page is a row of the pages dataset: a successfully fetched document. The stages fetch and merge
// leave the columns zero that the stages dedup and rank compute. The stage publish fills these
// columns.
type Page struct {
	PageColumns
	TDMReserved   *bool    `parquet:"tdm_reservation,optional" doc:"whether the rights of text and data mining are reserved (TDMRep); null: not stated"`
	LinkDensity   *float64 `parquet:"link_density,optional" doc:"share of the visible text that is inside links, 0 to 1; null if there is no text, or the document is not HTML"`
	StopWordRatio *float64 `parquet:"stopword_ratio,optional" doc:"share of function words (the, of …) among the words of the main text, 0 to 1; null if no function words are known for the language"`
	TextRatio     *float64 `parquet:"text_ratio,optional" doc:"bytes of visible text per byte of the document, both as UTF-8; null if the document is not HTML"`
	Changed       *bool    `parquet:"changed,optional" doc:"whether the content differs from the last fetch; null for the first fetch"`

	// The frontier stage computes these columns, because it knows the last capture.
	Change         Change `parquet:"change,optional,dict" doc:"change since the URL's last capture: new (first capture), none (equal payload), cosmetic (same main text), text (another main text), gone (this page is a soft_404); null: that content is not known"`
	ChangeDistance *int32 `parquet:"change_distance,optional" doc:"differing bits of the SimHashes of both main texts, 0 to 64; null unless two captures are compared"`
	TitleChanged   *bool  `parquet:"title_changed,optional" doc:"whether the titles of both captures differ; null unless two captures are compared"`
	LinksAdded     *int32 `parquet:"links_added,optional" doc:"number of link targets that the last capture lacks, estimated; 0 if the payloads are equal; null unless two captures are compared, and all links of both are known (none was cut)"`
	LinksRemoved   *int32 `parquet:"links_removed,optional" doc:"number of link targets that only the last capture has, estimated as links_added; links_added - links_removed is exact"`

	// Merge computes this column, because fetch tasks of other machines need no model then.
	Focus *float64 `parquet:"focus,optional" doc:"score of the page by the weighted terms of frontier.focus: title, description and the terms of the main text; null without a model"`

	Soft404Family bool `parquet:"soft_404_family" doc:"whether the host sends this text, or nearly this text, at 10 paths or more but not at /: status 200, 10 words or more, no other canonical_url, no page_hint but soft_404"`
}

// PageColumns holds the columns of the pages dataset, except the nullable columns that distinguish
// 0 from null.
type PageColumns struct {
	URLColumns
	CaptureColumns
	Certificate        string   `parquet:"certificate,optional,dict" doc:"what is wrong with the certificate of the server that sent the page, as in requests; a page of a server whose certificate is for other hosts (other_name) has no text and is no duplicate, because it is mostly not this host's"`
	DocumentKind       string   `parquet:"document_kind,optional,dict" doc:"how the document was parsed: html, text, sitemap, feed; other: only the type is known"`
	Title              string   `parquet:"title,optional" doc:"text of the title element"`
	Description        string   `parquet:"description,optional" doc:"meta description"`
	Keywords           string   `parquet:"keywords,optional" doc:"meta keywords"`
	Author             string   `parquet:"author,optional" doc:"names of the authors, comma separated: from meta author, or else JSON-LD, another meta element, itemprop author, a link with rel author"`
	Language           string   `parquet:"language,optional,dict" doc:"ISO-639-3 code of the document's main language"`
	LanguageSource     string   `parquet:"language_source,optional,dict" doc:"source of language: html (lang of the html element), header (Content-Language), meta, feed, or text (detected: nothing is declared, or the script or the words of the text contradict it)"`
	CanonicalURL       string   `parquet:"canonical_url,optional" doc:"canonical URL that the page declares: in a link element of its head (or directly in its body), or else in a Link header field"`
	RefreshURL         string   `parquet:"refresh_url,optional" doc:"canonical URL to which the page refreshes: from a Refresh header field, or else from meta http-equiv"`
	OGTitle            string   `parquet:"og_title,optional" doc:"Open Graph title"`
	OGDescription      string   `parquet:"og_description,optional" doc:"Open Graph description"`
	OGImage            string   `parquet:"og_image,optional" doc:"canonical URL of the first Open Graph image"`
	OGType             string   `parquet:"og_type,optional,dict" doc:"Open Graph type, lower case"`
	OGURL              string   `parquet:"og_url,optional" doc:"canonical form of the Open Graph url"`
	OGSiteName         string   `parquet:"og_site_name,optional,dict" doc:"Open Graph site_name"`
	OGLocale           string   `parquet:"og_locale,optional,dict" doc:"Open Graph locale, as given, such as en_US"`
	TwitterCard        string   `parquet:"twitter_card,optional,dict" doc:"Twitter card type, lower case: summary, summary_large_image, app, player"`
	TwitterTitle       string   `parquet:"twitter_title,optional" doc:"Twitter card title; if null, og_title applies"`
	TwitterDescription string   `parquet:"twitter_description,optional" doc:"Twitter card description; if null, og_description applies"`
	TwitterImage       string   `parquet:"twitter_image,optional" doc:"canonical URL of the Twitter card image; if null, og_image applies"`
	TwitterSite        string   `parquet:"twitter_site,optional,dict" doc:"Twitter account of the site, such as @example"`
	TwitterCreator     string   `parquet:"twitter_creator,optional,dict" doc:"Twitter account of the author, such as @example"`
	JSONLD             string   `parquet:"json_ld,optional" doc:"JSON-LD as a JSON list of at most 16 objects in page order with type (list), headline, name, datePublished, dateModified (as given), author (list of names), breadcrumb (list of name, url); at most 16 KiB"`
	PublishedAt        Time     `parquet:"published_at,optional,timestamp(microsecond)" doc:"publication date that the page states, in UTC unless the page names a zone"`
	PublishedSource    string   `parquet:"published_source,optional,dict" doc:"source of published_at, best first: open_graph, json_ld, microdata, meta, time (element), url (its path)"`
	ModifiedAt         Time     `parquet:"modified_at,optional,timestamp(microsecond)" doc:"modification date that the page states, in UTC unless the page names a zone; the date of the file is in last_modified"`
	ModifiedSource     string   `parquet:"modified_source,optional,dict" doc:"source of modified_at, best first: open_graph, json_ld, microdata, meta, time (element); feed: the date of a feed itself"`
	Favicon            string   `parquet:"favicon,optional,dict" doc:"canonical URL of the first icon that the page names: rel icon, else apple-touch-icon, else apple-touch-icon-precomposed"`
	Generator          string   `parquet:"generator,optional,dict" doc:"meta generator: the software that made the page"`
	Robots             string   `parquet:"robots,optional,dict" doc:"meta robots and X-Robots-Tag directives that apply, comma separated"`
	Indexable          bool     `parquet:"indexable" doc:"false if the page says noindex, or if the page was fetched after its unavailable_after date"`
	Unavailable        Time     `parquet:"unavailable_after,optional,timestamp(microsecond)" doc:"date after which the page may not be shown, from its directives"`
	ContentSignal      string   `parquet:"content_signal,optional,dict" doc:"content signals that apply, from robots.txt and the header, sorted by name, such as ai-train=no,search=yes"`
	TDMPolicy          string   `parquet:"tdm_policy,optional,dict" doc:"URL of the policy for text and data mining, as given"`
	WordCount          int32    `parquet:"word_count" doc:"words of the main text; package stages/parse/text defines what a word is in each script"`
	Scripts            []string `parquet:"scripts,list" doc:"ISO 15924 codes of the scripts of the main text's words, the script with the most words first; Zyyy means numbers"`
	ScriptWords        []int32  `parquet:"script_words,list" doc:"number of words for each entry of scripts"`
	PageHint           PageHint `parquet:"page_hint,optional,dict" doc:"kind of page that the server seems to send instead of content: soft_404, parked, default_page, under_construction, blocked, scripts (the content is not in the document: a browser would make it); null: the page looks like content"`
	Topics             []string `parquet:"topics,list" doc:"up to 15 words and pairs of words of the main text with the highest TF-IDF among the pages of the language, the highest first (package formats/topics)"`
	TextDigest         string   `parquet:"text_digest,optional" doc:"SHA-1 of the normalised main text, base 32; null for an empty text"`
	SimHash            int64    `parquet:"simhash" doc:"64-bit SimHash of the normalised main text, as package formats/simhash defines it"`
	DuplicateOf        string   `parquet:"duplicate_of,optional" doc:"URL of the representative of the page's cluster; null for a page that represents itself"`
	DuplicateKind      string   `parquet:"duplicate_kind,optional,dict" doc:"exact or near; null for a page that represents itself"`
	ClusterSize        int32    `parquet:"cluster_size" doc:"members of the page's cluster in this round, including the page; 2147483647 also stands for more"`
	Inlinks            int64    `parquet:"inlinks" doc:"number of distinct pages of the round that link to the URL"`
	Outlinks           int32    `parquet:"outlinks" doc:"number of links on the page"`
	Rank               float64  `parquet:"rank" doc:"PageRank of the page's host; the ranks of all hosts of a round sum to 1"`
	Depth              int32    `parquet:"depth" doc:"links from the nearest source URL"`
	PlannedURL         string   `parquet:"planned_url" doc:"planned URL whose fetch, perhaps through redirects, gave the page"`
	ContentBytes       int64    `parquet:"content_bytes" doc:"bytes of the decoded document"`
	ETag               string   `parquet:"etag,optional" doc:"ETag of the response"`
	LastModified       string   `parquet:"last_modified,optional" vol:"1" doc:"Last-Modified of the response, as sent"`
	ParserVersion      int32    `parquet:"parser_version" doc:"version of the parser that made the row, its text and its links"`
}

// Text is a row of the text dataset: the text of one document.
type Text struct {
	SURT     string `parquet:"url_surtkey,delta" doc:"SURT key"`
	URL      string `parquet:"url,delta" doc:"canonical URL of the document"`
	Main     string `parquet:"main" doc:"main content, one block per line"`
	Full     string `parquet:"full" doc:"all visible text, one block per line"`
	Language string `parquet:"language,optional,dict" doc:"ISO-639-3 code"`

	NoArchive bool `parquet:"noarchive" doc:"whether the document says noarchive (or nocache, its other name); main and full are then empty unless parse.noarchive is text"`
}

// Link is a row of the links dataset: a link of a source page, in its original form. Rows are in
// document order.
type Link struct {
	SourceSURT string   `parquet:"source_surtkey,dict" doc:"SURT key of the source"`
	Source     string   `parquet:"source,dict" doc:"canonical URL of the page with the link"`
	Target     string   `parquet:"target" published:"dict" doc:"canonical URL of the target"`
	Anchor     string   `parquet:"anchor,optional" published:"dict" doc:"anchor text, white space folded, bounded"`
	Rel        string   `parquet:"rel,optional,dict" doc:"rel attribute, lower case"`
	Kind       LinkKind `parquet:"kind,dict" doc:"element or mechanism of the link"`
	Nofollow   bool     `parquet:"nofollow" doc:"whether the link or its page says nofollow, ugc or sponsored"`
	Position   string   `parquet:"position,optional,dict" doc:"part of the page: main, nav, header, footer, aside"`
	Hreflang   string   `parquet:"hreflang,optional,dict" doc:"language of the target that the link states: a BCP 47 tag in its usual letter case, or x-default"`
	Ordinal    int32    `parquet:"ordinal" doc:"position among the page's links, from 0"`
	LastMod    Time     `parquet:"lastmod,optional,timestamp(microsecond)" doc:"when the target changed last, or was published, according to the sitemap or feed; in UTC unless a zone is named"`
	ChangeFreq string   `parquet:"changefreq,optional,dict" doc:"how often the target changes, according to the sitemap: always, hourly, daily, weekly, monthly, yearly, never"`
	Weight     *float64 `parquet:"sitemap_priority,optional" doc:"priority of the target within its site, according to the sitemap, 0 to 1; null: not stated"`
	Sent       string   `parquet:"sent,optional" doc:"target as it is linked: its canonical URL with the link's own path and query; null: target itself"`
}

// Duplicate is a row of the duplicates dataset: a page of a cluster of similar pages. The cluster's
// representative has a row too.
type Duplicate struct {
	SURT                string        `parquet:"url_surtkey,delta" doc:"SURT key of the member"`
	URL                 string        `parquet:"url,delta" doc:"member of the cluster"`
	Representative      string        `parquet:"representative" doc:"URL of the cluster's representative"`
	Kind                DuplicateKind `parquet:"kind,dict" doc:"representative, exact or near"`
	Distance            int32         `parquet:"distance" doc:"Hamming distance of the fingerprints of member and representative; the distance may exceed the limit if only other members connect the two"`
	Via                 string        `parquet:"via,optional" doc:"another member of the cluster with a distance to this member within the limit; null for the representative"`
	RepresentativeCrawl string        `parquet:"representative_crawl,dict" doc:"crawl of the representative"`
	RepresentativeRound int32         `parquet:"representative_round" doc:"round of the representative"`
	ClusterSize         int32         `parquet:"cluster_size" doc:"members of the cluster in this round; 2147483647 also stands for more"`
}

// Host is a row of the hosts dataset.
type Host struct {
	Host           string  `parquet:"host" doc:"host name, with its port unless 80 or 443"`
	Domain         string  `parquet:"domain,dict" doc:"registered domain, private suffixes counted"`
	RobotsState    string  `parquet:"robots_state,optional,dict" doc:"state of robots.txt: rules, none (4xx), unreachable; null if robots.txt was not requested"`
	RobotsDigest   string  `parquet:"robots_digest,optional" doc:"SHA-1 of robots.txt, base 32"`
	RobotsAt       Time    `parquet:"robots_fetched_at,optional,timestamp(microsecond)" vol:"1" doc:"when robots.txt was fetched last"`
	DelayMS        *int64  `parquet:"delay_ms,optional" vol:"1" doc:"delay between requests at the end of the round, milliseconds; null if nothing was requested"`
	Planned        int64   `parquet:"planned" doc:"URLs planned"`
	Fetched        int64   `parquet:"fetched" doc:"URLs with outcome ok or not_modified"`
	Redirected     int64   `parquet:"redirected" doc:"URLs with outcome redirected"`
	FailedHTTP4xx  int64   `parquet:"failed_http_4xx" doc:"URLs with outcome http_4xx"`
	FailedHTTP5xx  int64   `parquet:"failed_http_5xx" doc:"URLs with outcome http_5xx"`
	FailedRate     int64   `parquet:"failed_rate_limited" doc:"URLs with outcome rate_limited"`
	Refused        int64   `parquet:"refused" doc:"URLs with outcome blocked or payment_required"`
	FailedDNS      int64   `parquet:"failed_dns_error" doc:"URLs with outcome dns_error"`
	FailedConnect  int64   `parquet:"failed_connect_error" doc:"URLs with outcome connect_error"`
	FailedTLS      int64   `parquet:"failed_tls_error" doc:"URLs with outcome tls_error"`
	FailedTimeout  int64   `parquet:"failed_timeout" doc:"URLs with outcome timeout"`
	FailedProtocol int64   `parquet:"failed_protocol_error" doc:"URLs with outcome protocol_error or redirect_limit"`
	RobotsDenied   int64   `parquet:"robots_denied" doc:"URLs with outcome robots_denied or robots_unreachable"`
	Other          int64   `parquet:"other" doc:"URLs with any other outcome"`
	Requests       int64   `parquet:"requests" vol:"1" doc:"requests sent, including robots.txt and retries, without attempts that got no connection"`
	Bytes          int64   `parquet:"bytes" vol:"1" doc:"bytes received"`
	LatencyMS      float64 `parquet:"latency_ms,optional" vol:"1" doc:"mean time to first byte, milliseconds; null if no request was answered"`
	BreakerEvents  int32   `parquet:"breaker_events" vol:"1" doc:"number of times that the host's breaker opened"`
	Address        string  `parquet:"address,optional" vol:"1" doc:"IP address of the last connection"`
	FirstRequest   Time    `parquet:"first_request,optional,timestamp(microsecond)" vol:"1" doc:"when the first request to the host was written"`
	LastRequest    Time    `parquet:"last_request,optional,timestamp(microsecond)" vol:"1" doc:"when the last request to the host was written"`
	InlinkHosts    int64   `parquet:"inlink_hosts" doc:"number of distinct other hosts that link to the host; at most 256 hosts of each other domain count"`
	OutlinkHosts   int64   `parquet:"outlink_hosts" doc:"number of distinct other hosts to which the host links"`
	Rank           float64 `parquet:"rank" doc:"PageRank of the host; the ranks of all hosts of a round sum to 1"`
	Harmonic       float64 `parquet:"harmonic" doc:"harmonic centrality of the host's domain: the sum of 1 / distance over all domains from which links lead to this domain, estimated with a standard error of 6.5 %"`
}

// ChangeHistory holds what is known about the intervals between the fetches of a URL, for the estimate of
// its rate of change (package recrawl). It is zero if no fetch could be compared with an earlier one.
type ChangeHistory struct {
	ChangeWeight int64 `parquet:"change_weight,optional" vol:"1" doc:"number of intervals between two fetches in which the content changed, in thousandths; each change takes a sixteenth from the earlier ones; null: none"`
	ChangedMS    int64 `parquet:"changed_ms,optional" vol:"1" doc:"total length of the intervals with a change, weighted as change_weight, milliseconds; null: none"`
	UnchangedMS  int64 `parquet:"unchanged_ms,optional" vol:"1" doc:"total length of the intervals without a change, milliseconds; each change takes a sixteenth from it; null: none"`
	SameMS       int64 `parquet:"same_ms,optional" vol:"1" doc:"total length of the intervals since the last change, milliseconds; null: none"`
}

// URLRecord is a row of the urls dataset: a URL whose state changed in the round.
type URLRecord struct {
	SURT           string   `parquet:"url_surtkey,delta" doc:"SURT key"`
	URL            string   `parquet:"url,delta" doc:"canonical URL"`
	Host           string   `parquet:"host,dict" doc:"host name, with its port unless 80 or 443"`
	Domain         string   `parquet:"domain,dict" doc:"registered domain, private suffixes counted"`
	State          URLState `parquet:"state,dict" doc:"state of the URL after the round"`
	Outcome        Outcome  `parquet:"outcome,optional,dict" doc:"last outcome of the URL; null if the URL was never planned"`
	FirstSeen      string   `parquet:"first_seen,dict" doc:"crawl and round that found the URL, such as 2026-11.0"`
	FirstSource    string   `parquet:"first_source,optional" doc:"page with the first link to the URL; null for a URL that a source listed first (listed_first_source)"`
	LastPlanned    string   `parquet:"last_planned,optional,dict" doc:"last crawl and round that planned the URL"`
	LastFetched    Time     `parquet:"last_fetched,optional,timestamp(microsecond)" vol:"1" doc:"time of the last fetch"`
	Fetches        int32    `parquet:"fetches" doc:"number of fetches"`
	Changes        int32    `parquet:"changes" doc:"number of fetches that found changed content"`
	Failures       int32    `parquet:"failures" doc:"number of failures in a row; an answer that the network cut counts as one"`
	ContentDigest  string   `parquet:"content_digest,optional" doc:"digest of the last content"`
	ETag           string   `parquet:"etag,optional" doc:"ETag of the last content"`
	LastModified   string   `parquet:"last_modified,optional" vol:"1" doc:"Last-Modified of the last content, as sent"`
	NextDue        Time     `parquet:"next_due,optional,timestamp(microsecond)" vol:"1" doc:"when the URL is due again; null means at once in the states found and deferred, and never in the states denied, gone and skipped, and for sitemaps that only robots.txt names"`
	RevisitMS      int64    `parquet:"revisit_ms,optional" vol:"1" doc:"time from a fetch until the URL is due again, learned from the URL's changes, milliseconds; next_due is earlier if a sitemap or feed reports a change; null if never fetched"`
	FalseAlarms    int32    `parquet:"false_alarms,optional" vol:"1" doc:"number of fetches since the last change that came early because of a sitemap or feed and found no change; each doubles the minimum time until the next early fetch; null: none"`
	Depth          int32    `parquet:"depth" doc:"links from the nearest source URL"`
	Priority       int32    `parquet:"priority" doc:"priority from 0 to 1000; higher is sooner"`
	Inlinks        int64    `parquet:"inlinks" doc:"number of distinct pages of the round that link to the URL"`
	RedirectTo     string   `parquet:"redirect_to,optional" doc:"target of a redirected URL"`
	ContentAt      Time     `parquet:"content_at,optional,timestamp(microsecond)" vol:"1" doc:"when the last content was captured; null if no record of this URL holds the whole content"`
	WARCFilename   string   `parquet:"warc_filename,optional,dict" vol:"1" doc:"key of the WARC file with the last content"`
	WARCRecordOff  int32    `parquet:"warc_record_offset,optional" vol:"1" doc:"offset of the record in the WARC file, bytes"`
	WARCRecordLen  int32    `parquet:"warc_record_length,optional" vol:"1" doc:"length of the record in the WARC file, bytes"`
	Change         Change   `parquet:"change,optional,dict" doc:"change at the URL's last answer, as in pages; gone: 404, 410 or a soft_404 after a capture; none also for 304; null: no such answer, or the last capture is not known"`
	ChangeDistance *int32   `parquet:"change_distance,optional" doc:"differing bits of the SimHashes at that answer, as in pages"`
	TitleChanged   *bool    `parquet:"title_changed,optional" doc:"whether the title differed at that answer, as in pages"`
	LinksAdded     *int32   `parquet:"links_added,optional" doc:"number of new link targets at that answer, as in pages"`
	LinksRemoved   *int32   `parquet:"links_removed,optional" doc:"number of missing link targets at that answer, as in pages"`
	CapturedIn     string   `parquet:"captured_in,optional,dict" doc:"crawl and round of the last capture, such as 2026-11.0; null if there is none"`
	CaptureDigest  string   `parquet:"capture_digest,optional" doc:"payload digest of the last capture; null if it equals content_digest"`
	TextDigest     string   `parquet:"text_digest,optional" doc:"text_digest of the last capture"`
	SimHash        int64    `parquet:"simhash,optional" doc:"simhash of the last capture; null stands for 0"`
	TitleHash      int64    `parquet:"title_hash,optional" doc:"first 64 bits of the SHA-1 of the last capture's title; null: no title"`
	WordCount      int32    `parquet:"word_count,optional" doc:"word_count of the last capture; null: no words, or a page_hint says that the capture is no content"`
	TextShape      int64    `parquet:"text_shape,optional" doc:"hash of the last capture's title and terms without digits, by which empty pages of a calendar are alike; null: a page_hint, no terms or more than 127, more than three numbers, or a script such as Hani"`

	LinkSketch LinkSketch `parquet:"link_sketch,optional" doc:"number of distinct link targets of the last capture, a colon, and an odd sketch of them (512 bits, hexadecimal); links_added and links_removed follow from two of these; null if not all links are known"`

	Form
	Listing
	ChangeHistory

	DueReason DueReason `parquet:"due_reason,optional,dict" vol:"1" doc:"what decided next_due: first, rate, steady, min, max, announced or retry; null if the URL is due at once or never"`
}

// Skip is a row of the skips dataset: a URL that was found but not planned.
type Skip struct {
	SURT   string     `parquet:"url_surtkey,optional,delta" doc:"SURT key; null if the text is not a URL"`
	URL    string     `parquet:"url,delta" doc:"URL, or text in the place of a URL, cut to a bounded length"`
	Reason SkipReason `parquet:"reason,dict" doc:"why the URL was not planned"`
	Detail string     `parquet:"detail,optional" doc:"rule, limit or pattern that decided"`
	Source string     `parquet:"source,optional,dict" doc:"page or source file that named the URL"`
	Line   int64      `parquet:"line,optional" doc:"line of the source file, from 1"`
	Depth  int32      `parquet:"depth" doc:"links from the nearest source URL"`
}
