//go:build !linux

package main

import (
	"errors"
	"time"
)

// usage is what a process used until now.
type usage struct {
	memory uint64
	cpu    time.Duration
}

func usageOf(int) (usage, error) {
	return usage{}, errors.New("memory and CPU time of processes are measured on Linux only")
}
