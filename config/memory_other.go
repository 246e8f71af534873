//go:build !linux

package config

// memory is unknown.
func memory() uint64 { return 0 }
