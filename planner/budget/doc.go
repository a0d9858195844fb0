// Package budget decides which URLs fit the budgets of a plan.
//
// The input is the URLs of one domain at a time. The planner first passes each of them to a Domain, in
// any order, and then asks about each URL, the highest priority first. The output is yes, or the budget
// that refuses the URL with its numbers. Addresses then bounds the URLs at each IP address. Round cuts the
// URLs of all domains to the budget of a round or a crawl: it counts them by priority, and finds a
// threshold.
//
// A pattern's budget is a part of its host's, and a host's budget a part of its domain's. To take the
// best URL that still fits is therefore optimal: no other choice has a better URL in place of a worse.
//
// Package budget promises:
//
//   - the decisions depend on the set of URLs, and on the order of the questions only among URLs of equal
//     priority. The planner asks in the order of the URLs' hashes, whatever their order in the sources;
//   - a Domain takes about 100 bytes for each of its hosts, and as much for each pattern of a host that
//     matches a URL. Addresses takes as much for each address. A Round takes 16 KB.
//
// Package budget imports formats/urlkey.
package budget
