package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"
)

// stopAll ends the started processes in reverse order. Files stay on disk.
func stopAll(ctx context.Context, s settings) error {
	all, err := s.records()
	if err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Println("Nothing was running.")
		return nil
	}
	processes, err := plan(ctx, s)
	if err != nil {
		return err
	}
	var errs []error
	for _, r := range slices.Backward(all) {
		if err := end(ctx, r, graceOf(processes, r.Name)); err != nil {
			errs = append(errs, err)
			continue
		}
		all = all[:len(all)-1]
		errs = append(errs, s.keep(all))
		fmt.Printf("  %-10s ended\n", r.Name)
	}
	return errors.Join(errs...)
}

func graceOf(processes []process, name string) time.Duration {
	for _, p := range processes {
		if p.Name == name {
			return p.Grace
		}
	}
	return 20 * time.Second
}

// end asks a process to end and kills it after its grace period. PostgreSQL interprets SIGTERM as a request to wait for
// its clients.
func end(ctx context.Context, r record, grace time.Duration) error {
	ask := syscall.SIGTERM
	if r.Name == "postgres" {
		ask = syscall.SIGINT
	}
	if err := r.signal(ask); err != nil {
		return err
	}
	if gone(ctx, r, grace) {
		return nil
	}
	if err := r.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !gone(ctx, r, 10*time.Second) {
		return fmt.Errorf("%s (pid %d) does not end", r.Name, r.PID)
	}
	return nil
}

// gone waits for the end of a process that may not be a child of this one.
func gone(ctx context.Context, r record, most time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for r.alive() {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
