//go:build !race

package server

// raceDetector says that figures of time and memory are those of the race detector.
const raceDetector = false
