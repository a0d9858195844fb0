package schema

import "strings"

// RedirectDenied is the error of a planned URL that robots.txt allows, but that redirects to a URL that
// robots.txt denies. The column robots_rule then holds the rule that allowed the planned URL.
const RedirectDenied = "redirect to a URL that robots.txt denies"

// DeniedRedirect returns the target of a redirect that robots.txt denied, and the rule that denied it, from
// the columns error and error_detail of fetches. If the text may
// have been cut when the row was written, or if it is about something else, ok is false.
func DeniedRedirect(phrase, detail string) (target, rule string, ok bool) {
	if phrase != RedirectDenied || len(detail) >= 480 {
		return "", "", false
	}
	return strings.Cut(detail, ": ")
}
