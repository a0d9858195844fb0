package schema

// Domain is a row of the domains dataset: a registered domain with planned URLs, in one round.
//
// Counts of URLs come from fetches, counts of requests and their times from requests, counts of pages
// from pages and duplicates, ranks from hosts. A request to a host of the domain counts only if the
// partition of the domain sent it, as in hosts.
type Domain struct {
	Domain        string `parquet:"domain" doc:"registered domain, private suffixes counted; for an IP address or a single label, the host name"`
	PreviousRound string `parquet:"previous_round,optional,dict" doc:"newest of the 16 sealed rounds before this one that has a row of the domain, such as 2026-10.3; null: none"`
	Hosts         int64  `parquet:"hosts" doc:"hosts of the domain with planned URLs or requests"`
	LinkedHosts   int64  `parquet:"linked_hosts" doc:"other hosts of the domain: they are only targets of links of this round"`

	Planned           int64 `parquet:"planned" doc:"URLs planned: the sum of the 22 columns outcome_…"`
	OK                int64 `parquet:"outcome_ok" doc:"URLs with outcome ok"`
	NotModified       int64 `parquet:"outcome_not_modified" doc:"URLs with outcome not_modified"`
	Redirected        int64 `parquet:"outcome_redirected" doc:"URLs with outcome redirected"`
	RobotsDenied      int64 `parquet:"outcome_robots_denied" doc:"URLs with outcome robots_denied"`
	RobotsUnreachable int64 `parquet:"outcome_robots_unreachable" doc:"URLs with outcome robots_unreachable"`
	HTTP4xx           int64 `parquet:"outcome_http_4xx" doc:"URLs with outcome http_4xx"`
	HTTP5xx           int64 `parquet:"outcome_http_5xx" doc:"URLs with outcome http_5xx"`
	RateLimited       int64 `parquet:"outcome_rate_limited" doc:"URLs with outcome rate_limited"`
	Refused           int64 `parquet:"outcome_blocked" doc:"URLs with outcome blocked"`
	PaymentRequired   int64 `parquet:"outcome_payment_required" doc:"URLs with outcome payment_required"`
	DNSError          int64 `parquet:"outcome_dns_error" doc:"URLs with outcome dns_error"`
	ConnectError      int64 `parquet:"outcome_connect_error" doc:"URLs with outcome connect_error"`
	TLSError          int64 `parquet:"outcome_tls_error" doc:"URLs with outcome tls_error"`
	Timeout           int64 `parquet:"outcome_timeout" doc:"URLs with outcome timeout"`
	ProtocolError     int64 `parquet:"outcome_protocol_error" doc:"URLs with outcome protocol_error"`
	RedirectLimit     int64 `parquet:"outcome_redirect_limit" doc:"URLs with outcome redirect_limit"`
	MIMEFiltered      int64 `parquet:"outcome_mime_filtered" doc:"URLs with outcome mime_filtered"`
	AddressBlocked    int64 `parquet:"outcome_address_blocked" doc:"URLs with outcome address_blocked"`
	HostSuspended     int64 `parquet:"outcome_host_suspended" doc:"URLs with outcome host_suspended"`
	Deferred          int64 `parquet:"outcome_deferred" doc:"URLs with outcome deferred"`
	Stopped           int64 `parquet:"outcome_stopped" doc:"URLs with outcome stopped"`
	InternalError     int64 `parquet:"outcome_internal_error" doc:"URLs with outcome internal_error"`

	Blocked   int64  `parquet:"blocked" doc:"URLs that somebody forbids: outcomes robots_denied, robots_unreachable, stopped, address_blocked, host_suspended, rate_limited, blocked, payment_required, and http_4xx with status 401, 403 or 451; and pages whose page_hint is blocked"`
	BlockedBy string `parquet:"blocked_by,optional,dict" doc:"most frequent reason in blocked: the outcome; for outcome blocked, the service that refused most URLs, such as cloudflare; forbidden (401, 403, 451); challenge (page_hint); of equally frequent ones, the first in the order of blocked; null if blocked is 0"`

	Pages           int64    `parquet:"pages" doc:"rows of pages"`
	NewPages        int64    `parquet:"new_pages" doc:"of these, pages that were fetched for the first time (changed is null)"`
	ChangedPages    int64    `parquet:"changed_pages" doc:"of these, pages whose content differs from the last fetch (changed is true)"`
	IndexablePages  int64    `parquet:"indexable_pages" doc:"of these, pages that may be indexed"`
	ExactDuplicates int64    `parquet:"exact_duplicates" doc:"of these, pages whose text equals that of their representative (duplicate_kind is exact)"`
	NearDuplicates  int64    `parquet:"near_duplicates" doc:"of these, pages whose text resembles that of other pages of their cluster (duplicate_kind is near)"`
	ContentBytes    int64    `parquet:"content_bytes" doc:"decoded size of these pages, bytes"`
	Languages       []string `parquet:"languages,list" doc:"up to 8 languages of the pages, ISO-639-3, most pages first, then by code"`
	LanguagePages   []int32  `parquet:"language_pages,list" doc:"number of pages for each entry of languages; 2147483647 also stands for more"`
	OtherLanguages  int64    `parquet:"other_language_pages" doc:"pages in any other language; the language of the rest of the pages is unknown"`

	Requests       int64    `parquet:"requests" vol:"1" doc:"rows of requests: requests for pages, redirects, robots.txt and sitemaps, probes, and attempts that got no connection"`
	FailedRequests int64    `parquet:"failed_requests" vol:"1" doc:"of these, those without a response or with one of a service that refuses robots (error_class is set), and those with status 429 or 5xx"`
	ErrorRate      *float64 `parquet:"error_rate,optional" vol:"1" doc:"failed_requests / requests, 0 to 1; null without requests"`
	Bytes          int64    `parquet:"bytes" vol:"1" doc:"bytes received for all requests, before decoding"`
	RequestMS      int64    `parquet:"request_ms" vol:"1" doc:"sum of total_ms of all requests, milliseconds; delays between requests are not included"`
	FirstByteP50   *float64 `parquet:"first_byte_p50_ms,optional" vol:"1" doc:"median of the times from request to first byte, milliseconds; null without responses; this and the other percentiles are nearest ranks and at most 1.6 % off"`
	FirstByteP90   *float64 `parquet:"first_byte_p90_ms,optional" vol:"1" doc:"90th percentile of the times from request to first byte, milliseconds; null without responses"`
	FirstByteP99   *float64 `parquet:"first_byte_p99_ms,optional" vol:"1" doc:"99th percentile of the times from request to first byte, milliseconds; null without responses"`
	TotalP50       *float64 `parquet:"total_p50_ms,optional" vol:"1" doc:"median of the times from start to the end of the response, milliseconds; requests without response are left out; null without responses"`
	TotalP90       *float64 `parquet:"total_p90_ms,optional" vol:"1" doc:"90th percentile of these times, milliseconds"`
	TotalP99       *float64 `parquet:"total_p99_ms,optional" vol:"1" doc:"99th percentile of these times, milliseconds"`
	FirstRequest   Time     `parquet:"first_request,optional,timestamp(microsecond)" vol:"1" doc:"when the first request of the round to the domain was written; null if none was"`
	LastRequest    Time     `parquet:"last_request,optional,timestamp(microsecond)" vol:"1" doc:"when the last request of the round to the domain was written; null if none was"`
	SpanMS         *int64   `parquet:"span_ms,optional" vol:"1" doc:"time from first_request to last_request, milliseconds, waits and pauses included; null if no request was written"`
	DelayMS        *int64   `parquet:"delay_ms,optional" vol:"1" doc:"longest delay between requests to a host of the domain at the end of the round, milliseconds; null without requests"`
	DelayMinMS     *int64   `parquet:"delay_min_ms,optional" vol:"1" doc:"shortest delay in force at any request, milliseconds; null without requests"`
	DelayMaxMS     *int64   `parquet:"delay_max_ms,optional" vol:"1" doc:"longest delay in force at any request, milliseconds; null without requests"`
	BreakerEvents  int64    `parquet:"breaker_events" vol:"1" doc:"number of times that the breakers of its hosts opened"`

	RobotsHost    string `parquet:"robots_host,optional" doc:"host whose robots.txt the next four columns describe, among those whose robots.txt was requested: the host with the domain's name, or else its host www, or else the host with the most planned URLs; null: none"`
	RobotsState   string `parquet:"robots_state,optional,dict" doc:"state of this robots.txt, as in hosts: rules, none (4xx), unreachable"`
	RobotsDigest  string `parquet:"robots_digest,optional" doc:"SHA-1 of this robots.txt, base 32"`
	RobotsChanged *bool  `parquet:"robots_changed,optional" doc:"whether state or digest differ from those in robots_compared; null if robots.txt is unreachable, or was not readable on this host in the 16 sealed rounds before this one"`
	RobotsBefore  string `parquet:"robots_compared,optional,dict" doc:"round with which robots_changed compares: the newest earlier one whose row has this robots_host and its state rules or none"`
	RobotsFiles   int64  `parquet:"robots_files" doc:"number of different robots.txt files (digests) of the domain's hosts"`

	Addresses    []string `parquet:"addresses,list" vol:"1" doc:"up to 8 IP addresses of the servers, most requests first, then as text; for 64:ff9b::/96 (NAT64), the IPv4 address in it"`
	AddressCount int64    `parquet:"address_count" vol:"1" doc:"number of different IP addresses"`
	Networks     []string `parquet:"networks,list" vol:"1" doc:"up to 8 networks of these addresses, most requests first: /24 for IPv4, /48 for IPv6, such as 192.0.2.0/24"`
	NetworkCount int64    `parquet:"network_count" vol:"1" doc:"number of different networks"`
	Rank         float64  `parquet:"rank" doc:"sum of the PageRanks of its hosts; the ranks of all hosts of a round sum to 1"`
	Harmonic     float64  `parquet:"harmonic" doc:"harmonic centrality of the domain, as in hosts"`
}

// Outcomes returns the counts of planned URLs by outcome, in the order of Outcomes.
func (d *Domain) Outcomes() []*int64 {
	return []*int64{&d.OK, &d.NotModified, &d.Redirected, &d.RobotsDenied, &d.RobotsUnreachable, &d.HTTP4xx, &d.HTTP5xx,
		&d.RateLimited, &d.Refused, &d.PaymentRequired, &d.DNSError, &d.ConnectError, &d.TLSError, &d.Timeout, &d.ProtocolError, &d.RedirectLimit, &d.MIMEFiltered,
		&d.AddressBlocked, &d.HostSuspended, &d.Deferred, &d.Stopped, &d.InternalError}
}
