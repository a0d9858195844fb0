//go:build race

package parse

// raceDetector tells that the test runs with the race detector.
const raceDetector = true
