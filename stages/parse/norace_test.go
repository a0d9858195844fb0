//go:build !race

package parse

// raceDetector is whether the race detector is on.
const raceDetector = false
