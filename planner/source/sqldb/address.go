package sqldb

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"crawlbatch.io/crawlbatch/formats/store"
)

// Address names a table of a database, such as
//
//	mysql://${DB_USER}:${DB_PASSWORD}@db.example:3306/crawler?table=url_queue&where=status='pending'
//
// An Address holds the password, which none of its exported methods returns.
type Address struct {
	// Sleep waits between two tries. Nil means store.Sleep.
	Sleep func(context.Context, time.Duration) error
	// Tell gets a text about each page on which the database works for long. Another goroutine than
	// the caller's may call Tell. It may be nil.
	Tell func(host, why string)

	name           string // text of the address, without user name and password
	dialect        dialect
	host, port     string
	user, password string
	database       string
	options        map[string]string
}

// The options of an address, with their defaults.
var defaults = map[string]string{
	"table":    "url_queue",
	"url":      "url",
	"key":      "", // empty: the primary key
	"where":    "",
	"priority": "", // empty: the column priority, if there is one
	"status":   "status",
	"results":  "", // empty: the name of the table and _results
	"tls":      tlsOffered,
}

// The values of the option tls.
const (
	tlsOffered    = "offered"    // TLS with a checked certificate if the server offers TLS, else no TLS
	tlsVerify     = "verify"     // TLS with a checked certificate
	tlsUnverified = "unverified" // TLS without a check of the certificate
	tlsOff        = "off"
)

// passwordEnd matches the @ after a password with a slash or a question mark, which is written out. An @
// in the value of an option does not match.
var passwordEnd = regexp.MustCompile(`^([^?]*|[^=]*)@`)

var reference = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// Parse reads an address and gets the values of ${VAR} from lookup. If the address has no user
// information, user and password come from the variables that the database's own client reads.
// Errors wrap ErrUnusable and show nothing of the user information.
func Parse(text string, lookup func(string) (string, bool)) (*Address, error) {
	scheme, rest, _ := strings.Cut(text, "://")
	scheme = strings.ToLower(scheme)
	a := &Address{dialect: dialects[scheme], options: map[string]string{}}
	if a.dialect == nil {
		return nil, fmt.Errorf("a database is named as mysql://…, mariadb://… or postgres://…: %w", ErrUnusable)
	}
	authority, tail := rest, ""
	if i := strings.IndexAny(rest, "/?#"); i >= 0 {
		authority, tail = rest[:i], rest[i:]
	}
	user, hasUser := "", false
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, authority, hasUser = authority[:at], authority[at+1:], true
	} else if passwordEnd.MatchString(tail) {
		return nil, literal(scheme, a.dialect)
	}
	if err := a.setUser(scheme, user, hasUser, lookup); err != nil {
		return nil, err
	}
	a.name = scheme + "://" + authority + tail
	// Below, errors show no text of the address: a value of an option with an @ may be the end of a
	// password, too.
	u, err := url.Parse(a.name)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("a %s address is not of the form %s://USER:${VAR}@HOST:PORT/DATABASE?table=NAME: %w", scheme, scheme, ErrUnusable)
	}
	if u.Fragment != "" {
		return nil, fmt.Errorf("a %s address holds a #: write # as %%23: %w", scheme, ErrUnusable)
	}
	a.host, a.port, a.database = u.Hostname(), cmp.Or(u.Port(), a.dialect.port()), strings.Trim(u.Path, "/")
	if a.database == "" {
		return nil, fmt.Errorf("a %s address names no database: write %s://HOST/DATABASE: %w", scheme, scheme, ErrUnusable)
	}
	return a, a.setOptions(u.RawQuery)
}

// literal is the error for a password in the text of an address.
func literal(scheme string, d dialect) error {
	_, variable := d.variables()
	return fmt.Errorf("the password of a %s address is written out, and would be stored and shown: write %s://USER:${%s}@HOST/DATABASE, and set %s in the environment: %w",
		scheme, scheme, variable, variable, ErrUnusable)
}

// setUser sets user and password from the user information of an address.
func (a *Address) setUser(scheme, text string, given bool, lookup func(string) (string, bool)) error {
	userVariable, passwordVariable := a.dialect.variables()
	if !given {
		a.user, _ = lookup(userVariable)
		a.password, _ = lookup(passwordVariable)
		return nil
	}
	user, password, hasPassword := strings.Cut(text, ":")
	if password != "" && reference.FindString(password) != password {
		return literal(scheme, a.dialect)
	}
	expand := func(s string) (string, error) {
		m := reference.FindStringSubmatch(s)
		if m == nil {
			return s, nil
		}
		value, ok := lookup(m[1])
		if !ok {
			return "", fmt.Errorf("a %s address reads ${%s}, which the environment does not set: %w", scheme, m[1], ErrUnusable)
		}
		return value, nil
	}
	var err error
	if reference.FindString(user) != user {
		if user, err = url.PathUnescape(user); err != nil {
			return fmt.Errorf("the user of a %s address is badly escaped: %w", scheme, ErrUnusable)
		}
		a.user = user
	} else if a.user, err = expand(user); err != nil {
		return err
	}
	if !hasPassword {
		a.password, _ = lookup(passwordVariable)
		return nil
	}
	a.password, err = expand(password)
	return err
}

// setOptions sets the options from the query of an address.
func (a *Address) setOptions(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return fmt.Errorf("the options of an address are badly escaped: write %% as %%25, & as %%26, ; as %%3B and + as %%2B: %w", ErrUnusable)
	}
	for name, given := range values {
		if _, ok := defaults[name]; !ok || len(given) > 1 {
			known := make([]string, 0, len(defaults))
			for n := range defaults {
				known = append(known, n)
			}
			slices.Sort(known)
			which := fmt.Sprintf("option %q", name)
			if strings.Contains(query, "@") {
				which = "an option"
			}
			return fmt.Errorf("%s is unknown or repeated: an address has the options %s: %w", which, strings.Join(known, ", "), ErrUnusable)
		}
	}
	for name, value := range defaults {
		if a.options[name] = value; values.Has(name) {
			a.options[name] = values.Get(name)
		}
	}
	switch a.options["tls"] {
	case tlsOffered, tlsVerify, tlsUnverified, tlsOff:
		return nil
	}
	return fmt.Errorf("the option tls is offered, verify, unverified or off: %w", ErrUnusable)
}

// Name returns the text of the address without user and password.
func (a *Address) Name() string { return a.name }

// HasWhere reports whether the address has a condition for rows.
func (a *Address) HasWhere() bool { return a.options["where"] != "" }

// DropWhere removes the condition for rows. Feedback calls it: the rows of an earlier round may no
// longer meet the condition of the plan, such as status='pending'.
func (a *Address) DropWhere() { a.options["where"] = "" }

// tlsConfig returns the settings of TLS, or nil for none. It also reports whether a connection
// without TLS is allowed.
func (a *Address) tlsConfig() (c *tls.Config, plain bool) {
	switch a.options["tls"] {
	case tlsOff:
		return nil, true
	case tlsUnverified:
		return &tls.Config{InsecureSkipVerify: true}, false //nolint:gosec // the user asked for it
	}
	return &tls.Config{ServerName: a.host}, a.options["tls"] == tlsOffered
}

// sleep waits before another try.
func (a *Address) sleep(ctx context.Context, try int) error {
	if a.Sleep != nil {
		return a.Sleep(ctx, pauses.Delay(try))
	}
	return store.Sleep(ctx, pauses.Delay(try))
}
