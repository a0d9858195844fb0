package http1

// Request is the head of a request without a body.
type Request struct {
	Method    string
	Target    Target
	UserAgent string // value of the field User-Agent; "" omits the field
	// Header holds further fields. They are written after Host, User-Agent, Accept and
	// Accept-Encoding. A field replaces the default field of the same name. Control characters in
	// values become spaces.
	Header   Header
	Absolute bool // whether the request line has the whole URL, for a proxy
}

// defaultFields are written after Host and User-Agent, except those that the request itself sets.
var defaultFields = Header{
	{"Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"},
	{"Accept-Encoding", "gzip, deflate, br, zstd"},
}

// AppendTo appends the bytes of the request to b.
func (r *Request) AppendTo(b []byte) []byte {
	b = append(b, r.Method...)
	b = append(b, ' ')
	if r.Absolute {
		b = append(b, r.Target.scheme()...)
		b = append(b, "://"...)
		b = append(b, r.Target.authority()...)
	}
	b = append(b, r.Target.path...)
	b = append(b, " HTTP/1.1\r\n"...)
	if _, given := r.Header.Lookup("Host"); !given {
		b = appendField(b, "Host", r.Target.authority())
	}
	if _, given := r.Header.Lookup("User-Agent"); !given && r.UserAgent != "" {
		b = appendField(b, "User-Agent", r.UserAgent)
	}
	for _, f := range defaultFields {
		if _, given := r.Header.Lookup(f.Name); !given {
			b = appendField(b, f.Name, f.Value)
		}
	}
	for _, f := range r.Header {
		b = appendField(b, f.Name, f.Value)
	}
	return append(b, "\r\n"...)
}

func appendField(b []byte, name, value string) []byte {
	b = append(b, name...)
	b = append(b, ": "...)
	for i := range len(value) {
		c := value[i]
		if c < ' ' && c != '\t' || c == 0x7f {
			c = ' '
		}
		b = append(b, c)
	}
	return append(b, "\r\n"...)
}
