//go:build !race

package parse

// raceDetector tells whether the race detector is on.
const raceDetector = false
