// Package lab holds the tests that try the built program for minutes to hours: they kill it, damage its stores,
// run it on clusters and against hostile servers, and let other programs read what it wrote. The build tag lab
// compiles them; each has a target in the Makefile.
package lab
