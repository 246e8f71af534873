//go:build !linux

package testenv

// UseMemory does nothing: there is no folder in memory.
func UseMemory() error { return nil }
